"""The folder in which a registry keeps its images, laid out as the registry of the CNCF's distribution project has it on disk.

Images are put there instead of being pushed: the blobs of an OS image are hundreds of megabytes, and a rename is at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.host.real import RealHost

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from slipway.lab.registry.layers import Blob, OCIImage


class Storage:
    """The files of a registry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = folder / "docker" / "registry" / "v2"

    def blob(self, digest: str) -> Path:
        """Where a blob is."""
        hexadecimal = digest.removeprefix("sha256:")
        return self._root / "blobs" / "sha256" / hexadecimal[:2] / hexadecimal / "data"

    def has(self, digest: str) -> bool:
        return self.blob(digest).exists()

    def take(self, source: Path, digest: str) -> None:
        """Move a file in as a blob."""
        target = self.blob(digest)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)

    def add(self, image: OCIImage, repository: str, tag: str) -> None:
        """Make an image known whose layers are there, the tag last: it never names what is not whole."""
        for document in (image.config, image.manifest):
            if not self.has(document.digest):
                self._write(self.blob(document.digest), document.content)
        for path, blob in links(image, tag).items():
            self._write(self._root / "repositories" / repository / path / "link", blob.digest.encode())

    def remove_tag(self, repository: str, tag: str) -> None:
        """Forget a tag; the image stays to be had by digest."""
        (self._root / "repositories" / repository / "_manifests" / "tags" / tag / "current" / "link").unlink(missing_ok=True)

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        RealHost().write(str(path), content, 0o644)


def links(image: OCIImage, tag: str) -> Mapping[str, Blob]:
    """What a repository refers to, in the order in which it may be seen."""
    found = {f"_layers/sha256/{blob.hex}": blob for blob in (*image.layers, image.config)}
    found[f"_manifests/revisions/sha256/{image.manifest.hex}"] = image.manifest
    found[f"_manifests/tags/{tag}/index/sha256/{image.manifest.hex}"] = image.manifest
    found[f"_manifests/tags/{tag}/current"] = image.manifest
    return found
