"""Certificate cases: configurations, and how certificates, requests and kubeconfigs are described to be compared.

The recorder (tests/oracles/certs_record.py) describes what the real kubeadm makes of a case, the tests describe what we
make of it; both with the functions here.  All fields are compared, in DER where there is one, except keys, serial
numbers and times.
"""

from __future__ import annotations

import base64
import io
import json
import re
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from slipway.api.kubeadm.internal import InitConfiguration
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.host.progress import TextProgress
from slipway.host.real import RealHost
from slipway.node import kubeconfigs
from slipway.node.context import NodeContext
from slipway.node.pki import specs, store

# Of common names with more than 64 characters, which kubeadm makes and cryptography grumbles about.
warnings.filterwarnings("ignore", message="Attribute's length must be", category=UserWarning)

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
_WITH_P384 = VERSIONS[1:]


class Case(msgspec.Struct, kw_only=True):
    """A configuration; what it does not say is as in ``COMMON``."""

    cluster: dict[str, Any] = msgspec.field(default_factory=dict)
    address: str = "10.1.2.3"
    node: str = "cp-1"
    releases: tuple[str, ...] = VERSIONS


# Written out in full, so that no default of kubeadm's has a part in it.
COMMON: dict[str, Any] = {
    "certificatesDir": "/etc/kubernetes/pki",
    "clusterName": "kubernetes",
    "encryptionAlgorithm": "ECDSA-P256",
    "networking": {"dnsDomain": "cluster.local", "serviceSubnet": "10.96.0.0/12"},
    "etcd": {"local": {"dataDir": "/var/lib/etcd"}},
}
_EXTERNAL_ETCD = {
    "endpoints": ["https://10.9.9.9:2379"],
    "caFile": "/etc/etcd/ca.crt",
    "certFile": "/etc/etcd/client.crt",
    "keyFile": "/etc/etcd/client.key",
}

CASES: dict[str, Case] = {
    "default": Case(cluster={"encryptionAlgorithm": "RSA-2048"}),
    "rsa-3072": Case(cluster={"encryptionAlgorithm": "RSA-3072"}, releases=VERSIONS[-1:]),
    "ecdsa-p256": Case(),
    "ecdsa-p384": Case(cluster={"encryptionAlgorithm": "ECDSA-P384"}, releases=_WITH_P384),
    "alternative-names": Case(
        cluster={
            "clusterName": "lab_1",
            "networking": {"dnsDomain": "k8s.example", "serviceSubnet": "172.20.0.0/16"},
            "apiServer": {"certSANs": ["z.example", "*.apps.example", "192.168.7.7", "fd00::7", "cp-1", "10.1.2.3"]},
            "etcd": {"local": {"serverCertSANs": ["etcd.example", "10.0.0.9"], "peerCertSANs": ["peer.example", "fd00::9", "127.0.0.1"]}},
        }
    ),
    "ipv6": Case(address="fd00:10::3", cluster={"networking": {"dnsDomain": "cluster.local", "serviceSubnet": "fd00:20::/108"}}),
    "dual-stack": Case(cluster={"networking": {"dnsDomain": "cluster.local", "serviceSubnet": "10.96.0.0/16,fd00:20::/108"}}),
    "external-etcd": Case(cluster={"etcd": {"external": _EXTERNAL_ETCD}}),
    "validity": Case(cluster={"certificateValidityPeriod": "100h30m", "caCertificateValidityPeriod": "43800h"}),
    "endpoint-name": Case(cluster={"controlPlaneEndpoint": "api.example:8443"}),
    "endpoint-address": Case(cluster={"controlPlaneEndpoint": "192.168.0.100"}),
    "endpoint-ipv6": Case(
        address="fd00:10::3",
        cluster={"controlPlaneEndpoint": "[fd00:10::64]:6443", "networking": {"dnsDomain": "c.local", "serviceSubnet": "fd00:20::/108"}},
    ),
    "kubelet-not-local": Case(
        cluster={"controlPlaneEndpoint": "api.example", "featureGates": {"ControlPlaneKubeletLocalMode": False}}, releases=VERSIONS[:2]
    ),
    # Longer than the 64 characters that RFC 5280 allows for a common name.
    "long-node-name": Case(node="control-plane-1.rack-7.room-3.building-2.datacenter-1.region-9.example.com"),
}


def cases_and_versions() -> list[tuple[str, str]]:
    return [(name, version) for name, case in CASES.items() for version in case.releases]


def cases_with_fast_keys() -> list[tuple[str, str]]:
    """Without RSA, which is slow to make, but for one release."""
    return [(name, version) for name, version in cases_and_versions() if name not in ("default", "rsa-3072") or version == "v1.35.4"]


