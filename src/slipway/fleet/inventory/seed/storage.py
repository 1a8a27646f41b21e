"""Where a seed is kept between its making and its download: a Secret of its SeedImage, which every replica reads."""

from __future__ import annotations

import gzip
import hashlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime import owners

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

SECRET_TYPE = "slipway.io/seed-image"
_IMAGE, _CHECKSUM = "image.gz", "sha256"
# A Secret holds a mebibyte (MaxSecretSize of Kubernetes).
_LARGEST = (1 << 20) - 4096


class Seed(NamedTuple):
    image: bytes
    checksum: str


def secret_name(seed_image: str) -> str:
    return f"{seed_image}-seed"


async def store(client: AsyncClient, owner: Manifest, image: bytes | None) -> None:
    """Keep an image, in the place of an earlier one; None empties the place."""
    metadata = owner["metadata"]
    name, namespace = secret_name(metadata["name"]), metadata["namespace"]
    data: dict[str, str] = {}
    if image is not None:
        packed = gzip.compress(image, mtime=0)
        if len(packed) > _LARGEST:
            raise OperatorError(
                f"the image has {len(packed)} bytes when packed, more than the {_LARGEST} that can be kept: shorten cloud-config"
            )
        checksum = hashlib.sha256(image).hexdigest()
        data = {_IMAGE: b64encode(packed).decode(), _CHECKSUM: b64encode(checksum.encode()).decode()}
    found = await client.find(SECRET, name, namespace)
    if found is None and image is not None:
        reference = owners.reference(owner, block_deletion=False)
        made = {"metadata": {"name": name, "namespace": namespace, "ownerReferences": [reference]}, "type": SECRET_TYPE, "data": data}
        try:
            await client.create(SECRET, made)
            return
        except AlreadyExistsError:
            found = await client.get(SECRET, name, namespace)
    if found is None:
        return
    if found.get("type") != SECRET_TYPE or not owners.is_controlled_by(found, owner):
        raise OperatorError(f"the Secret {namespace}/{name} was not made for the SeedImage {metadata['name']}: rename or delete it")
    if (found.get("data") or {}) != data:
        await client.update(SECRET, {**found, "data": data})


async def load(client: AsyncClient, name: str, namespace: str, uid: str) -> Seed | None:
    """The image of a SeedImage; None where there is none, or the Secret is somebody else's."""
    found = await client.find(SECRET, secret_name(name), namespace)
    if found is None or found.get("type") != SECRET_TYPE or not owners.is_controlled_by(found, {"metadata": {"uid": uid}}):
        return None
    data = found.get("data") or {}
    if _IMAGE not in data:
        return None
    return Seed(gzip.decompress(b64decode(data[_IMAGE])), b64decode(data[_CHECKSUM]).decode())
