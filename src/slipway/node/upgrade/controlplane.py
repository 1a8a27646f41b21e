"""The control plane of this node, brought to new manifests: etcd first, the API server, then controller manager and scheduler.

Each step is awaited (a new container over the CRI, then the component's own health) before the next one begins; what fails
is taken back, with all that was exchanged before it, and that is awaited too.  How one Pod is exchanged is in swap.py.
The controller manager and the scheduler go together: neither needs the other, and leader election covers both.  An etcd that
is healthy in its new version stays where a later component fails: etcd cannot go back without losing what was written since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml import goyaml
from slipway.host import waiting
from slipway.node import paths
from slipway.node.etcd import membership
from slipway.node.etcd import pod as etcd
from slipway.node.etcd import snapshot as etcdsnapshot
from slipway.node.health import diagnosis
from slipway.node.health import wait as health
from slipway.node.pki import renewal
from slipway.node.staticpods import components as staticpods
from slipway.node.staticpods import patches, rootless
from slipway.node.staticpods import pod as componentpod
from slipway.node.upgrade import swap
from slipway.workload import images
from slipway.workload.etcdapi import EtcdError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext
    from slipway.workload.etcdclient import EtcdClient

ETCD, API_SERVER = "etcd", "kube-apiserver"
_COMPANIONS = ("kube-controller-manager", "kube-scheduler")
_ALL = (ETCD, API_SERVER, *_COMPANIONS)
_CERTIFICATES = {
    ETCD: ("etcd-server", "etcd-peer", "etcd-healthcheck-client"),
    API_SERVER: ("apiserver", "apiserver-kubelet-client", "front-proxy-client", "apiserver-etcd-client"),
    "kube-controller-manager": ("controller-manager.conf",),
    "kube-scheduler": ("scheduler.conf",),
}
_ADMINISTRATORS = {"admin.conf": paths.ADMIN_CONF, "super-admin.conf": paths.SUPER_ADMIN_CONF}
_BACKUP, _NEW = "kubeadm-backup-manifests", "kubeadm-upgraded-manifests"
_MIRROR_HASH = "kubernetes.io/config.hash"
_MIRROR_PATIENCE = 60.0
_NUDGE = 2.0
"""Seconds after which a mirror Pod that still shows the old Pod is deleted, so that the kubelet makes it anew."""


class Wishes(NamedTuple):
    """What an operator asked for."""

    etcd_upgrade: bool = True
    renew_certificates: bool = True
    snapshot_dir: str = ""
    timeout: float = 300.0


class Outcome(NamedTuple):
    """What was done."""

    exchanged: tuple[str, ...]
    backup_dir: str
    snapshot: str = ""


class _Folders(NamedTuple):
    """Where manifests are on their way, as kubeadm names the folders."""

    new: str
    old: str
    etcd: str


def recover(host: Host, progress: Progress) -> None:
    """Put back a manifest that a killed upgrade of the real kubeadm took away and did not replace."""
    kept = [name for name in host.list_dir(paths.TMP_DIR) if name.startswith(f"{_BACKUP}-")]
    for component in _ALL:
        backups = [path for name in kept if host.exists(path := f"{paths.TMP_DIR}/{name}/{component}.yaml")]
        if backups and not host.exists(staticpods.path_of(component)):
            progress.warn(f"[upgrade/staticpods] {component}.yaml is missing: an upgrade was killed; restoring {backups[-1]}")
            host.write(staticpods.path_of(component), host.read(backups[-1]), 0o600)


def was_interrupted(host: Host) -> bool:
    """Whether an earlier upgrade of this node has not come to its end."""
    return any(name.startswith(_NEW) for name in host.list_dir(paths.TMP_DIR))


def upgrade(ctx: NodeContext, cluster: Cluster, wishes: Wishes) -> Outcome:
    """Bring every component to the manifest that the context's configuration makes."""
    stacked = ctx.config.cluster.etcd.external is None
    folders = _make_folders(ctx)
    client = membership.connect(ctx, cluster) if stacked else None
    new = {component: _manifest(ctx, component) for component in staticpods.COMPONENTS}
    if client is not None and wishes.etcd_upgrade and _etcd_may_change(ctx):
        new[ETCD] = _manifest(ctx, ETCD)
    _write_new(ctx, folders, new)
    found = {component: ctx.host.read(staticpods.path_of(component)) for component in new}
    changed = [name for name in _ALL if name in new and not swap.equal(found[name], new[name], ctx.release.minor)]
    old = {component: swap.unmarked(text) for component, text in found.items()}
    for name in new:
        if name not in changed:
            ctx.progress.say(f"[upgrade/staticpods] Current and new manifests of {name} are equal, skipping upgrade")
    snapshot = _keep_etcd(ctx, client, folders, wishes, changed) if client is not None else ""
    if wishes.renew_certificates:
        _renew(ctx, [name for name in _ALL if name in changed or (name == ETCD and stacked and API_SERVER in changed)])
    before = _mirrors(ctx, cluster, changed)
    for name in changed:
        ctx.host.write(f"{folders.old}/{name}.yaml", old[name], 0o600)
    run = _Exchange(ctx, client, wishes.timeout, folders)
    try:
        run.bring({name: new[name] for name in changed}, old)
    except OperatorError as error:
        raise run.taken_back(error, old) from error
    if wishes.renew_certificates:
        _renew_administrators(ctx)
    _await_mirrors(ctx, cluster, before)
    for name in ctx.host.list_dir(paths.TMP_DIR):
        if name.startswith(_NEW):
            ctx.host.remove(f"{paths.TMP_DIR}/{name}")
    if ETCD not in changed:
        ctx.host.remove(folders.etcd)
    return Outcome(tuple(changed), folders.old, snapshot)


