"""Where snapshots are kept, as operators write it."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import places
from slipway.fleet.snapshots.places import Place
from slipway.fleet.snapshots.sigv4 import Credentials

KEYS = {"endpoint": b"https://s3.example.test:9000/", "accessKeyID": b"who", "secretAccessKey": b"secret\n"}


@pytest.mark.parametrize(
    ("text", "secret", "meant"),
    [
        ("/var/lib/slipway/snapshots/", "", Place(folder="/var/lib/slipway/snapshots")),
        ("s3://backups", "keys", Place(bucket="backups", secret="keys")),
        ("s3://backups/fleet/one/", "keys", Place(bucket="backups", prefix="fleet/one", secret="keys")),
    ],
)
def test_a_place_is_a_folder_or_a_bucket(text: str, secret: str, meant: Place) -> None:
    assert places.place(text, secret) == meant


@pytest.mark.parametrize(
    ("text", "secret", "said"),
    [
        ("", "", "no place for snapshots: write the path of a folder"),
        ("snapshots", "", "no place for snapshots: write the path of a folder"),
        ("s3://", "keys", "with a bucket of small letters and digits"),
        ("s3://Backups", "keys", "with a bucket of small letters and digits"),
        ("s3://backups", "", "needs a Secret with the keys endpoint, accessKeyID, secretAccessKey"),
    ],
)
def test_anything_else_gets_a_sentence(text: str, secret: str, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        places.place(text, secret)


@pytest.mark.parametrize("text", ["0", "-1", "1001", "five", "", "٣"])
def test_a_number_to_keep_is_one_from_1_to_1000(text: str) -> None:
    with pytest.raises(OperatorError, match="write one from 1 to 1000"):
        places.kept(text)
    assert places.kept("7") == 7


def test_a_secret_says_where_and_as_whom() -> None:
    wanted = places.place("s3://backups/fleet", "keys")
    made = places.bucket_from(wanted, KEYS, "n/keys")
    assert (made.endpoint, made.region, made.credentials) == ("https://s3.example.test:9000", "us-east-1", Credentials("who", "secret"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"endpoint": b""}, "the Secret n/keys of the store s3://backups has no endpoint"),
        ({"endpoint": b"s3.example.test"}, r"write http\[s\]://HOST\[:PORT\]"),
        ({"endpoint": b"http://s3.example.test:port"}, r"write http\[s\]://HOST\[:PORT\]"),
        ({"endpoint": b"http://[s3.example.test"}, r"write http\[s\]://HOST\[:PORT\]"),
        ({"endpoint": b"\xff"}, "holds something that is no text"),
        ({"ca.crt": b"\xff"}, "holds something that is no text"),
    ],
)
def test_a_secret_that_does_not_say_it_gets_a_sentence(changed: dict[str, bytes], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        places.bucket_from(places.place("s3://backups", "keys"), {**KEYS, **changed}, "n/keys")


def test_a_name_and_a_password_in_an_endpoint_are_refused_and_not_repeated() -> None:
    with pytest.raises(OperatorError, match="n/keys has an endpoint that is none") as refused:
        places.bucket_from(places.place("s3://backups", "keys"), {**KEYS, "endpoint": b"https://me:hidden@s3.example.test"}, "n/keys")
    assert "hidden" not in refused.value.message
