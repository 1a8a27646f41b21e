"""A certificate for the registration that an operator gives: what hosts are shown and told, and what cannot be used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from fleet.inventory.management import SPACE, Management

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.credentials import keys, tls, x509
from slipway.credentials.profile import SERVER_AUTH, Profile
from slipway.fleet.inventory.options import SECRET as OWN
from slipway.fleet.inventory.registration.certificate import Given

NOW = datetime.now(UTC)


class Issuer:
    """An authority of the operator's."""

    def __init__(self, name: str) -> None:
        key = keys.generate("ECDSA-P256")
        period = x509.period(NOW, Duration.of(hours=24))
        self._authority = x509.Authority(x509.self_signed(Profile(common_name=name), key, period, sha256_key_id=True), key)
        self.pem = x509.pem(self._authority.certificate)

    def issue(self, folder: Path, *, address: str = "127.0.0.1", now: datetime = NOW, authorities: bytes | None = None) -> None:
        key = keys.generate("ECDSA-P256")
        profile = Profile(common_name="registration", usages=(SERVER_AUTH,), addresses=(address,))
        made = x509.signed(profile, key.public_key(), self._authority, x509.period(now, Duration.of(hours=1)))
        (folder / "tls.crt").write_bytes(x509.pem(made))
        (folder / "tls.key").write_bytes(keys.private_pem(key))
        (folder / "ca.crt").write_bytes(self.pem if authorities is None else authorities)


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer("the operator's")


@pytest.mark.asyncio
async def test_hosts_are_shown_the_given_certificate_and_told_to_trust_its_authority(
    management: Management, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.issue(tmp_path)
    await management.start(cert_dir=str(tmp_path))
    url = (await management.registration())["status"]["registrationURL"]
    context = tls.client_context(url, ca=issuer.pem)
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        told = goyaml.load(await answer.text())[0].value
    assert told["elemental"]["registration"]["ca-cert"].encode() == issuer.pem
    assert await management.client.find(SECRET, OWN, "home") is None
    assert await management.client.find(SECRET, OWN, SPACE) is None


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"address": "127.0.0.2"}, "it is not for 127.0.0.1, which hosts call"),
        ({"authorities": b"none"}, "ca.crt cannot be used: data does not contain"),
        ({"now": NOW - timedelta(days=2)}, "would refuse tls.crt: the certificate has expired"),
    ],
)
async def test_a_given_certificate_that_hosts_would_refuse_is_told(issuer: Issuer, tmp_path: Path, how: dict[str, str], says: str) -> None:
    issuer.issue(tmp_path, **how)  # type: ignore[arg-type]
    with pytest.raises(OperatorError) as error:
        await Given(tmp_path, "127.0.0.1").shown()
    assert says in error.value.message


@pytest.mark.asyncio
async def test_an_authority_that_did_not_sign_the_certificate_is_told(issuer: Issuer, tmp_path: Path) -> None:
    issuer.issue(tmp_path, authorities=Issuer("somebody else's").pem)
    with pytest.raises(OperatorError, match="somebody else's did not sign it"):
        await Given(tmp_path, "127.0.0.1").shown()


@pytest.mark.asyncio
async def test_a_folder_without_authorities_is_told(issuer: Issuer, tmp_path: Path) -> None:
    issuer.issue(tmp_path)
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(OperatorError, match=r"cannot read the registration's certificate .*/ca.crt: No such file"):
        await Given(tmp_path, "127.0.0.1").shown()
