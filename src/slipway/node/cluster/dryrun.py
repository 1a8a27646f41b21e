"""A cluster that is only talked about: every request is remembered, and shown in the form in which kubeadm's dry run shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from slipway.api.machinery import gotypes
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host.progress import WITHHELD, Sensitive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.api.machinery.version import Version
    from slipway.api.releases import Release
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster

_T = TypeVar("_T")


class DryRunCluster:
    """Remembers what was written, and shows every request in the form in which kubeadm's dry run shows it.

    ``imagined`` are the objects of a cluster that is not there, for commands that start with reading one, and ``lists``
    what it answers for whole kinds.  A Node is always imagined.  Where ``expects_cluster`` is set, requests say first
    that no real object was found.  ``real`` is a cluster that is there: what it has is shown and believed, and never changed.
    """

    def __init__(
        self,
        progress: Progress,
        release: Release,
        *,
        imagined: Iterable[Manifest] = (),
        lists: Mapping[str, Sequence[Manifest]] | None = None,
        expects_cluster: bool = False,
        real: Cluster | None = None,
    ) -> None:
        self._progress = progress
        self._release = release
        self._imagined = {_key(manifest): manifest for manifest in imagined}
        self._lists = lists or {}
        self._expects_cluster = expects_cluster
        self._real = real
        self._written: dict[tuple[str, str, str, str], Manifest] = {}

    def apply(self, manifest: Manifest) -> None:
        self._announce("CREATE", manifest["apiVersion"], manifest["kind"])
        self._attach(manifest)
        key = _key(manifest)
        if key in self._written:
            self._announce("UPDATE", manifest["apiVersion"], manifest["kind"])
            self._attach(manifest)
        self._written[key] = manifest

    def apply_all(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            self.apply(manifest)

    def create(self, manifest: Manifest) -> Manifest:
        self._announce("CREATE", manifest["apiVersion"], manifest["kind"])
        self._written[_key(manifest)] = manifest
        return self._attach(manifest)

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> bool:
        self._announce("DELETE", api_version, kind, name, namespace)
        self._written.pop((api_version, kind, namespace, name), None)
        if kind == "Secret":
            # Only for a token's Secret does kubeadm show what it would delete.
            self._attach({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
        return True

    def patch(self, api_version: str, kind: str, name: str, namespace: str, patch: Manifest) -> None:
        self._announce("PATCH", api_version, kind, name, namespace)
        self._progress.say("[dryrun] Attached patch:")
        self._progress.show(goyaml.dump(patch) + "\n")

    def server_version(self) -> Version:
        return self._real.server_version() if self._real else self._release.version

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Manifest | None:
        self._announce("GET", api_version, kind, name, namespace)
        found = self._ask(lambda real: real.get(api_version, kind, name, namespace))
        if found is not None:
            return self._attach(found)
        key = (api_version, kind, namespace, name)
        imagined = imagined_node(name, self._release) if kind == "Node" else self._imagined.get(key)
        if imagined is None or self._expects_cluster:
            self._say_absent("GET")
        return self._written.get(key) if imagined is None else self._attach(imagined)

    def list(
        self, api_version: str, kind: str, namespace: str, labels: Mapping[str, str], fields: Mapping[str, str] | None = None
    ) -> Sequence[Manifest]:
        """``fields`` only matter to a real cluster."""
        self._announce("LIST", api_version, kind)
        found = self._ask(lambda real: real.list(api_version, kind, namespace, labels, fields))
        if found is not None:
            shown = [as_printed(manifest, self._release) for manifest in found]
            self._show({"apiVersion": api_version, "kind": f"{kind}List", "metadata": {}, "items": shown})
            return found
        known = self._lists.get(kind)
        if known is None:
            self._say_absent("LIST")
            written = self._written.values()
            known = [manifest for manifest in written if _scope(manifest) == (api_version, kind, namespace)]
        else:
            self._attach({"apiVersion": api_version, "kind": f"{kind}List", "metadata": {}, "items": known})
        return [manifest for manifest in known if labels.items() <= manifest["metadata"].get("labels", {}).items()]

    def amend_node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[Manifest] = (),
        dropped_annotations: Sequence[str] = (),
    ) -> None:
        """What is shown is the imagined Node, before and after: kubeadm does not show the change either."""
        self.get("v1", "Node", name)
        self._announce("PATCH", "v1", "Node", name)
        self._attach(imagined_node(name, self._release))

    def _ask(self, question: Callable[[Cluster], _T]) -> _T | None:
        """What the real cluster answers; a dry run goes on where it does not."""
        if self._real is None:
            return None
        try:
            return question(self._real)
        except OperatorError as error:
            self._progress.warn(f"[dryrun] The cluster does not answer: {error.message}")
            return None

    def _announce(self, action: str, api_version: str, kind: str, name: str = "", namespace: str = "") -> None:
        group = api_version if "/" in api_version else f"core/{api_version}"
        self._progress.say(f'[dryrun] Would perform action {action} on resource "{kind.lower()}s" in API group "{group}"')
        if name:
            self._progress.say(f'[dryrun] Resource name "{name}", namespace "{namespace}"')

    def _say_absent(self, action: str) -> None:
        self._progress.say(
            f"[dryrun] Real object does not exist. Attempting to {action} from followup reactors or from the fake client tracker"
        )

    def _attach(self, manifest: Manifest) -> Manifest:
        self._show(as_printed(manifest, self._release))
        return manifest

    def _show(self, printed: Manifest) -> None:
        self._progress.say("[dryrun] Attached object:")
        text, public = goyaml.dump(printed) + "\n", _without_secrets(printed)
        self._progress.show(text if public == printed else Sensitive.beside(text, goyaml.dump(public) + "\n"))


def _without_secrets(printed: Manifest) -> Manifest:
    """An object, or a list of them, with the data of Secrets withheld."""
    if printed["kind"] == "SecretList":
        return {**printed, "items": [_without_secrets({**item, "kind": "Secret"}) for item in printed["items"]]}
    if printed["kind"] != "Secret":
        return printed
    return {**printed, **{field: dict.fromkeys(printed[field], WITHHELD) for field in ("data", "stringData") if printed.get(field)}}


def imagined_node(name: str, release: Release) -> Manifest:
    """The Node that a dry run works with; its label is what tells kubeadm that the kubelet has registered it."""
    metadata: Manifest = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    if release.imagined_cri_socket:
        metadata["annotations"] = {"kubeadm.alpha.kubernetes.io/cri-socket": release.imagined_cri_socket}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


# What Go prints of a Node that has nothing in it.
_NODE_INFO = (
    "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion", "machineID",
    "operatingSystem", "osImage", "systemUUID",
)  # fmt: skip
_BARE_NODE = {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": dict.fromkeys(_NODE_INFO, "")}}

# Kinds that are not in the tables of Go's types: the Job that tries a real cluster before an upgrade.
_SHOWN_AS_THEY_ARE = ("Job",)


def as_printed(manifest: Manifest, release: Release) -> Manifest:
    """The object as Go's types of the release print it, with fields that are printed even where they are empty."""
    if manifest["kind"] == "Node":
        timestamp = {"creationTimestamp": None} if release.null_creation_timestamp else {}
        return {**_BARE_NODE, **manifest, "metadata": {**timestamp, **manifest["metadata"]}}
    if "items" in manifest:
        items = [as_printed(item, release) for item in manifest["items"]]
        return {**manifest, "items": [{key: item[key] for key in item if key not in ("apiVersion", "kind")} for item in items]}
    if manifest["kind"] in _SHOWN_AS_THEY_ARE:
        return manifest
    normalised, _ = gotypes.decode(manifest, manifest["kind"], release.minor)
    return gotypes.encode(normalised, manifest["kind"], release.minor)


def _scope(manifest: Manifest) -> tuple[str, str, str]:
    return manifest["apiVersion"], manifest["kind"], manifest["metadata"].get("namespace", "")


def _key(manifest: Manifest) -> tuple[str, str, str, str]:
    metadata = manifest["metadata"]
    return manifest["apiVersion"], manifest["kind"], metadata.get("namespace", ""), metadata["name"]