def configuration(name: str, version: str) -> dict[str, Any]:
    """The InitConfiguration of a case with its ClusterConfiguration under ``cluster``."""
    case = CASES[name]
    return {
        "localAPIEndpoint": {"advertiseAddress": case.address, "bindPort": 6443},
        "nodeRegistration": {"name": case.node, "criSocket": "unix:///run/containerd/containerd.sock"},
        "cluster": {**COMMON, **case.cluster, "kubernetesVersion": version},
    }


class ClockedHost(RealHost):
    """A host whose clock stands still until it is told."""

    def __init__(self, root: str) -> None:
        super().__init__(root, {})
        self.clock = datetime.now(UTC)

    def now(self) -> datetime:
        return self.clock


class Machine:
    """A context of ours for a case, over a host whose files are below ``root``."""

    def __init__(self, root: Path, name: str = "ecdsa-p256", version: str = VERSIONS[-1]) -> None:
        self.root, self.host = root, ClockedHost(str(root))
        self._out, self._err = io.StringIO(), io.StringIO()
        self.ctx = NodeContext(
            config=msgspec.convert(configuration(name, version), InitConfiguration, dec_hook=lambda _, text: Duration.parse(text)),
            release=release_for(Version.parse(version)),
            host=self.host,
            progress=TextProgress(self._out, self._err),
        )

    def run(self, phase: str) -> None:
        """One phase of ``init``, or all of a group: ``certs apiserver``, ``kubeconfig all``."""
        ctx, (group, name) = self.ctx, phase.split()
        if store.uses_external_ca(ctx):
            kubeconfigs.validate_external_ca(ctx)
        store.uses_external_front_proxy_ca(ctx)
        if group == "kubeconfig":
            if name == "all":
                kubeconfigs.announce_folder(ctx)
            for spec in kubeconfigs.KUBECONFIGS:
                if name in ("all", spec.name):
                    kubeconfigs.ensure(ctx, spec.name)
            return
        names = [spec.name for spec in specs.CERTIFICATES if name in ("all", spec.name)]
        if name == "all":
            store.announce_folder(ctx)
        store.generate_ahead(ctx, [*names, *(["sa"] if name in ("all", "sa") else [])])
        for certificate in names:
            store.ensure_certificate(ctx, certificate)
        if name in ("all", "sa"):
            store.ensure_service_account_key(ctx)

    def said(self) -> list[str]:
        """The lines since the last call."""
        lines = self._out.getvalue().splitlines()
        self._out.seek(0)
        self._out.truncate()
        return lines

    def warned(self) -> list[str]:
        return self._err.getvalue().splitlines()


def kubeadm_file(name: str, version: str) -> str:
    """The configuration as kubeadm reads it."""
    config = configuration(name, version)
    cluster = config.pop("cluster")
    documents = [{"kind": "InitConfiguration", **config}, {"kind": "ClusterConfiguration", **cluster}]
    return "---\n".join(json.dumps({"apiVersion": "kubeadm.k8s.io/v1beta4", **document}) + "\n" for document in documents)


def write_golden(name: str, version: str, outcome: dict[str, Any]) -> None:
    """One line a file, so that a change of the real one can be read in a diff."""
    parts = []
    for key, value in sorted(outcome.items()):
        if isinstance(value, dict):
            lines = ",\n".join(f"  {json.dumps(inner)}: {json.dumps(item, sort_keys=True)}" for inner, item in sorted(value.items()))
            parts.append(f" {json.dumps(key)}: {{\n{lines}\n }}" if lines else f" {json.dumps(key)}: {{}}")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, indent=1)}")
    path = golden_path(name, version)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def golden_path(name: str, version: str) -> Path:
    return GOLDEN / version / "certs" / f"{name}.json"


