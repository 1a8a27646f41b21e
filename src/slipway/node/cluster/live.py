"""A cluster that is there: kubeadm's ways of writing to it, over the Kubernetes client.

What may succeed in a moment is tried again until ``patience`` seconds have passed: a control plane that is just starting
refuses connections, has no namespaces yet, or does not know its own roles.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.kube import errors, kubeconfig
from slipway.kube.client import Client
from slipway.kube.connection import Connection, from_kubeconfig
from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.api.machinery.version import Version
    from slipway.host.interface import Host

_T = TypeVar("_T")

_INVALID = 422
# What the kubelet puts on a Node when it registers it.
_HOSTNAME_LABEL = "kubernetes.io/hostname"
# How many objects are written at once.
_WRITERS = 8
# Seconds between tries: quick at first, as most waits are short.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
# Seconds that a reader is refused at most where its role binding is new.
_BINDING_DELAY = 2.0
# A wait that is longer than this many seconds is told.
_UNTOLD_WAIT = 1.0


class LiveCluster:
    """A Cluster over a client; ``waiting`` is told what is waited for, where it takes longer."""

    def __init__(self, client: Client, *, patience: float = 60.0, waiting: Callable[[str], None] | None = None) -> None:
        self.client = client
        self._patience = patience
        self._waiting = waiting

    def apply(self, manifest: Manifest) -> None:
        def write() -> None:
            try:
                self.client.create(manifest)
            except errors.AlreadyExistsError:
                self._replace(manifest)
            except errors.ApiError as error:
                # A Service that is there is told apart by the address that it has and that is not free any more.
                if error.code != _INVALID or manifest["kind"] != "Service" or self._read(manifest) is None:
                    raise
                self._replace(manifest)

        self._try(f"write the {_described(manifest)}", write, _may_be_written_later)

    def apply_all(self, manifests: Iterable[Manifest]) -> None:
        chosen = list(manifests)
        if len(chosen) < 2:
            for manifest in chosen:
                self.apply(manifest)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(_WRITERS, len(chosen))) as pool:
            for done in [pool.submit(self.apply, manifest) for manifest in chosen]:
                done.result()

    def create(self, manifest: Manifest) -> Manifest:
        lost = False

        def write() -> Manifest:
            nonlocal lost
            try:
                return self.client.create(manifest)
            except errors.UnreachableError:
                lost = True
                raise
            except errors.AlreadyExistsError:
                # The try whose answer was lost may have made it.
                found = self._read(manifest) if lost else None
                if found is None:
                    raise
                return found

        return self._try(f"create the {_described(manifest)}", write, _may_be_written_later)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Manifest | None:
        return self._try(f'read the {kind} "{name}"', lambda: self.client.get(api_version, kind, name, namespace))

    def list(
        self, api_version: str, kind: str, namespace: str, labels: Mapping[str, str], fields: Mapping[str, str] | None = None
    ) -> Sequence[Manifest]:
        return self._try(
            f"list objects of the kind {kind}", lambda: self.client.list(api_version, kind, namespace, labels=labels, fields=fields)
        )

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> bool:
        return self._try(f'delete the {kind} "{name}"', lambda: self.client.delete(api_version, kind, name, namespace))

    def patch(self, api_version: str, kind: str, name: str, namespace: str, patch: Manifest) -> None:
        self._try(
            f'change the {kind} "{name}"', lambda: self.client.patch(api_version, kind, name, namespace, patch), _may_be_written_later
        )

    def server_version(self) -> Version:
        return self._try("read the version of the API server", self.client.server_version)

    def amend_node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[Manifest] = (),
        dropped_annotations: Sequence[str] = (),
    ) -> None:
        def amend() -> None:
            node = self.client.get("v1", "Node", name)
            if node is None or _HOSTNAME_LABEL not in (node["metadata"].get("labels") or {}):
                raise _NotRegisteredError(f'the kubelet has not registered the Node "{name}" yet')
            wanted = node_patch(node, labels or {}, annotations or {}, taints, dropped_annotations)
            if wanted:
                self.client.patch("v1", "Node", name, "", wanted)

        self._try(f'change the Node "{name}"', amend, _may_be_written_later)

    def _replace(self, manifest: Manifest) -> None:
        """Update the object that is there with the whole of another one, as kubeadm does: what others added to it goes."""
        try:
            self.client.update(manifest)
        except errors.ApiError as error:
            # Some kinds want to know which state of theirs is replaced.
            if error.code != _INVALID or "resourceVersion" not in error.message:
                raise
            found = self._read(manifest)
            version = {"resourceVersion": (found or manifest)["metadata"].get("resourceVersion", "")}
            self.client.update({**manifest, "metadata": {**manifest["metadata"], **version}})

    def _read(self, manifest: Manifest) -> Manifest | None:
        metadata = manifest["metadata"]
        return self.client.get(manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace", ""))

    def _try(self, what: str, action: Callable[[], _T], passing: Callable[[Exception, float], bool] | None = None) -> _T:
        """Do it, and again while it fails for a reason that passes."""
        began, pause, told = time.monotonic(), _FIRST_PAUSE, ""
        while True:
            try:
                return action()
            except OperatorError as error:
                waited = time.monotonic() - began
                if not (passing or _may_be_read_later)(error, waited):
                    raise
                if not self._patience:
                    raise
                if waited + pause > self._patience:
                    raise _timed_out(error, what, waited) from error
                if self._waiting and waited > _UNTOLD_WAIT and error.message != told:
                    told = error.message
                    self._waiting(f"cannot {what} yet: {told}")
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


class _NotRegisteredError(OperatorError):
    """A Node that the kubelet is about to make."""


def connect(
    host: Host, path: str, *, server: str = "", patience: float = 60.0, waiting: Callable[[str], None] | None = None
) -> LiveCluster:
    """The cluster of a kubeconfig file of the host; ``server`` replaces its server."""
    connection = connection_of(host, path)
    if server:
        connection = msgspec.structs.replace(connection, server=server)
    return LiveCluster(Client(connection, environment=host.environment), patience=patience, waiting=waiting)


def connection_of(host: Host, path: str) -> Connection:
    """Where a kubeconfig file of the host leads."""
    try:
        content = host.read(path)
    except OSError as error:
        whose = "admin " if path == paths.ADMIN_CONF else ""
        reason = (error.strerror or str(error)).lower()
        raise OperatorError(f"failed to load {whose}kubeconfig: open {host.location(path)}: {reason}") from None
    return from_kubeconfig(kubeconfig.load(content, path), host.read, source=path)


def node_patch(
    node: Manifest,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    taints: Sequence[Manifest],
    dropped_annotations: Sequence[str],
) -> Manifest:
    """The strategic merge patch that adds to a Node what it lacks; empty where it lacks nothing."""
    metadata: Manifest = {}
    missing = {name: value for name, value in labels.items() if (node["metadata"].get("labels") or {}).get(name) != value}
    present = node["metadata"].get("annotations") or {}
    changed: dict[str, str | None] = {name: value for name, value in annotations.items() if present.get(name) != value}
    changed |= {name: None for name in dropped_annotations if name in present}
    if missing:
        metadata["labels"] = missing
    if changed:
        metadata["annotations"] = changed
    patch: Manifest = {}
    existing = (node.get("spec") or {}).get("taints") or []
    places = {_place(taint) for taint in taints}
    merged = [*taints, *(taint for taint in existing if _place(taint) not in places)]
    if taints and any(taint not in existing for taint in taints):
        # The list is replaced as a whole: with its resourceVersion, a taint that somebody adds meanwhile is a conflict and not lost.
        patch["spec"] = {"taints": merged}
        metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
    return {"metadata": metadata, **patch} if metadata else patch


def _place(taint: Manifest) -> tuple[str, str]:
    """A Node has one taint for each of these."""
    return taint["key"], taint.get("effect", "")


def _may_be_read_later(error: Exception, waited: float) -> bool:
    return errors.is_transient(error) or (isinstance(error, errors.ForbiddenError) and waited < _BINDING_DELAY)


def _may_be_written_later(error: Exception, waited: float) -> bool:
    """kubeadm repeats whatever failed; these are the failures that a starting control plane has and that pass.

    A role that is not bound yet, a namespace that is not made yet, a change by somebody else in between.
    """
    passing = (errors.ForbiddenError, errors.NotFoundError, errors.ConflictError, _NotRegisteredError)
    return errors.is_transient(error) or isinstance(error, passing)


def _timed_out(error: OperatorError, what: str, waited: float) -> OperatorError:
    """The last failure, of its own kind, with what was tried for how long."""
    error.message = f"could not {what} within {waited:.1f}s: {error.message}"
    error.args = (error.message,)
    return error


def _described(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    place = f' in the namespace "{metadata["namespace"]}"' if metadata.get("namespace") else ""
    return f'{manifest["kind"]} "{metadata["name"]}"{place}'
