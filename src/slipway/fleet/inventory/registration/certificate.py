"""The certificate that hosts are shown where they register, and the authorities that they are given to trust."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import x509
from slipway.runtime.webhook.certificates import serving_profile
from slipway.runtime.webhook.serving import Folder, Pair

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.runtime.webhook.store import CertificateStore

_WHOSE = "registration's"
AUTHORITIES = "ca.crt"


class Shown(NamedTuple):
    pair: Pair
    authorities: bytes


class Source(Protocol):
    async def shown(self) -> Shown:
        """What to show from now on, or an OperatorError that says why there is nothing."""


class Own(NamedTuple):
    """Made and renewed by the managers, which share a Secret."""

    store: CertificateStore

    async def shown(self) -> Shown:
        current = await self.store.ensure(datetime.now(UTC))
        return Shown(Pair(current.certificate, current.key), current.authorities)


class Given(NamedTuple):
    """``tls.crt``, ``tls.key`` and ``ca.crt`` in a folder, as cert-manager's Secrets are mounted."""

    path: Path
    called: str = ""
    """The name or address at which hosts call, where that is to be looked at."""

    async def shown(self) -> Shown:
        pair = await Folder(self.path, _WHOSE).pair()
        authorities = self.authorities()
        leaf, *intermediates = x509.parse(pair.certificate)
        problems = [x509.chain_problem(leaf, intermediates, root, datetime.now(UTC)) for root in x509.parse(authorities)]
        if all(problems):
            raise OperatorError(
                f"the registration's certificate in {self.path} cannot be used: hosts that trust {AUTHORITIES} would refuse tls.crt: "
                f"{problems[0]}"
            )
        if self.called and x509.missing_names(leaf, serving_profile([self.called])):
            raise OperatorError(
                f"the registration's certificate in {self.path} cannot be used: it is not for {self.called}, which hosts call"
            )
        return Shown(pair, authorities)

    def authorities(self) -> bytes:
        """What hosts keep, so that it must be the authority itself and not the certificate, which is another one next year."""
        found = Folder(self.path, _WHOSE).read(AUTHORITIES)
        try:
            x509.parse(found)
        except ValueError as error:
            raise OperatorError(f"the registration's authorities in {self.path / AUTHORITIES} cannot be used: {error}") from None
        return found
