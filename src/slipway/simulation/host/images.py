"""Operating-system images, and the registry that hosts pull them from."""

from __future__ import annotations

import hashlib
import threading
from typing import NamedTuple


class OsImage(NamedTuple):
    """What a host boots: the Kubernetes in it is its own, whatever anybody hoped for."""

    reference: str
    kubernetes: str
    """The version of its kubelet and kubeadm, such as ``v1.35.4``."""
    size: int = 2 << 30

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(f'{self.reference} {self.kubernetes}'.encode()).hexdigest()}"

    def os_release(self) -> str:
        return (
            f'ID=slipway-sim\nVERSION_ID="{self.kubernetes.removeprefix("v")}"\nIMAGE="{self.reference}"\n'
            f'PRETTY_NAME="Simulated OS with Kubernetes {self.kubernetes}"\n'
        )


class ImageRegistry:
    """Who has the images; it can be away, as a whole, slow, and end in the middle of a layer."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.reachable = True
        self.broken = 0
        """How many pulls from now on end in the middle of a layer."""
        self.flows = threading.Event()
        """While it is not set, a layer that is being pulled does not get on."""
        self.flows.set()
        self._images: dict[str, OsImage] = {}

    def push(self, repository: str, tag: str, kubernetes: str) -> OsImage:
        """A new image; by its tag and by its digest it is found from now on."""
        image = OsImage(f"{self.address}/{repository}:{tag}", kubernetes)
        self._images[image.reference] = image
        self._images[f"{self.address}/{repository}@{image.digest}"] = image
        return image

    def hold(self, reference: str, kubernetes: str) -> OsImage:
        """An image under a reference as somebody wrote it, with a tag, a digest or both."""
        image = OsImage(reference, kubernetes)
        self._images[_without_tag(reference)] = image
        return image

    def pull(self, reference: str) -> OsImage | None:
        """The image of a reference with or without a scheme; None where there is none, or no answer."""
        name = reference
        for scheme in ("docker://", "oci://", "docker:", "oci:"):
            name = name.removeprefix(scheme)
        if not self.reachable:
            return None
        return self._images.get(_without_tag(name))


def _without_tag(reference: str) -> str:
    """With a digest the tag says nothing; without one it is all there is."""
    repository, at, digest = reference.partition("@")
    if not at:
        return reference
    head, slash, last = repository.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest}"
