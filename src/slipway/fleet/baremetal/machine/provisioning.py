"""Making a node of a host that is ours: image, bootstrap data and token looked at, and the reprovision plan written."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.cluster import DEFAULT_NETWORK_DEVICE
from slipway.api.cluster.kinds import MACHINE, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tokens
from slipway.fleet.baremetal.hosts import claim
from slipway.fleet.baremetal.machine.decision import BOOTS, made_by_plan
from slipway.fleet.baremetal.plans import bootstrapdata, catalog, planfacts
from slipway.fleet.baremetal.plans.bootstrapdata import BootstrapDataError, HostFile
from slipway.fleet.baremetal.plans.catalog import CatalogMissError, InvalidImageError, RegistryMissingError
from slipway.fleet.baremetal.plans.catalogs import Catalogs
from slipway.fleet.baremetal.plans.networkconfig import network_config
from slipway.fleet.baremetal.plans.plan import Reprovision, reprovision
from slipway.fleet.baremetal.reasons import BOOTSTRAP_TOKEN_EXPIRED, OLD_NODE_REMAINS, WORKLOAD_UNREACHABLE
from slipway.fleet.baremetal.vip import reconciler as alive
from slipway.fleet.baremetal.vip import vip
from slipway.fleet.baremetal.vip.vip import VIPError
from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.kube.aio import PatchType

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.baremetal.machine.decision import NodeFacts
    from slipway.fleet.baremetal.machine.node import Nodes
    from slipway.fleet.baremetal.machine.run import Run
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.fleet.baremetal.plans.bootstrapdata import Resolved
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_RETRY = 30.0
_SOON = 10.0
# A token that ends while the host still boots is as good as none, but whoever made it refreshes it until the Node is there.
_LEAST_LIFE = timedelta(seconds=30)
# The Secret of the data has it twice, as it was and as the host gets it, and the API server takes Secrets of 1 MiB.
_LONGEST_DATA = 500 * 1024


class _Waiting(Exception):  # noqa: N818 - not an error
    """What keeps the bootstrap data from being used now."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class _Data(NamedTuple):
    secret: Manifest
    resolved: Resolved
    hostname: str


