"""What a request accepts."""

from __future__ import annotations

import pytest

from slipway.embedded.endpoints.negotiation import Wanted, wanted
from slipway.embedded.errors import StatusError


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            Wanted("Table", "v1"),
        ),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Wanted("PartialObjectMetadataList", "v1")),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json", Wanted()),
        ("application/json", Wanted()),
        ("*/*", Wanted()),
        ("", Wanted()),
    ],
)
def test_the_accept_header_says_what_is_wanted(accept: str, expected: Wanted) -> None:
    assert wanted(accept) == expected


def test_what_cannot_be_made_is_not_acceptable() -> None:
    with pytest.raises(StatusError) as refused:
        wanted("application/xml")
    assert refused.value.code == 406
