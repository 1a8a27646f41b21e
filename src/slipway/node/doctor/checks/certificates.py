"""Certificates and kubeconfigs: their time, their keys, who vouches for them, and the kubelet's own that it renews itself."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from slipway.node import paths
from slipway.node.doctor.finding import Check, Kind
from slipway.node.health.wait import flag_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import CertificateFact, Facts
    from slipway.node.doctor.finding import Finding

_SOON, _CA_SOON = timedelta(days=30), timedelta(days=180)
_ROTATED_BY = 0.9
"""The part of its life after which a kubelet's certificate has been renewed: client-go 0.35.4 does it between 70 % and 90 %."""
_RENEW_SELF = (
    "on a control plane: slipway kubeconfig user --org system:nodes --client-name system:node:{node} > kubelet.conf",
    "put it to /etc/kubernetes/kubelet.conf of this node, then systemctl restart kubelet",
)
# A new one would make every certificate and every kubeconfig of the cluster worthless: it is never made anew.
_OF_AUTHORITY = (
    "keep its key, and make no new one: every certificate and kubeconfig of the cluster hangs on it",
    "copy {path} and its key from another control plane, or from a backup",
)
_RESTART = {
    "admin.conf": (),
    "super-admin.conf": (),
    "controller-manager.conf": ("kube-controller-manager",),
    "scheduler.conf": ("kube-scheduler",),
    "etcd-server": ("etcd",),
    "etcd-peer": ("etcd",),
    "etcd-healthcheck-client": (),
}

EXPIRED = Kind(
    "certificate-expired",
    "error",
    "the certificate {name} has expired",
    ("slipway certs renew {name}", "restart the static Pods that use it"),
)
EARLY = Kind(
    "certificate-not-yet-valid",
    "error",
    "the certificate {name} is not valid yet: this machine's clock is behind, or was ahead when it was made",
    ("timedatectl", "where the clock is right: slipway certs renew {name}"),
)
EXPIRING = Kind(
    "certificate-expiring",
    "warning",
    "the certificate {name} expires in {days} days",
    ("slipway certs renew {name}", "restart the static Pods that use it"),
)
CA_EXPIRED = Kind(
    "authority-expired",
    "error",
    "the certificate authority {name} has expired: nothing that it signed is believed",
    (
        "make a new authority of the same name and key, and put it to all nodes: no command does that",
        "slipway certs renew all on every control plane",
    ),
)
CA_EXPIRING = Kind(
    "authority-expiring",
    "warning",
    "the certificate authority {name} expires in {days} days",
    ("plan its replacement: all nodes have to get the new one",),
)
UNREADABLE = Kind(
    "certificate-unreadable",
    "error",
    "the certificate {name} cannot be read",
    ("move {path} and its key away, then slipway init phase certs {name}",),
)
DISTRUSTED = Kind(
    "certificate-distrusted",
    "error",
    "the certificate {name} is not signed by its authority",
    ("move {path} and its key away, then slipway init phase certs {name}",),
)
FOREIGN_KEY = Kind(
    "certificate-key-differs",
    "error",
    "the certificate {name} and its key cannot be used together",
    ("move {path} and its key away, then slipway init phase certs {name}",),
)
MISSING = Kind("certificate-missing", "error", "the certificate {path} is missing", ("slipway init phase certs {name}",))
LACKS_NAME = Kind(
    "certificate-lacks-address",
    "error",
    "the certificate {name} is not valid for {address}, at which it is served",
    ("move {path} and its key away, then slipway init phase certs {name}", "restart the static Pods that use it"),
)
KUBECONFIG = Kind(
    "kubeconfig-unusable", "error", "the kubeconfig {path} cannot be used", ("move {path} away, then slipway init phase kubeconfig {name}",)
)
FOREIGN_CA = Kind(
    "kubeconfig-foreign-authority",
    "error",
    "the kubeconfig {path} trusts another authority than /etc/kubernetes/pki/ca.crt: one of both is of another cluster",
    ("move {path} away, then slipway init phase kubeconfig {name} (on a worker: slipway reset, and join again)",),
)
KUBELET_EXPIRED = Kind(
    "kubelet-certificate-expired",
    "error",
    "the kubelet's client certificate has expired: the cluster does not know it any more",
    _RENEW_SELF,
)
KUBELET_MISSING = Kind("kubelet-certificate-missing", "error", "the kubelet's client certificate is missing", _RENEW_SELF)
LATE = Kind(
    "kubelet-rotation-late",
    "warning",
    "the kubelet should have renewed its client certificate by now: it expires in {days} days",
    ("kubectl get csr", "journalctl -u kubelet | grep certificate_manager", "systemctl restart kubelet"),
)
NO_ROTATION = Kind(
    "kubelet-rotation-off",
    "warning",
    "the kubelet does not renew its client certificate, which expires in {days} days",
    ("set rotateCertificates: true in /var/lib/kubelet/config.yaml", "systemctl restart kubelet"),
)