class _Exchange:
    """Brings components to given manifests, and remembers which it has touched."""

    def __init__(self, ctx: NodeContext, client: EtcdClient | None, timeout: float, folders: _Folders, *, goes_back: bool = False) -> None:
        self._ctx = ctx
        self._client = client
        self._timeout = timeout
        self._folders = folders
        self._goes_back = goes_back
        self._touched: list[str] = []
        self._done: list[str] = []

    def bring(self, target: Mapping[str, bytes], current: Mapping[str, bytes]) -> None:
        for name in () if self._goes_back else target:
            self._ctx.progress.say(f'[upgrade/staticpods] Preparing for "{name}" upgrade')
        if ETCD in target:
            self._bring_etcd(target[ETCD], target.get(API_SERVER, current[API_SERVER]), current[API_SERVER])
        elif API_SERVER in target:
            self._retire({API_SERVER: target[API_SERVER]})
            self._start({API_SERVER: target[API_SERVER]})
        if rest := {name: target[name] for name in _COMPANIONS if name in target}:
            self._retire(rest)
            self._start(rest)

    def taken_back(self, error: OperatorError, old: Mapping[str, bytes]) -> OperatorError:
        """Roll back what was touched; the error that says how that went."""
        say = self._ctx.progress.say
        target = {name: old[name] for name in _ALL if name in self._touched and not (name == ETCD and ETCD in self._done)}
        say(f"[upgrade/staticpods] The upgrade failed: {error.message}")
        say(f"[upgrade/staticpods] Rolling back [{' '.join(target)}] to the manifests in {self._folders.old}")
        back = _Exchange(self._ctx, self._client, self._timeout, self._folders, goes_back=True)
        try:
            back.bring(target, {API_SERVER: old[API_SERVER]})
        except OperatorError as second:
            return OperatorError(
                f"couldn't upgrade control plane: {error.message}. The earlier manifests were put back, but the control plane did not "
                f"become healthy with them: {second.message}. They are kept in {self._folders.old}, etcd's data in {self._folders.etcd}"
            )
        kept = f"; {ETCD} stays at its new version, which is healthy" if ETCD in self._done else ""
        return OperatorError(
            f"couldn't upgrade control plane. Everything was rolled back to the earlier state and is healthy again{kept}. "
            f"Errors faced: {error.message}"
        )

    def _bring_etcd(self, wanted: bytes, api_server: bytes, api_server_until_then: bytes) -> None:
        """The API server can do nothing without its etcd, and would only make the kubelet wait: it pauses meanwhile."""
        ctx = self._ctx
        self._touched += [name for name in (API_SERVER, ETCD) if name not in self._touched]
        ctx.progress.say(f"[upgrade/etcd] Pausing {API_SERVER} while etcd is exchanged")
        swap.await_end(ctx, [swap.retire(ctx, API_SERVER, api_server_until_then)], self._timeout)
        self._retire({ETCD: wanted})
        swap.await_start(ctx, {ETCD: swap.start(ctx, ETCD, wanted)}, self._timeout)
        ctx.progress.say("[upgrade/etcd] Waiting for etcd to become available")
        self._await_etcd()
        self._succeeded(ETCD)
        self._start({API_SERVER: api_server})

    def _retire(self, target: Mapping[str, bytes]) -> None:
        ctx = self._ctx
        for name in () if self._goes_back else target:
            ctx.progress.say(
                f'[upgrade/staticpods] Moving new manifest to "{staticpods.path_of(name)}" and backing up old manifest to '
                f'"{self._folders.old}/{name}.yaml"'
            )
        self._touched += [name for name in target if name not in self._touched]
        leaving = [swap.retire(ctx, name, text) for name, text in target.items()]
        ctx.progress.say("[upgrade/staticpods] Waiting for the kubelet to restart the component")
        ctx.progress.say(f"[upgrade/staticpods] This can take up to {waiting.shown(self._timeout)}")
        swap.await_end(ctx, leaving, self._timeout)

    def _start(self, target: Mapping[str, bytes]) -> None:
        ctx = self._ctx
        swap.await_start(ctx, {name: swap.start(ctx, name, text) for name, text in target.items()}, self._timeout)
        health.wait_for_components(ctx, tuple(target), self._timeout)
        for name in target:
            self._succeeded(name)

    def _succeeded(self, name: str) -> None:
        self._done.append(name)
        words = "is back and healthy" if self._goes_back else "upgraded successfully!"
        self._ctx.progress.say(f'[upgrade/staticpods] Component "{name}" {words}')

    def _await_etcd(self) -> None:
        ctx, client = self._ctx, self._client
        if client is None:
            raise OperatorError("etcd is external: there is no member on this node to wait for")
        own, look = etcd.client_url(ctx.config.local_api_endpoint), diagnosis.Look(ctx)

        def healthy() -> str:
            if hopeless := look.hopeless([ETCD]):
                raise OperatorError(f"etcd does not start: {hopeless}\n{diagnosis.explain(ctx, [ETCD])}")
            try:
                client.status(own)
            except EtcdError as error:
                return f"the etcd member of this node does not answer: {error.message}"
            return membership.health_problem(ctx, client)

        waiting.until(healthy, timeout=self._timeout)


