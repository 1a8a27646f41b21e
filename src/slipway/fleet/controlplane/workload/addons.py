"""kube-proxy and CoreDNS of a workload cluster: which images they are to have, and what becomes of the Corefile; decisions on values.

kube-proxy has the version of the control plane.  CoreDNS changes only when the spec names a tag or another repository, as in Cluster API:
which CoreDNS a registry has is for its owner to know.  Who would rather have the one that comes with each Kubernetes says so with an
annotation on the control plane (:data:`FOLLOW_ANNOTATION`); then none is left behind by upgrades.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api import releases
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.workload import corefile, images
from slipway.workload.coredns import BACKUP, COREFILE, NAME, corefile_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest

FOLLOW_ANNOTATION = "slipway.io/coredns-follows-kubernetes"
# Where Kubernetes' own registry, under either of its names, has CoreDNS since 1.8.0.
_OWN_REGISTRIES = ("registry.k8s.io", "k8s.gcr.io")
_RENAMED_SINCE = Version(1, 8, 0)


class Image(NamedTuple):
    repository: str
    name: str
    tag: str
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> Image:
        rest, _, digest = text.partition("@")
        path, slash, last = rest.rpartition("/")
        name, _, tag = last.partition(":")
        if not slash or not name:
            raise OperatorError(f'the image "{text}" has no repository in front of its name')
        return cls(path, name, tag, digest)


class CoreDns(NamedTuple):
    """What is to become of CoreDNS."""

    image: str
    corefile: str
    """In the form that the new CoreDNS reads."""
    original: str
    """The Corefile before that: CoreDNS goes on with it until the new one is rolled out, and it is kept as a backup."""


def kube_proxy_image(daemon_set: Manifest, version: str, repository: str) -> str | None:
    """The image that kube-proxy is to have; None where it has it, or where there is no such container."""
    current = _image_of(daemon_set, "kube-proxy")
    if current is None:
        return None
    image = Image.parse(current)
    if image.digest:
        raise OperatorError(f'kube-proxy has the image "{current}" by its digest, and no tag can be given to that')
    wanted = f"{(repository or image.repository).rstrip('/')}/{image.name}:{images.tag_of_version(version)}"
    return wanted if wanted != current else None


def core_dns(config_map: Manifest, deployment: Manifest, spec: Mapping[str, Any], version: str, *, follows: bool = False) -> CoreDns | None:
    """None where CoreDNS is as it is to be; ``spec`` is the clusterConfiguration of the control plane."""
    current = _image_of(deployment, NAME)
    if current is None:
        raise OperatorError(f'the Deployment "{NAME}" of the workload cluster has no container "{NAME}"')
    image, dns = Image.parse(current), spec.get("dns") or {}
    if not image.tag:
        raise OperatorError(f'the image of CoreDNS has no tag: "{current}"')
    tag = dns.get("imageTag") or (_tag_of_release(image.tag, version) if follows else image.tag)
    repository = (dns.get("imageRepository") or spec.get("imageRepository") or image.repository).rstrip("/")
    running, target = _version(image.tag), _version(tag)
    name = "coredns/coredns" if repository in _OWN_REGISTRIES and image.name == NAME and target >= _RENAMED_SINCE else image.name
    wanted = f"{repository}/{name}:{tag}"
    if wanted == current:
        return None
    if running > target:
        raise OperatorError(f"CoreDNS is {image.tag} and is to be {tag}: it cannot go back to an older version")
    # A run that was killed left the Deployment with the backup: the Corefile may be in its new form already.
    killed = _mounted_key(deployment) == BACKUP and BACKUP in (config_map.get("data") or {})
    original = str(config_map["data"][BACKUP]) if killed else corefile_of(config_map)
    steps = corefile.steps(str(running), str(target), newest=corefile.VERSIONS[-1])
    return CoreDns(wanted, corefile.migrate(original, steps), original)


def _tag_of_release(tag: str, version: str) -> str:
    """The newer one of what runs and what the release of Kubernetes comes with."""
    own = releases.release_for(Version.tolerant(version)).coredns_version
    return own if _version(own) > _version(tag) else tag


def _version(tag: str) -> Version:
    try:
        # A tag cannot hold the plus of a build.
        parsed = Version.tolerant(tag.replace("_", "+"))
    except ValueError as error:
        raise OperatorError(f'the tag "{tag}" of CoreDNS is no version: {error}') from None
    return Version(parsed.major, parsed.minor, parsed.patch)


def _image_of(workload: Manifest, container: str) -> str | None:
    containers = workload["spec"]["template"]["spec"].get("containers") or ()
    return next((str(item.get("image", "")) for item in containers if item.get("name") == container), None)


def volumes(deployment: Manifest, key: str) -> list[Manifest]:
    """The volumes of the Deployment, with the Corefile from another key of the ConfigMap."""
    return [_with_key(volume, key) for volume in deployment["spec"]["template"]["spec"].get("volumes") or ()]


def _with_key(volume: Manifest, key: str) -> Manifest:
    if not _is_config(volume):
        return volume
    items = [{**item, "key": key} if item.get("key") in (COREFILE, BACKUP) else item for item in volume["configMap"].get("items") or ()]
    return {**volume, "configMap": {**volume["configMap"], "items": items}}


def _mounted_key(deployment: Manifest) -> str:
    items = [
        item
        for volume in deployment["spec"]["template"]["spec"].get("volumes") or ()
        if _is_config(volume)
        for item in volume["configMap"].get("items") or ()
    ]
    return next((str(item.get("key")) for item in items if item.get("key") in (COREFILE, BACKUP)), "")


def _is_config(volume: Manifest) -> bool:
    return volume.get("name") == "config-volume" and (volume.get("configMap") or {}).get("name") == NAME