class Provisioning:
    def __init__(self, client: AsyncClient, cache: Cache, options: BaremetalOptions, workload: WorkloadClusters, nodes: Nodes) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._workload = workload
        self._nodes = nodes
        self._catalogs = Catalogs(client, cache)

    async def wait_for_bootstrap(self, run: Run) -> None:
        run.phase = names.ALLOCATED_PHASE
        await self._image(run)
        run.tell(
            names.BOOTSTRAP_READY_CONDITION,
            FALSE,
            names.BOOTSTRAP_WAITING_REASON,
            "waiting for the bootstrap provider to name the data in the Machine's spec.bootstrap.dataSecretName",
        )

    async def provision(self, run: Run) -> None:
        """Write the plan, unless something is missing, which is told."""
        # Its token may have ended since, and its image be out of the catalog.
        if await self._is_done(run):
            return
        run.phase = names.ALLOCATED_PHASE
        image = await self._image(run)
        try:
            data = await self._data(run)
        except _Waiting as waiting:
            run.tell(names.BOOTSTRAP_READY_CONDITION, FALSE, waiting.reason, waiting.message)
            run.look_again(_RETRY)
            return
        run.tell(names.BOOTSTRAP_READY_CONDITION, TRUE, names.BOOTSTRAP_READY_REASON)
        if not image:
            return
        boot_before = await self._boot_before(run)
        if boot_before is None:
            return
        await self._keep(data)
        life = run.life(planned=run.now)
        if not await claim.set_state(self._client, self._cache, run.claimed.name, run.claimant, names.REPROVISIONING, life):
            # Somebody took the host from us; the next look says so.
            run.look_again(_SOON)
            return
        run.settle_on_host()
        await run.save_spec()
        await self._write(run, image, data, boot_before)

    async def _write(self, run: Run, image: str, data: _Data, boot_before: str) -> None:
        assert run.owner is not None
        assert run.secret is not None
        plan = reprovision(
            Reprovision(
                claim=run.uid,
                image=image,
                version=catalog.key(run.owner.version),
                hostname=data.hostname,
                user_data=data.resolved.user_data,
                network_config=network_config(run.claimed.network, without=[run.vip]),
            )
        )
        digest = hashlib.sha256(data.resolved.user_data).hexdigest()
        marks = planfacts.Marks(names.PLAN_REPROVISION, run.name, image, digest, boot_before)
        run.secret = await planfacts.write(self._client, self._cache, run.secret, plan, marks, self._options.max_failures, run.now)
        run.plan = planfacts.plan_facts(run.secret)

    async def _image(self, run: Run) -> str:
        """The image of the Machine's version; empty, and told, where there is none."""
        assert run.owner is not None
        condition = names.IMAGE_RESOLVED_CONDITION
        where = self._options.catalog_namespace or run.namespace
        data = await self._catalogs.entries(where)
        registry = run.registry or await self._platform_registry(where)
        cluster = f"{run.namespace}/{run.cluster.name}"
        try:
            image = catalog.image(data, f"{where}/{names.CATALOG_NAME}", run.owner.version, registry, cluster)
        except CatalogMissError as error:
            reason, message = names.IMAGE_CATALOG_MISS_REASON, error.message
        except RegistryMissingError as error:
            reason, message = names.IMAGE_REGISTRY_MISSING_REASON, error.message
        except InvalidImageError as error:
            reason, message = names.IMAGE_CATALOG_INVALID_REASON, error.message
        else:
            run.tell(condition, TRUE, names.IMAGE_RESOLVED_REASON, image)
            run.status.fields["image"] = image
            return image
        # Not what Cluster API calls a failure: it would give the Machine up for good, and this goes away with the next edit.
        run.phase = names.FAILED_PHASE
        run.tell(condition, FALSE, reason, message)
        run.look_again(_RETRY)
        return ""

    async def _platform_registry(self, namespace: str) -> str:
        return catalog.platform_registry(await self._client.find(SECRET, self._options.registry_secret, namespace))

    async def _data(self, run: Run) -> _Data:
        assert run.owner is not None
        name = run.owner.data_secret_name
        secret = await self._client.find(SECRET, name, run.namespace)
        if secret is None:
            raise _Waiting(
                names.BOOTSTRAP_WAITING_REASON,
                f"waiting for the Secret {run.namespace}/{name}, which the Machine names as its bootstrap data",
            )
        content = {key: b64decode(value) for key, value in (secret.get("data") or {}).items()}
        member = run.member
        hostname = (member.hostname if member is not None else "") or run.claimed.name
        try:
            resolved = bootstrapdata.resolve(
                content.get("value", b""),
                content.get("format", b"").decode(errors="replace"),
                hostname=hostname,
                provider_id=names.provider_id(run.claimed.name),
                files=await self._vip_files(run),
            )
        except BootstrapDataError as error:
            raise _Waiting(names.BOOTSTRAP_INVALID_REASON, f"{error.message} (Secret {run.namespace}/{name})") from None
        if len(resolved.user_data) > _LONGEST_DATA:
            raise _Waiting(
                names.BOOTSTRAP_INVALID_REASON,
                f"the bootstrap data is {len(resolved.user_data) // 1024} KiB long, and a host can get {_LONGEST_DATA // 1024} KiB: put "
                f"less into the files of the KubeadmConfig (Secret {run.namespace}/{name})",
            )
        run.status.fields["hostname"] = hostname
        if resolved.token:
            await self._check_token(run, resolved.token)
        return _Data(secret, resolved, hostname)

    async def _vip_files(self, run: Run) -> list[HostFile]:
        """What makes a control plane's host one that can hold the virtual address."""
        assert run.owner is not None
        if not run.owner.control_plane or not run.vip or run.infrastructure is None:
            return []
        member = run.member
        _refuse_slave(run, (member.network_device if member is not None else "") or run.infrastructure.spec.network_device)
        machines = await alive.control_plane_machines(self._cache, run.namespace, run.cluster.name)
        peers = await alive.known_peers(self._cache, run.infrastructure, machines, run.namespace)
        others = await alive.all_clusters(self._cache)
        try:
            files = vip.files_for(run.infrastructure, run.claimed.name, peers, image=self._options.alive_image, others=others)
        except VIPError as error:
            raise _Waiting(error.reason, error.message) from None
        try:
            # One that the others do not list when it boots would become a second master.
            await alive.announce(self._workload, run.cluster, run.infrastructure, peers, machines)
        except OperatorError as error:
            raise _Waiting(WORKLOAD_UNREACHABLE, f"the other control-plane hosts cannot be told of this one: {error.message}") from None
        return [HostFile(file.path, file.content.encode(), file.mode) for file in files]

    async def _check_token(self, run: Run, token: str) -> None:
        """A host that boots for half an hour and is then not let in is found out now: the cluster must know the token."""
        identity = token.partition(".")[0]
        try:
            async with self._workload.client(run.namespace, run.cluster.name) as client:
                secret = await client.find(SECRET, tokens.secret_name(identity), tokens.NAMESPACE)
        except OperatorError as error:
            raise _Waiting(WORKLOAD_UNREACHABLE, f"the bootstrap token cannot be checked: {error.message}") from None
        if secret is None:
            raise _Waiting(
                BOOTSTRAP_TOKEN_EXPIRED,
                f"the cluster does not know the bootstrap token {identity} of the data any more: waiting for data with a fresh one; where "
                "none comes, delete the Machine",
            )
        text = b64decode((secret.get("data") or {}).get("expiration") or "").decode(errors="replace")
        expires = conditions.moment(text)
        if text and expires is not None and expires < run.now.astimezone(UTC) + _LEAST_LIFE:
            raise _Waiting(BOOTSTRAP_TOKEN_EXPIRED, f"the bootstrap token {identity} ended at {text}: waiting for it to be refreshed")

    async def _is_done(self, run: Run) -> bool:
        """Whether the host is the Node already, by a plan of this machine that its Secret has lost: somebody deleted it, or changed it."""
        assert run.owner is not None
        if not run.before.last_applied_plan_checksum or not run.cluster.control_plane_initialized:
            return False
        try:
            found = await self._nodes.find(run)
        except OperatorError:
            # Told where it is asked for again.
            return False
        before = run.boots_before
        if before is None:
            # A manager of before did not keep it.  None was Ready when that plan was written: the kubelet of a clean host does not start.
            before = BOOTS.join(node.boot_id for node in found if not node.ready or node.machine not in ("", run.owner.name))
        if made_by_plan(found, before) is None:
            return False
        run.tell(names.PLAN_APPLIED_CONDITION, TRUE, names.PLAN_APPLIED_REASON, "its Secret has lost it, and the host is the Node")
        run.status.fields["bootsBefore"] = before
        await self._nodes.look(run)
        return True

    async def _boot_before(self, run: Run) -> str | None:
        """The boots of Nodes that machines on this host left behind; None, and told, where no plan may be written now."""
        if not run.cluster.control_plane_initialized:
            return ""
        if run.boots_before is not None:
            # The plan is written again: who has come since is who it makes.
            return run.boots_before
        try:
            found = await self._nodes.find(run)
        except OperatorError as error:
            run.tell(
                names.PLAN_APPLIED_CONDITION, FALSE, WORKLOAD_UNREACHABLE, f"it is not known whether the host is a Node: {error.message}"
            )
            run.look_again(_SOON)
            return None
        for node in found:
            if why := await self._remains(run, node):
                run.tell(names.PLAN_APPLIED_CONDITION, FALSE, OLD_NODE_REMAINS, f"no plan is written yet: the Node {node.name} {why}")
                run.look_again(_SOON)
                return None
        return BOOTS.join(sorted({each.boot_id for each in found if each.boot_id}))

    async def _remains(self, run: Run, node: NodeFacts) -> str:
        """Why a Node of this host is waited for.  A Machine that goes takes its Node with it, by name: the new one, by then."""
        if node.ready:
            return "of this host is Ready; waiting for it to go with its last Machine"
        theirs = node.machine if run.owner is not None and node.machine != run.owner.name else ""
        if theirs and await self._cache.get(MACHINE, theirs, run.namespace) is not None:
            return f"is of the Machine {theirs}, which is still there; waiting for both to go"
        return ""

    async def _keep(self, data: _Data) -> None:
        """The data as the host gets it, beside the data as it was made."""
        encoded = b64encode(data.resolved.user_data).decode()
        metadata = data.secret["metadata"]
        if (data.secret.get("data") or {}).get(names.RESOLVED_VALUE_KEY) == encoded:
            return
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "data": {names.RESOLVED_VALUE_KEY: encoded}}
        await self._client.patch(SECRET, metadata["name"], metadata["namespace"], patch, type=PatchType.MERGE)


def _refuse_slave(run: Run, named: str) -> None:
    device = named or DEFAULT_NETWORK_DEVICE
    interfaces = run.claimed.network.interfaces if run.claimed.network is not None else []
    found = next((interface for interface in interfaces if interface.name == device), None)
    if found is not None and found.master:
        raise _Waiting(
            names.NETWORK_DEVICE_IS_SLAVE_REASON,
            f"the network device {device} of {run.claimed.name} is a part of {found.master}: name {found.master} in the pool's entry",
        )