def find(facts: Facts) -> Iterator[Finding]:
    # What is left of a node that was is nobody's to be used.
    if not facts.is_node:
        return
    for path in facts.missing_certificates:
        name = path.removeprefix(f"{paths.PKI_DIR}/").removesuffix(".crt").replace("/", "-")
        yield MISSING.found(f"{path}: no such file", path=path, name=name)
    for certificate in facts.certificates:
        yield from _certificate(facts, certificate)
    for kubeconfig in facts.kubeconfigs:
        name = kubeconfig.path.rpartition("/")[2].removesuffix(".conf")
        if kubeconfig.problem:
            yield KUBECONFIG.found(kubeconfig.problem, path=kubeconfig.path, name=name)
        elif kubeconfig.foreign_ca:
            yield FOREIGN_CA.found(
                "its certificate-authority-data and the file have no certificate in common", path=kubeconfig.path, name=name
            )
    if facts.kubelet.rotating_file:
        yield KUBELET_MISSING.found(
            f"{paths.KUBELET_CONF} names {facts.kubelet.rotating_file}, which is not there", node=facts.node or "NAME"
        )


def _certificate(facts: Facts, it: CertificateFact) -> Iterator[Finding]:
    shown: dict[str, Any] = {"name": it.name, "path": it.path}
    kept = tuple(line.format_map(shown) for line in _OF_AUTHORITY) if it.authority else ()
    if it.problem:
        yield UNREADABLE.found(f"{it.path}: {it.problem}", fix=kept, **shown)
        return
    period = f"valid from {it.not_before:%Y-%m-%d %H:%M} to {it.not_after:%Y-%m-%d %H:%M} UTC"
    bounds = f"{it.path}: {period}; it is {facts.now:%Y-%m-%d %H:%M} UTC here"
    left = it.not_after - facts.now
    if facts.now < it.not_before:
        yield EARLY.found(bounds, fix=("timedatectl",) if it.authority else (), **shown)
    elif it.rotates:
        yield from _rotating(facts, it, left, bounds)
    elif it.authority:
        if left <= timedelta():
            yield CA_EXPIRED.found(bounds, **shown)
        elif left <= _CA_SOON:
            yield CA_EXPIRING.found(bounds, days=left.days, **shown)
    elif left <= timedelta():
        yield EXPIRED.found(bounds, fix=_renewal(it.name), **shown)
    elif left <= _SOON:
        yield EXPIRING.found(bounds, fix=_renewal(it.name), days=left.days, **shown)
    if it.distrust:
        yield DISTRUSTED.found(f"{it.path}: {it.distrust}", **shown)
    if it.key_problem:
        yield FOREIGN_KEY.found(f"{it.path}: {it.key_problem}", fix=kept, **shown)
    for address in _served_at(facts, it.name):
        if address not in it.names:
            yield LACKS_NAME.found(f"{it.path} is for {', '.join(it.names)}", address=address, **shown)


def _rotating(facts: Facts, it: CertificateFact, left: timedelta, bounds: str) -> Iterator[Finding]:
    life = it.not_after - it.not_before
    if left <= timedelta():
        yield KUBELET_EXPIRED.found(bounds, node=facts.node or "NAME")
    elif facts.kubelet.config and facts.kubelet.config.get("rotateCertificates") is not True:
        # Off is the kubelet's own default; kubeadm writes that it is on.
        if left <= _SOON:
            yield NO_ROTATION.found(bounds, days=left.days)
    elif left < life * (1 - _ROTATED_BY):
        yield LATE.found(bounds, days=left.days)


def _renewal(name: str) -> tuple[str, ...]:
    restarted = _RESTART.get(name, ("kube-apiserver",))
    return (f"slipway certs renew {name}", *(f"crictl stop $(crictl ps --name {each} -q)" for each in restarted))


def _served_at(facts: Facts, name: str) -> tuple[str, ...]:
    """The address at which others reach what shows a certificate, by the manifest of it."""
    if name == "apiserver" and (server := facts.manifest_of("kube-apiserver")) is not None:
        address = flag_of(server.command, "advertise-address")
        return (address,) if address else ()
    return ()


CHECK = Check(
    "certificates",
    "certificates, their keys and authorities, kubeconfigs, and the renewal of the kubelet's own",
    (
        EXPIRED, EARLY, EXPIRING, CA_EXPIRED, CA_EXPIRING, UNREADABLE, DISTRUSTED, FOREIGN_KEY, MISSING, LACKS_NAME, KUBECONFIG, FOREIGN_CA,
        KUBELET_EXPIRED, KUBELET_MISSING, LATE, NO_ROTATION,
    ),
    find,
)  # fmt: skip