def _manifest(ctx: NodeContext, component: str) -> bytes:
    pod = etcd.manifest(ctx) if component == ETCD else staticpods.manifest(component, ctx)
    if componentpod.without_root(ctx):
        pod = rootless.apply(ctx, component, pod)
    return goyaml.dump(patches.patch(ctx, component, pod)).encode()


def _etcd_may_change(ctx: NodeContext) -> bool:
    """An etcd that is newer than the one that would replace it stays."""
    path = staticpods.path_of(ETCD)
    wanted = images.etcd_tag(ctx.config.cluster, ctx.release)
    current = swap.image_of(ctx.host.read(path), path).rpartition(":")[2]
    try:
        older = _version(wanted) < _version(current)
    except ValueError as error:
        raise OperatorError(f"failed comparing the current etcd version {current!r} to the desired one {wanted!r}: {error}") from None
    if older:
        ctx.progress.say(
            f'[upgrade/etcd] Non fatal issue encountered during upgrade: the desired etcd version "{wanted}" is older than the currently '
            f'installed "{current}". Skipping etcd upgrade'
        )
    return not older


def _version(tag: str) -> Version:
    return Version.parse(tag.replace("_", "+", 1))


def _keep_etcd(ctx: NodeContext, client: EtcdClient, folders: _Folders, wishes: Wishes, changed: Sequence[str]) -> str:
    """Refuse to touch an etcd that is not well; keep its data where it will be touched."""
    membership.check_health(ctx, client)
    path = ""
    if wishes.snapshot_dir:
        taken = etcdsnapshot.save(client, wishes.snapshot_dir, ctx.host.now(), ctx.host)
        ctx.progress.say(f"[upgrade/etcd] Saved a snapshot of etcd to {taken}")
        path = taken.path
    local = ctx.config.cluster.etcd.local
    if ETCD in changed and local is not None:
        ctx.host.make_dir(folders.etcd)
        copied = ctx.host.run("cp", "-r", local.data_dir, folders.etcd)
        if copied.code != 0:
            raise OperatorError(f"failed to back up etcd data: {copied.stderr.strip()}")
    return path


