"""Golden cases: what is run, on what kind of host, and how its output is brought into a form that can be compared.

A case is a YAML file under tests/golden/cases.  The recorder (tests/oracles/golden_record.py) runs it with the real
kubeadm of each release; the tests run it with ours.  Both go through the functions here, so that a difference in what
is compared cannot hide a difference in what was made.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = GOLDEN / "cases"
VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")

# Present on the host of every case unless the case says otherwise; each decides about a mount of the control plane.
CA_FOLDERS = ("/etc/ssl/certs", "/etc/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/ca-certificates")


class HostFacts(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The machine that a case runs on."""

    hostname: str = "node-1"
    addresses: list[str] = msgspec.field(default_factory=lambda: ["10.0.0.11/24"])
    """Of eth0, which the default route of each family leads through."""
    folders: list[str] = msgspec.field(default_factory=lambda: list(CA_FOLDERS))
    files: dict[str, str] = msgspec.field(default_factory=dict)
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    active_services: list[str] = msgspec.field(default_factory=list)


class Case(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One run of a command."""

    about: str
    command: str
    config: str = ""
    """The text of /case/config.yaml; ${VERSION} stands for the release's version."""
    host: HostFacts = msgspec.field(default_factory=HostFacts)
    releases: list[str] = msgspec.field(default_factory=lambda: list(VERSIONS))
    name: str = ""

    def argv(self, version: str) -> list[str]:
        return [word.replace("${VERSION}", version) for word in self.command.split()]

    def config_text(self, version: str) -> str:
        return self.config.replace("${VERSION}", version)


def load_case(path: Path) -> Case:
    case = msgspec.convert(yaml.safe_load(path.read_text()), Case)
    case.name = path.stem
    return case


def all_cases() -> list[Case]:
    return [load_case(path) for path in sorted(CASES.glob("*.yaml"))]


def normalised_stdout(text: str, folder: str, case: Case) -> str:
    """The output without what differs from run to run: keys, certificates, random tokens, times, the dry-run folder."""
    text = text.replace(folder, "<DRYRUN>")
    text = re.sub(r"(certificate-authority-data: )\S+", r"\1<CERTIFICATE>", text)
    text = re.sub(r"(--discovery-token-ca-cert-hash sha256:)[0-9a-f]{64}", r"\1<HASH>", text)
    text = re.sub(r"(?m)^(  expiration: )\S+", r"\1<TIME>", text)
    text = re.sub(r"(jws-kubeconfig-\w+: [\w-]+\.\.)\S+", r"\1<SIGNATURE>", text)
    # The encrypted certificates: the sizes say that the same things were encrypted.
    text = re.sub(r"(?m)^(  [\w.-]+\.(?:crt|key|pub): )(\S+)$", lambda m: f"{m[1]}<{len(m[2]) // 400 * 400} base64 digits>", text)
    # A token that the case does not name is random.
    for identifier in sorted(
        set(re.findall(r"bootstrap-token-(\w{6})", text)) - set(re.findall(r"(\w{6})\.\w{16}", case.command + case.config))
    ):
        text = text.replace(f"bootstrap-token-{identifier}", "bootstrap-token-<ID>")
        coded = base64.b64encode(identifier.encode()).decode()
        text = re.sub(rf"token-id: {coded}\n  token-secret: \S+", "token-id: <ID>\n  token-secret: <SECRET>", text)
        text = re.sub(rf"\b{identifier}\.\w{{16}}\b", "<TOKEN>", text)
    return text


def printed_blocks(text: str) -> list[str]:
    """The objects and files in a dry run's output, each with the line that announces it, in order."""
    blocks: list[str] = []
    taking = False
    for line in text.splitlines():
        announces = line.startswith(("[dryrun] Would perform action", "[dryrun] Would write file"))
        if announces:
            blocks.append(line)
            taking = True
        elif taking and line.startswith("[") and not line.startswith("[dryrun] "):
            taking = False
        elif taking:
            blocks[-1] += f"\n{line}"
    return blocks


def described_files(folder: Path, stdout: str) -> dict[str, Any]:
    """Every file of a dry-run folder: text as it is, certificates and kubeconfigs by their fields, keys by their kind."""
    return {str(path.relative_to(folder)): _described(path, stdout) for path in sorted(folder.rglob("*")) if path.is_file()}


def _described(path: Path, stdout: str) -> list[str]:
    content = path.read_bytes()
    mode = f"mode {path.stat().st_mode & 0o777:o}"
    if path.suffix in (".crt", ".key", ".pub"):
        return [mode, *describe_pem(content)]
    text = content.decode()
    if path.suffix == ".conf":
        return [mode, *described_kubeconfig(text)]
    # Most files are also printed: once is enough.
    return [mode, "as printed" if text in stdout else text]


def described_kubeconfig(text: str) -> list[str]:
    """A kubeconfig's layout as it is, followed by the descriptions of the certificates and keys in it."""
    embedded: list[str] = []

    def replace(match: re.Match[str]) -> str:
        description = describe_pem(base64.b64decode(match[2]))
        embedded.extend(f"{match[1]}{line}" for line in description)
        return f"{match[1]}<{description[0]}>"

    return [re.sub(r"([\w-]+-data: )([A-Za-z0-9+/=]{40,})", replace, text), *embedded]


def describe_pem(content: bytes) -> list[str]:
    """The fields of a PEM file that must be equal, a line each: all but keys, serial numbers and times."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    label = content.split(b"-----")[1].decode().removeprefix("BEGIN ")
    if label == "CERTIFICATE":
        return describe_certificate(x509.load_pem_x509_certificate(content))
    if label == "PUBLIC KEY":
        return [label, _key_kind(serialization.load_pem_public_key(content))]
    return [label, _key_kind(serialization.load_pem_private_key(content, None).public_key())]


def describe_certificate(certificate: Any) -> list[str]:
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return [
        "CERTIFICATE",
        f"subject {certificate.subject.rfc4514_string()}, issuer {certificate.issuer.rfc4514_string()}",
        f"{certificate.version.name}, {_key_kind(certificate.public_key())}, {certificate.signature_algorithm_oid._name}",
        # To the minute: the real one takes the time more than once.
        f"valid for {round(lifetime.total_seconds() / 60)} minutes",
        f"serial number within 63 bits: {0 < certificate.serial_number < 1 << 63}",
        *(
            f"{extension.oid._name}{' critical' if extension.critical else ''}: {_extension_value(extension.value)}"
            for extension in certificate.extensions
        ),
    ]


def _extension_value(value: Any) -> str:
    from cryptography import x509

    if isinstance(value, x509.SubjectAlternativeName):
        return ", ".join(f"{type(name).__name__} {name.value}" for name in value)
    if isinstance(value, x509.SubjectKeyIdentifier | x509.AuthorityKeyIdentifier):
        return "present"
    if isinstance(value, x509.ExtendedKeyUsage):
        return ", ".join(usage._name for usage in value)
    if isinstance(value, x509.KeyUsage):
        flags = (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
        )
        return ", ".join(flag for flag in flags if getattr(value, flag))
    return repr(value)


def _key_kind(key: Any) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    return f"EC {key.curve.name}" if isinstance(key, ec.EllipticCurvePublicKey) else f"RSA {key.key_size}"


def golden_folder(case: Case, version: str) -> Path:
    return GOLDEN / version / case.name


def write_golden(case: Case, version: str, outcome: dict[str, Any]) -> None:
    folder = golden_folder(case, version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stdout.txt").write_text(outcome["stdout"])
    rest = {name: value for name, value in outcome.items() if name != "stdout"}
    (folder / "outcome.json").write_text(json.dumps(rest, indent=1, sort_keys=True) + "\n")


def read_golden(case: Case, version: str) -> dict[str, Any]:
    folder = golden_folder(case, version)
    outcome: dict[str, Any] = json.loads((folder / "outcome.json").read_text())
    outcome["stdout"] = (folder / "stdout.txt").read_text()
    return outcome
