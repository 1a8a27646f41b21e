"""Makes bootstrap data: gathers what it takes, has it rendered, and keeps it as the data Secret.

Everything that can fail for the user's input comes before anything is written.  What is written can be written again: a token is found by
its id, a certificate and the data Secret by their names.
"""

from __future__ import annotations

import logging
from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import SECRET
from slipway.api.cluster.names import RESTORE_SCRIPT_KEY, RESTORE_SECRET_ANNOTATION
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import certificates
from slipway.fleet.bootstrap import initlock, tokens, version
from slipway.fleet.bootstrap.data import data as bootstrapdata
from slipway.fleet.bootstrap.data import discovery, files, restore
from slipway.fleet.bootstrap.data.data import Rendering, config_reference, data_secret
from slipway.fleet.bootstrap.decision import token_discovery
from slipway.fleet.bootstrap.status import InputError
from slipway.fleet.bootstrap.version import VersionUnreadableError, normalized, template_data
from slipway.fleet.contract import secrets
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.bootstrap.data.data import BootstrapData
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.bootstrap.status import Scope
    from slipway.fleet.bootstrap.tokens import Token
    from slipway.fleet.bootstrap.version import ControlPlaneVersions, JoinVersion
    from slipway.fleet.certificates import CertificateSecrets, KeyPair, Pairs, Purpose
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_log = logging.getLogger("slipway.fleet.bootstrap")

LOCK_RETRY = 30.0
LARGEST_SECRET = 2**20
"""What the API server takes as the values of a Secret, in bytes: the data, and the word for its format."""


class Made(NamedTuple):
    """What came of it.  Without ``stored`` it was somebody else's turn."""

    requeue_after: float = 0.0
    stored: bool = True
    token: Token | None = None
    """A token that was made for it."""


