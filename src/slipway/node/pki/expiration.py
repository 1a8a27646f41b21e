"""``certs check-expiration``: until when the certificates are valid, as a table, JSON or YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery import tabwriter
from slipway.api.machinery.duration import human_duration
from slipway.node import paths
from slipway.node.pki import renewal, store
from slipway.node.pki import specs as certificates

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.node.context import NodeContext

# English, whatever the locale.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Expiry(msgspec.Struct, frozen=True, kw_only=True):
    """One row; a certificate that is not there has no date."""

    name: str
    expires: datetime | None = None
    residual_seconds: int = 0
    ca: str = ""
    externally_managed: bool = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What ``check-expiration`` found."""

    certificates: list[Expiry]
    authorities: list[Expiry]


def check(ctx: NodeContext, directory: str = paths.KUBERNETES_DIR) -> Report:
    """Look at every certificate of this cluster, and at the authorities."""
    authorities = sorted((spec for spec in certificates.required(ctx.config) if not spec.ca), key=lambda spec: spec.name)
    return Report(
        certificates=[_certificate(ctx, item, directory) for item in renewal.renewable(ctx)],
        authorities=[_authority(ctx, spec) for spec in authorities],
    )


def table(report: Report) -> str:
    """The two tables for a person."""
    rows: list[tuple[str, ...]] = [("CERTIFICATE", "EXPIRES", "RESIDUAL TIME", "CERTIFICATE AUTHORITY", "EXTERNALLY MANAGED")]
    rows += [_row(item, item.ca) for item in report.certificates]
    authorities: list[tuple[str, ...]] = [("CERTIFICATE AUTHORITY", "EXPIRES", "RESIDUAL TIME", "EXTERNALLY MANAGED")]
    authorities += [_row(item) for item in report.authorities]
    return f"{tabwriter.aligned(rows)}\n{tabwriter.aligned(authorities)}"


def manifest(report: Report) -> dict[str, Any]:
    """The object for a program, with its fields in the order in which kubeadm prints them."""
    return {
        "kind": "CertificateExpirationInfo",
        "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
        "certificates": [_fields(item) for item in report.certificates],
        "certificateAuthorities": [_fields(item) for item in report.authorities],
    }


def _certificate(ctx: NodeContext, item: renewal.Renewable, directory: str) -> Expiry:
    if not renewal.exists(ctx, item, directory):
        return Expiry(name=item.name)
    external = store.externally_managed(ctx, item.ca)
    expires = renewal.load(ctx, item, directory).not_valid_after_utc
    return Expiry(name=item.name, expires=expires, residual_seconds=_residual(ctx, expires), ca=item.ca, externally_managed=external)


def _authority(ctx: NodeContext, spec: certificates.CertificateSpec) -> Expiry:
    if not ctx.host.exists(store.certificate_path(ctx, spec.base_name)):
        return Expiry(name=spec.name)
    external = store.externally_managed(ctx, spec.name)
    expires = store.load_chain(ctx, spec.base_name)[0].not_valid_after_utc
    return Expiry(name=spec.name, expires=expires, residual_seconds=_residual(ctx, expires), externally_managed=external)


def _residual(ctx: NodeContext, expires: datetime) -> int:
    """Whole seconds, towards zero as Go divides."""
    return int((expires - ctx.host.now()).total_seconds())


def _row(item: Expiry, *ca: str) -> tuple[str, ...]:
    if item.expires is None:
        return (f"!MISSING! {item.name}", "", "", *("" for _ in ca), "")
    managed = "yes" if item.externally_managed else "no"
    expires = f"{_MONTHS[item.expires.month - 1]} {item.expires:%d, %Y %H:%M} UTC"
    return (item.name, expires, human_duration(item.residual_seconds), *ca, f"{managed:<8}")


def _fields(item: Expiry) -> dict[str, Any]:
    return {
        "name": item.name,
        "expirationDate": f"{item.expires:%Y-%m-%dT%H:%M:%SZ}" if item.expires else None,
        "residualTime": item.residual_seconds,
        "externallyManaged": item.externally_managed,
        **({"caName": item.ca} if item.ca else {}),
        "missing": item.expires is None,
    }
