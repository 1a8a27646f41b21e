"""Signatures against the examples that AWS publishes with its description of the algorithm, for headers and for query parameters."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from slipway.fleet.snapshots import sigv4
from slipway.fleet.snapshots.sigv4 import Credentials, Request

KEYS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOW = datetime(2013, 5, 24, tzinfo=UTC)
HOST = {"host": "examplebucket.s3.amazonaws.com"}
PUT_HEADERS = {**HOST, "date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}
PAYLOAD = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()


@pytest.mark.parametrize(
    ("request_", "signature"),
    [
        pytest.param(
            Request("GET", "/test.txt", {}, {**HOST, "range": "bytes=0-9"}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            id="GET Object",
        ),
        pytest.param(
            Request("PUT", "/test$file.text", {}, PUT_HEADERS, PAYLOAD),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            id="PUT Object",
        ),
        pytest.param(
            Request("GET", "/", {"lifecycle": ""}, HOST),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            id="GET Bucket Lifecycle",
        ),
        pytest.param(
            Request("GET", "/", {"max-keys": "2", "prefix": "J"}, HOST),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            id="GET Bucket (List Objects)",
        ),
    ],
)
def test_the_signature_of_a_header_is_the_published_one(request_: Request, signature: str) -> None:
    headers = sigv4.authorized(request_, KEYS, "us-east-1", NOW)
    scope = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
    assert headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={scope},SignedHeaders=")
    assert headers["authorization"].rpartition("Signature=")[2] == signature


def test_the_signature_of_a_link_is_the_published_one() -> None:
    link = sigv4.presigned(Request("GET", "/test.txt", {}, HOST), KEYS, "us-east-1", NOW, 86400)
    assert link == (
        "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404&X-Amz-SignedHeaders=host"
    )


def test_the_canonical_request_is_the_published_one() -> None:
    headers = {**HOST, "range": "bytes=0-9", "x-amz-content-sha256": sigv4.EMPTY, "x-amz-date": "20130524T000000Z"}
    assert sigv4.canonical(Request("GET", "/test.txt", {}, headers)) == (
        "GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\n"
        "x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\nx-amz-date:20130524T000000Z\n\n"
        "host;range;x-amz-content-sha256;x-amz-date\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


def test_a_secret_key_is_in_no_message() -> None:
    assert KEYS.secret_key not in repr(KEYS)