class Maker:
    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        options: BootstrapOptions,
        pairs: CertificateSecrets,
        versions: ControlPlaneVersions,
        workload: WorkloadClusters,
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._pairs = pairs
        self._versions = versions
        self._workload = workload

    async def init(self, scope: Scope) -> Made:
        """For the machine that creates the cluster, if it is the one that may."""
        cluster, machine = scope.cluster, scope.owner.name
        if not await initlock.acquire(self._client, cluster, machine):
            return Made(LOCK_RETRY, stored=False)
        try:
            secret = await self._init_secret(scope)
        except Exception as error:
            # Another machine may have better luck.  From the moment the data may be there, only this one may go on.
            # A reconcile that is cancelled keeps the lock, as one that is killed does: it goes on where it was.
            await self._release(scope, error)
            raise
        await self._write(scope, secret)
        return Made()

    async def _init_secret(self, scope: Scope) -> Manifest:
        cluster = scope.cluster
        own = _own_version(scope)
        configuration = scope.section("clusterConfiguration")
        purposes = certificates.for_control_plane(configuration)
        pairs = await certificates.look_up(self._pairs.read_anew, cluster, purposes)
        if cluster.control_plane_ref is None:
            reference = config_reference(scope.manifest)
            pairs = await certificates.complete(self._client, cluster, purposes, pairs, configuration, reference)
        # kubeadm would make what is missing, and then the cluster would have another CA than its kubeconfigs.
        certificates.require([purpose._replace(key_needed=False) for purpose in purposes], pairs, cluster)
        scope.outcome.certificates = True
        data = template_data(own, await self._version_for_templates(scope))
        found, users = await self._files(scope, data), await self._users(scope)
        if cluster.endpoint and not configuration.get("controlPlaneEndpoint"):
            scope.set_section("clusterConfiguration", {**configuration, "controlPlaneEndpoint": cluster.endpoint})
            await scope.save_spec()
        spec: Mapping[str, Any] = scope.spec
        if secret_name := (scope.manifest["metadata"].get("annotations") or {}).get(RESTORE_SECRET_ANNOTATION):
            script = (await self._secret_reader(scope)(secret_name) or {}).get(RESTORE_SCRIPT_KEY)
            if not script:
                cause = f"there is no {RESTORE_SCRIPT_KEY} to restore etcd with in the Secret {scope.holder.namespace}/{secret_name}"
                raise InputError(f"Failed to create bootstrap data: {cause}", cause)
            spec, found = restore.with_script(spec), [*found, restore.file(script)]
        made = bootstrapdata.init_control_plane(
            spec,
            version=own,
            additional=_additional(scope),
            certificates=certificates.files(purposes, pairs),
            files=found,
            users=users,
        )
        secret = _data_secret(scope, made, Rendering())
        # While the lock can still be given to another machine.
        await secrets.require_free(self._client, secret)
        return secret

    async def join_control_plane(self, scope: Scope) -> Made:
        """For a machine that joins the control plane, with the version of its own: the control plane's controller chose it."""
        own = _own_version(scope)
        purposes = certificates.for_control_plane(scope.section("clusterConfiguration"))
        pairs = await self._existing(scope, purposes)
        data = template_data(own, await self._version_for_templates(scope))
        found, users = await self._files(scope, data), await self._users(scope)
        join = scope.section("joinConfiguration")
        if join.get("controlPlane") is None:
            scope.set_section("joinConfiguration", {**join, "controlPlane": {}})
        token = await self._discovery(scope, pairs[certificates.CA])
        made = bootstrapdata.join_control_plane(
            scope.spec,
            version=own,
            certificates=certificates.files(purposes, pairs),
            files=[*found, *_discovery_files(scope)],
            users=users,
        )
        return await self._store(scope, made, "", token)

    async def join_worker(self, scope: Scope, *, note: str = "") -> Made:
        """For a machine or a pool of machines that join as workers.

        ``note`` is what its condition says of it beside the version.
        """
        if scope.section("joinConfiguration").get("controlPlane") is not None:
            raise InputError(
                "Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object",
                "spec.joinConfiguration.controlPlane is set for a worker",
            )
        pairs = await self._existing(scope, certificates.for_worker())
        join = await self.join_version(scope)
        if scope.outcome.standing is None:
            # Known, whether the data can be made or not; data that is there already tells of its own version until it is replaced.
            scope.outcome.version = join
        found = await self._files(scope, template_data(join.shown, join.control_plane))
        users = await self._users(scope)
        token = await self._discovery(scope, pairs[certificates.CA])
        spec: Mapping[str, Any] = scope.spec
        if self._options.version_file and all(file.get("path") != version.VERSION_FILE for file in found):
            found = [version.version_file(join.shown), *found]
            spec = version.with_file_after_boot(spec, join.shown)
        made = bootstrapdata.join_worker(spec, version=join.version, files=[*found, *_discovery_files(scope)], users=users)
        done = await self._store(scope, made, join.shown, token)
        scope.outcome.version, scope.outcome.note = join, note
        return done

    async def join_version(self, scope: Scope, control_plane: str | None = None) -> JoinVersion:
        """The version that the data of a worker is made for."""
        cluster, owner = scope.cluster, scope.owner
        if control_plane is None:
            control_plane = await self._versions.read(cluster)
        return version.choose(
            self._options.join_version, cluster.control_plane_ref, control_plane, owner.version, f"{owner.kind} {owner.name}"
        )

    async def new_token(self, scope: Scope, previous: str = "") -> Token:
        """A token in the workload cluster; with ``previous``, one that takes its place."""
        try:
            async with self._workload.client(scope.cluster.namespace, scope.cluster.name) as client:
                return await tokens.obtain(client, scope.holder, self._options.token_ttl, scope.now, previous=previous)
        except OperatorError as error:
            raise OperatorError(f"failed to create new bootstrap token: {error.message}") from error

    async def _existing(self, scope: Scope, purposes: list[Purpose]) -> Pairs:
        pairs = await certificates.look_up(self._pairs.read, scope.cluster, purposes)
        certificates.require(purposes, pairs, scope.cluster)
        scope.outcome.certificates = True
        return pairs

    async def _discovery(self, scope: Scope, ca: KeyPair) -> Token | None:
        """Complete the discovery, with a token if there is none yet, and write it; the token, if it was made.

        A kubeconfig file brings its own credentials.
        """
        token = None
        join = scope.section("joinConfiguration")
        found: Mapping[str, Any] = join.get("discovery") or {}
        if discovery.uses_file(found):
            found = discovery.with_file(found, scope.cluster.endpoint, ca.certificate)
        else:
            found = discovery.with_endpoint(found, scope.cluster.endpoint, certificates.ca_hashes(ca.certificate))
            if not found["bootstrapToken"].get("token"):
                token = await self.new_token(scope)
                found = discovery.with_token(found, token.text)
        scope.set_section("joinConfiguration", {**join, "discovery": found})
        await scope.save_spec()
        return token

    async def _files(self, scope: Scope, data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        try:
            return list(
                await files.resolve_files(scope.spec.get("files") or [], self._secret_reader(scope), data, namespace=scope.holder.namespace)
            )
        except OperatorError as error:
            raise InputError(f"Failed to prepare spec.files: {error.message}", error.message) from error

    async def _users(self, scope: Scope) -> list[Mapping[str, Any]]:
        try:
            return list(
                await files.resolve_users(scope.spec.get("users") or [], self._secret_reader(scope), namespace=scope.holder.namespace)
            )
        except OperatorError as error:
            raise InputError(f"Failed to read password from secrets for spec.users: {error.message}", error.message) from error

    async def _version_for_templates(self, scope: Scope) -> str:
        """The control plane's version, where a template may ask for it."""
        if all(files.version_form(file) is None for file in scope.spec.get("files") or ()):
            return ""
        try:
            return await self._versions.read(scope.cluster)
        except VersionUnreadableError as error:
            raise InputError(f"Failed to prepare spec.files: {error.message}", error.message) from error

    def _secret_reader(self, scope: Scope) -> files.ReadSecret:
        async def read(name: str) -> Mapping[str, bytes] | None:
            secret = await self._client.find(SECRET, name, scope.holder.namespace)
            return None if secret is None else {key: b64decode(value) for key, value in (secret.get("data") or {}).items()}

        return read

    async def _store(self, scope: Scope, made: BootstrapData, version: str, token: Token | None) -> Made:
        rendering = Rendering(version, (token_discovery(scope.manifest).get("token") or "").partition(".")[0])
        await self._write(scope, _data_secret(scope, made, rendering))
        return Made(tokens.check_interval(self._options.token_ttl).total_seconds(), token=token)

    async def _write(self, scope: Scope, secret: Manifest) -> None:
        self._cache.wrote(SECRET, await secrets.store(self._client, secret))
        scope.outcome.secret = secret["metadata"]["name"]

    async def _release(self, scope: Scope, error: Exception) -> None:
        try:
            await initlock.release(self._client, scope.cluster, scope.owner.name)
        except OperatorError as second:
            raise OperatorError(f"{error}; and the init lock could not be released: {second.message}") from error


def _own_version(scope: Scope) -> str:
    try:
        return normalized(scope.owner.version)
    except ValueError as error:
        raise InputError(f"Failed to create bootstrap data: {error}", str(error)) from None


def _additional(scope: Scope) -> bootstrapdata.AdditionalData:
    """What kubeadm's ClusterConfiguration takes from Cluster and Machine."""
    cluster = scope.cluster
    timeouts = scope.section("initConfiguration").get("timeouts") or {}
    return bootstrapdata.AdditionalData(
        kubernetes_version=scope.owner.version,
        cluster_name=cluster.name,
        dns_domain=cluster.service_domain,
        service_subnet=cluster.service_subnet,
        pod_subnet=cluster.pod_subnet,
        control_plane_component_health_check_seconds=timeouts.get("controlPlaneComponentHealthCheckSeconds"),
    )


def _discovery_files(scope: Scope) -> Sequence[Mapping[str, Any]]:
    file = discovery.kubeconfig_file(scope.section("joinConfiguration").get("discovery") or {})
    return [] if file is None else [file]


def _data_secret(scope: Scope, made: BootstrapData, rendering: Rendering) -> Manifest:
    if made.warnings:
        _log.warning("The Ignition additions were taken with warnings", extra=fields(warnings=made.warnings))
    if len(made.value) + len(made.format) > LARGEST_SECRET:
        cause = (
            f"the bootstrap data has {len(made.value)} bytes, and a Secret holds at most {LARGEST_SECRET}: put less into spec.files and"
            " the other additions, or let the host fetch it"
        )
        raise InputError(f"Failed to create bootstrap data: {cause}", cause)
    return data_secret(scope.manifest, scope.cluster.name, made.value, made.format, rendering)