def _renew(ctx: NodeContext, components: Sequence[str]) -> None:
    stacked = ctx.config.cluster.etcd.external is None
    names = [each for name in components for each in _CERTIFICATES[name] if stacked or each != "apiserver-etcd-client"]
    ctx.keys.expect(ctx.config.cluster.key_algorithm, len(names) + len(_ADMINISTRATORS))
    for name in names:
        ctx.progress.say(f"[upgrade/staticpods] Renewing {name} certificate")
        _renew_one(ctx, name)


def _renew_administrators(ctx: NodeContext) -> None:
    for name, path in _ADMINISTRATORS.items():
        if ctx.host.exists(path) or name == "admin.conf":
            _renew_one(ctx, name)


def _renew_one(ctx: NodeContext, name: str) -> None:
    if not renewal.renew_for_upgrade(ctx, name):
        ctx.progress.say(f"[upgrade/staticpods] External CA detected, {name} certificate can't be renewed")


def _make_folders(ctx: NodeContext) -> _Folders:
    import random

    now = f"{ctx.host.now():%Y-%m-%d-%H-%M-%S}"
    return _Folders(
        new=f"{paths.TMP_DIR}/{_NEW}{random.randrange(10**9, 10**10)}",
        old=f"{paths.TMP_DIR}/{_BACKUP}-{now}",
        etcd=f"{paths.TMP_DIR}/kubeadm-backup-etcd-{now}",
    )


def _write_new(ctx: NodeContext, folders: _Folders, new: Mapping[str, bytes]) -> None:
    ctx.progress.say(f'[upgrade/staticpods] Writing new Static Pod manifests to "{ctx.host.location(folders.new)}"')
    for component, text in new.items():
        ctx.host.write(f"{folders.new}/{component}.yaml", text, 0o600)


def _mirrors(ctx: NodeContext, cluster: Cluster, components: Sequence[str]) -> dict[str, str]:
    """The hash that each mirror Pod shows, by its name."""
    names = [f"{component}-{ctx.config.node_registration.name}" for component in components]
    found = {name: cluster.get("v1", "Pod", name, "kube-system") or {} for name in names}
    return {name: ((pod.get("metadata") or {}).get("annotations") or {}).get(_MIRROR_HASH, "") for name, pod in found.items()}


def _await_mirrors(ctx: NodeContext, cluster: Cluster, before: Mapping[str, str]) -> None:
    """Others judge this node by its mirror Pods; the kubelet, which lost the API server, may take a minute to renew them."""
    import time

    began, nudged = time.monotonic(), set[str]()

    def renewed() -> str:
        names = [name.removesuffix(f"-{ctx.config.node_registration.name}") for name in before]
        shown = _mirrors(ctx, cluster, names)
        stale = [name for name, digest in shown.items() if digest in ("", before[name])]
        for name in stale:
            if shown[name] and name not in nudged and time.monotonic() - began > _NUDGE:
                nudged.add(name)
                cluster.delete("v1", "Pod", name, "kube-system")
        return f"the kubelet has not renewed the mirror Pods {' '.join(stale)}" if stale else ""

    if before:
        try:
            waiting.until(renewed, timeout=_MIRROR_PATIENCE, interval=0.2)
        except waiting.TimedOutError as error:
            ctx.progress.warn(f"[upgrade/staticpods] {error.message}; the components themselves are healthy")
