"""Bodies that are not what they should be are refused with a sentence."""

from __future__ import annotations

import pytest
from embedded.wire import MERGE, Wire, config_map

from slipway.embedded.endpoints import bodies
from slipway.embedded.errors import StatusError

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    "body", [b'{"a":"\xff"}', b"{", b"[]", b"1", b"", b'{"a":' * 5000, b'{"a":' * 300 + b"1" + b"}" * 300, b"k8s\0\n\x03\n\x01\xff"]
)
@pytest.mark.parametrize("content_type", ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"])
def test_a_body_that_cannot_be_read(body: bytes, content_type: str) -> None:
    with pytest.raises(StatusError) as refused:
        bodies.decode(body, content_type, "ConfigMap")
    assert refused.value.code == 400


@pytest.mark.asyncio
async def test_an_apply_whose_metadata_is_no_object_is_refused(asker: Wire) -> None:
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": True}
    code, document = await asker.ask("PATCH", f"{MAPS}/a?fieldManager=f", applied, "application/apply-patch+yaml")
    assert (code, document["message"]) == (400, "metadata must be an object")


@pytest.mark.asyncio
async def test_patches_cannot_pile_up_levels(asker: Wire) -> None:
    await asker.make(MAPS, config_map("a"))
    deep: object = 1
    for _ in range(250):
        deep = {"a": deep}
    code, document = await asker.ask("PATCH", f"{MAPS}/a", {"data": deep}, MERGE)
    assert (code, "exceeded max depth" in document["message"]) == (400, True)