def read_golden(name: str, version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(golden_path(name, version).read_text())
    return found


def described_tree(root: Path) -> dict[str, Any]:
    """Every certificate, key, request and kubeconfig below ``root`` by its mode and content."""
    key_ids: dict[str, str] = {}
    for path in sorted(root.rglob("ca.crt")) + sorted(root.rglob("*-ca.crt")):
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        identifier = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
        key_ids[identifier.hex()] = str(path.relative_to(root))
    ca = root / "etc/kubernetes/pki/ca.crt"
    start = x509.load_pem_x509_certificate(ca.read_bytes()).not_valid_before_utc if ca.exists() else None
    return {
        str(path.relative_to(root)): [f"{path.stat().st_mode & 0o777:o}", *_described_file(path, key_ids, start)]
        for path in sorted(root.rglob("*"))
        if path.suffix in (".crt", ".key", ".pub", ".csr", ".conf")
    }


def changed_files(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The descriptions that differ from those before, which must be of the same files."""
    assert before.keys() == after.keys()
    return {path: described for path, described in after.items() if described != before[path]}


def _described_file(path: Path, key_ids: dict[str, str], start: Any) -> list[Any]:
    content = path.read_bytes()
    if path.suffix == ".conf":
        return _described_kubeconfig(content.decode(), key_ids, start)
    return [_described_pem(content, key_ids)]


def _described_kubeconfig(text: str, key_ids: dict[str, str], start: Any) -> list[Any]:
    embedded: list[Any] = []

    def replaced(match: re.Match[str]) -> str:
        content = base64.b64decode(match[2])
        description = _described_pem(content, key_ids)
        if match[1].startswith("client-certificate"):
            # Two programs, two starting times: only the rule is compared, and the length to the minute.
            certificate = x509.load_pem_x509_certificate(content)
            description["starts with the CA"] = certificate.not_valid_before_utc == start
            description["seconds"] = round(description["seconds"] / 60) * 60
        embedded.append(description)
        return f"{match[1]}: <{len(embedded)}>"

    return [re.sub(r"([\w-]+-data): (\S+)", replaced, text), *embedded]


def _described_pem(content: bytes, key_ids: dict[str, str]) -> dict[str, Any]:
    label = content.split(b"-----")[1].decode().removeprefix("BEGIN ")
    if label == "CERTIFICATE":
        return {"pem": label, **_described_certificate(x509.load_pem_x509_certificate(content), key_ids)}
    if label == "CERTIFICATE REQUEST":
        return {"pem": label, **_described_request(x509.load_pem_x509_csr(content))}
    if label == "PUBLIC KEY":
        return {"pem": label, "key": _key_kind(serialization.load_pem_public_key(content))}
    key = serialization.load_pem_private_key(content, None)
    return {"pem": label, "key": _key_kind(key.public_key())}


def _described_certificate(certificate: x509.Certificate, key_ids: dict[str, str]) -> dict[str, Any]:
    return {
        "version": certificate.version.name,
        "subject": _described_name(certificate.subject),
        "issuer": _described_name(certificate.issuer),
        "key": _key_kind(certificate.public_key()),
        "signature": certificate.signature_algorithm_oid.dotted_string,
        "serial number within 63 bits": 0 < certificate.serial_number < 1 << 63,
        "seconds": round((certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds()),
        "extensions": [_described_extension(item, certificate, key_ids) for item in certificate.extensions],
    }


def _described_request(request: x509.CertificateSigningRequest) -> dict[str, Any]:
    return {
        "subject": _described_name(request.subject),
        "key": _key_kind(request.public_key()),
        "signature": request.signature_algorithm_oid.dotted_string,
        "valid": request.is_signature_valid,
        "attributes": [attribute.oid.dotted_string for attribute in request.attributes],
        "extensions": [[item.oid.dotted_string, item.critical, item.value.public_bytes().hex()] for item in request.extensions],
    }


def _described_name(name: x509.Name) -> list[str]:
    return [name.rfc4514_string(), name.public_bytes().hex()]


def _described_extension(item: x509.Extension[Any], certificate: x509.Certificate, key_ids: dict[str, str]) -> list[Any]:
    described: Any = item.value.public_bytes().hex()
    if isinstance(item.value, x509.SubjectKeyIdentifier):
        described = _key_id_method(certificate.public_key(), item.value.digest)
    elif isinstance(item.value, x509.AuthorityKeyIdentifier):
        others = (item.value.authority_cert_issuer, item.value.authority_cert_serial_number)
        identifier = item.value.key_identifier
        described = ["key id of", key_ids.get(identifier.hex() if identifier else ""), *(str(other) for other in others)]
    return [item.oid.dotted_string, item.critical, described]


def _key_id_method(key: Any, digest: bytes) -> str:
    if isinstance(key, rsa.RSAPublicKey):
        bits = key.public_bytes(Encoding.DER, PublicFormat.PKCS1)
    else:
        bits = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    for algorithm in (hashes.SHA1(), hashes.SHA256()):
        made = hashes.Hash(algorithm)
        made.update(bits)
        if made.finalize()[:20] == digest:
            return f"first 20 bytes of the {algorithm.name} of the key"
    return "unknown"


def _key_kind(key: Any) -> str:
    return f"EC {key.curve.name}" if isinstance(key, ec.EllipticCurvePublicKey) else f"RSA {key.key_size}"


def without_times(text: str) -> str:
    """Output of ``check-expiration`` without dates and remaining seconds."""
    text = re.sub(r"[A-Z][a-z]{2} \d\d, \d{4} \d\d:\d\d UTC", "<a date as wide as it>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<date>", text)
    return re.sub(r'("?residualTime"?: )[1-9]\d+', r"\1<seconds>", text)
