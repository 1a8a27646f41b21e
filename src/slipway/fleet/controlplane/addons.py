"""What a control plane keeps inside its cluster around a rollout: before each step what kubeadm reads, after the last one the add-ons."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.kinds import KUBEADM_CONFIG, MACHINE
from slipway.api.cluster.meta import manifest as plain
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.references import members
from slipway.fleet.contract.status import Status
from slipway.fleet.controlplane.decisions import upgrade
from slipway.fleet.controlplane.workload.addons import FOLLOW_ANNOTATION
from slipway.fleet.controlplane.workload.cluster import API_SERVER_PORT
from slipway.kube.aio import PatchType
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from slipway.api.cluster.bootstrap.config import KubeadmConfig
    from slipway.fleet.controlplane.decisions.machines import ControlPlane
    from slipway.fleet.controlplane.inspection import Inspection
    from slipway.fleet.controlplane.work import Owned, Work
    from slipway.fleet.controlplane.workload.cluster import Workload
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache


class Addons:
    def __init__(self, client: AsyncClient, cache: Cache, inspection: Inspection) -> None:
        self._client = client
        self._cache = cache
        self._inspection = inspection

    async def before_rollout(self, work: Work) -> None:
        """Every machine that joins reads kubeadm-config, so it follows the spec before the first one does."""
        spec = plain(work.plane.spec.kubeadm_config_spec.cluster_configuration)
        async with self._inspection.workload(work) as workload:
            await workload.ensure_rbac(work.plane.spec.version)
            await workload.update_kubeadm_config(spec, work.plane.spec.version)

    async def after_rollout(self, work: Work, plane: ControlPlane) -> None:
        """kube-proxy and CoreDNS, the expiry of certificates, and the next step of an upgrade over several versions."""
        version, spec = work.plane.spec.version, plain(work.plane.spec.kubeadm_config_spec.cluster_configuration)
        undated = [owned for owned in work.machines.values() if _is_undated(owned)]
        async with self._inspection.workload(work) as workload:
            if names.SKIP_KUBE_PROXY_ANNOTATION not in work.annotations:
                await workload.update_kube_proxy(version, spec.get("imageRepository") or "")
            if names.SKIP_COREDNS_ANNOTATION not in work.annotations:
                await workload.update_coredns(spec, version, follows=work.annotations.get(FOLLOW_ANNOTATION) == "true")
            await self._next_version(work, plane)
            # Last of all: a certificate that cannot be read holds up nothing but itself.
            problems = [problem for owned in undated if (problem := await self._date(workload, work, owned))]
        if problems:
            raise OperatorError("; ".join(problems))

    async def _date(self, workload: Workload, work: Work, owned: Owned) -> str:
        """Write down when the certificate of a machine's API server expires; why that cannot be known, where it cannot."""
        assert owned.config is not None
        try:
            expiry = await workload.api_server_certificate_expiry(owned.node, _port(owned.config))
        except OperatorError as error:
            return f"when the API server's certificate of the Machine {owned.name} expires cannot be seen: {error.message}"
        if expiry is not None:
            metadata = owned.config.metadata
            patch = {"metadata": {"annotations": {names.CERTIFICATES_EXPIRY_ANNOTATION: timestamp(expiry)}}}
            await self._client.patch(KUBEADM_CONFIG, metadata["name"], work.namespace, patch, type=PatchType.MERGE)
        return ""

    async def _next_version(self, work: Work, plane: ControlPlane) -> None:
        status = Status(work.manifest, work.now)
        target = work.annotations.get(names.UPGRADE_TARGET_ANNOTATION, "")
        if not target or work.annotations.get(names.MULTI_STEP_UPGRADE_ANNOTATION) != "true":
            status.remove(upgrade.CONDITION)
            return
        version = work.plane.spec.version
        if target == version:
            work.annotate(names.UPGRADE_TARGET_ANNOTATION, None)
            status.remove(upgrade.CONDITION)
            return
        try:
            following = upgrade.next_version(version, target)
        except OperatorError as error:
            status.set(upgrade.CONDITION, FALSE, "Refused", error.message)
            return
        machines = await members(self._cache, MACHINE, work.namespace, work.cluster.name)
        kubelets = [text for machine in machines if (text := (machine.content().get("spec") or {}).get("version"))]
        waits_for = upgrade.wait_for(plane, following, kubelets)
        if waits_for:
            status.set(upgrade.CONDITION, TRUE, "Waiting", f"At {version} on the way to {target}, waiting for {waits_for}")
            return
        work.manifest["spec"] = {**deepcopy(work.manifest["spec"]), "version": following}
        status.set(upgrade.CONDITION, TRUE, "Upgrading", f"From {version} to {following} on the way to {target}")


def _is_undated(owned: Owned) -> bool:
    if owned.deleting or not owned.node or owned.config is None:
        return False
    return names.CERTIFICATES_EXPIRY_ANNOTATION not in (owned.config.metadata.get("annotations") or {})


def _port(config: KubeadmConfig) -> int:
    """Where the API server of the machine listens."""
    join = config.spec.join_configuration.control_plane
    local = join.local_api_endpoint if join is not None else config.spec.init_configuration.local_api_endpoint
    return local.bind_port or API_SERVER_PORT
