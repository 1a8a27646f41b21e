"""What the files of a node say: its role, the kubelet's configuration, the static Pods, certificates and kubeconfigs.

A file that may not be read is noted among what could not be seen; one that is not there is a fact like any other.
"""

from __future__ import annotations

import posixpath
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slipway.api.kubeadm import defaults
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.credentials import keys
from slipway.kube import kubeconfig as kubeconfigs
from slipway.kube.connection import from_kubeconfig
from slipway.node import paths
from slipway.node.config import dynamicdefaults
from slipway.node.doctor.facts import CertificateFact, ContainerSpec, KubeconfigFact, Manifest, Role, Unseen
from slipway.node.health.wait import flag_of
from slipway.node.kubelet import files as kubeletfiles
from slipway.node.pki import specs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cryptography.x509 import Certificate

    from slipway.host.interface import Host

_LEFT = (
    paths.KUBELET_CONF, paths.BOOTSTRAP_KUBELET_CONF, paths.ADMIN_CONF, paths.SUPER_ADMIN_CONF, paths.CONTROLLER_MANAGER_CONF,
    paths.SCHEDULER_CONF, paths.KUBELET_CONFIG, paths.KUBELET_FLAGS_ENV, f"{paths.PKI_DIR}/ca.crt", f"{paths.PKI_DIR}/apiserver.crt",
    f"{paths.ETCD_DATA_DIR}/member",
)  # fmt: skip
_EXTRA_ARGS = ("/etc/default/kubelet", "/etc/sysconfig/kubelet")
_API_SERVER, _ETCD = "kube-apiserver", "etcd"
_ETCD_URLS = ("listen-client-urls", "listen-peer-urls", "advertise-client-urls", "initial-advertise-peer-urls")


class NodeFiles:
    """Reads each file once, and remembers what it may not see."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.unseen: list[Unseen] = []
        self.kubelet_problem = ""
        self.kubelet_config = self._kubelet_config()
        self.kubelet_flags = self._kubelet_flags()
        self.folder = str(self.kubelet_config.get("staticPodPath") or paths.MANIFESTS_DIR)
        self.manifests = self._manifests()
        self.left = tuple(path for path in (*_LEFT, *(each.path for each in self.manifests)) if host.exists(path))
        self.role = self._role()
        self.pki = self._pki()

    @property
    def local_etcd(self) -> ContainerSpec | None:
        return self.spec(_ETCD)

    def spec(self, component: str) -> ContainerSpec | None:
        return next((each for manifest in self.manifests for each in manifest.containers if each.name == component), None)

    def read(self, path: str) -> bytes | None:
        """None where it is not there, or may not be read, which is then remembered."""
        try:
            return self._host.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.unseen.append(Unseen(path, (error.strerror or str(error)).lower()))
            return None

    def text(self, path: str) -> str:
        return (self.read(path) or b"").decode(errors="replace")

    def runtime_socket(self) -> str:
        """As the kubelet has it; on a machine without one, whatever is there."""
        named = str(self.kubelet_config.get("containerRuntimeEndpoint") or "") or flag_of(self.kubelet_flags, "container-runtime-endpoint")
        if named:
            return named if "://" in named else f"unix://{named}"
        there = (socket for socket in dynamicdefaults.KNOWN_CRI_SOCKETS if self._host.exists(socket.removeprefix("unix://")))
        return next(there, defaults.CRI_SOCKET)

    def claimed_addresses(self) -> list[tuple[str, str]]:
        """What says that this machine has an address, and the address."""
        claimed = []
        for manifest in self.manifests:
            for container in manifest.containers:
                for flag in {_API_SERVER: ("advertise-address",), _ETCD: _ETCD_URLS}.get(container.name, ()):
                    named = _addresses(flag_of(container.command, flag))
                    claimed += [(f"--{flag} in {manifest.path}", address) for address in named]
        if node_ip := flag_of(self.kubelet_flags, "node-ip"):
            claimed.append(("the kubelet's --node-ip", node_ip.partition(",")[0]))
        return claimed

    def certificates(self, now: datetime) -> tuple[list[CertificateFact], list[str]]:
        """Those of the certificate folder, and the paths of those that are missing."""
        found, missing = [], []
        for spec in specs.CERTIFICATES:
            path = f"{self.pki}/{spec.base_name}.crt"
            if not self._host.exists(path):
                if spec.ca and self.role == "control plane" and (self.local_etcd is not None or not specs.of_etcd(spec)):
                    missing.append(path)
                continue
            content = self.read(path)
            if content is not None:
                key, ca = f"{self.pki}/{spec.base_name}.key", f"{self.pki}/{specs.spec_of(spec.ca).base_name}.crt" if spec.ca else ""
                trusted = self.read(ca) or b"" if ca else b""
                found.append(_certificate(spec.name, path, content, key=self._key(key), ca=trusted, authority=not spec.ca))
        return found, missing

    def kubeconfigs(self) -> tuple[list[KubeconfigFact], list[CertificateFact], str]:
        """The kubeconfigs, the certificates in them, and the kubelet's certificate file where that is missing."""
        found, certificates, rotating = [], [], ""
        cluster_ca = self.read(f"{self.pki}/ca.crt") or b""
        for path in (paths.ADMIN_CONF, paths.SUPER_ADMIN_CONF, paths.CONTROLLER_MANAGER_CONF, paths.SCHEDULER_CONF, paths.KUBELET_CONF):
            needed = {
                paths.CONTROLLER_MANAGER_CONF: self.spec("kube-controller-manager") is not None,
                paths.SCHEDULER_CONF: self.spec("kube-scheduler") is not None,
                paths.KUBELET_CONF: self.role == "control plane",
            }
            if not self._host.exists(path):
                if needed.get(path):
                    found.append(KubeconfigFact(path=path, problem=f"{path}: no such file"))
                continue
            content = self.read(path)
            if content is None:
                continue
            try:
                document = kubeconfigs.load(content, path)
                file = _certificate_file(document)
                if file and not self._host.exists(file):
                    rotating = file
                    continue
                connection = from_kubeconfig(document, self._host.read, source=path)
            except PermissionError as error:
                self.unseen.append(Unseen(str(error.filename or path), "permission denied"))
                continue
            except OperatorError as error:
                found.append(KubeconfigFact(path=path, problem=error.message))
                continue
            foreign = bool(connection.ca and cluster_ca) and not _in_common(connection.ca, cluster_ca)
            found.append(KubeconfigFact(path=path, server=connection.server, foreign_ca=foreign))
            if connection.client_certificate:
                name, rotates = posixpath.basename(path), path == paths.KUBELET_CONF
                certificates.append(
                    _certificate(
                        name,
                        file or path,
                        connection.client_certificate,
                        key=connection.client_key,
                        ca=b"" if foreign else cluster_ca,
                        rotates=rotates,
                    )
                )
        return found, certificates, rotating

    def resolv_conf(self) -> tuple[str, str, tuple[str, ...]]:
        """The file that the kubelet gives to Pods, what is wrong with it, and its name servers."""
        path = str(self.kubelet_config.get("resolvConf") or "/etc/resolv.conf")
        if not self._host.exists(path):
            return path, "no such file", ()
        lines = [line.split() for line in self.text(path).splitlines()]
        return path, "", tuple(words[1] for words in lines if len(words) > 1 and words[0] == "nameserver")

    def swap_in_fstab(self) -> tuple[str, ...]:
        lines = [line.strip() for line in self.text("/etc/fstab").splitlines()]
        return tuple(line for line in lines if not line.startswith("#") and line.split()[2:3] == ["swap"])

    def _role(self) -> Role:
        node = self._host.exists(paths.KUBELET_CONF) or self._host.exists(paths.BOOTSTRAP_KUBELET_CONF)
        if self.spec(_API_SERVER) is not None or (node and self._host.exists(f"{paths.PKI_DIR}/apiserver.crt")):
            return "control plane"
        return "worker" if node else "none"

    def _pki(self) -> str:
        server = self.spec(_API_SERVER)
        served = flag_of(server.command, "tls-cert-file") if server is not None else ""
        return posixpath.dirname(served) or paths.PKI_DIR

    def _key(self, path: str) -> bytes:
        """Empty where it is not there, as with an authority that is elsewhere, or may not be read: all keys are then told as one."""
        try:
            return self._host.read(path)
        except FileNotFoundError:
            return b""
        except OSError as error:
            self.unseen.append(Unseen(f"the keys in {self.pki}", (error.strerror or str(error)).lower()))
            return b""

    def _kubelet_config(self) -> dict[str, Any]:
        if not self._host.exists(paths.KUBELET_CONFIG):
            self.kubelet_problem = f"{paths.KUBELET_CONFIG}: no such file"
            return {}
        content = self.read(paths.KUBELET_CONFIG)
        if content is None:
            return {}
        try:
            documents = goyaml.load(content.decode(errors="replace"), paths.KUBELET_CONFIG)
        except OperatorError as error:
            self.kubelet_problem = error.message
            return {}
        if documents and isinstance(documents[0].value, dict):
            return documents[0].value
        self.kubelet_problem = f"{paths.KUBELET_CONFIG} does not hold a KubeletConfiguration"
        return {}

    def _kubelet_flags(self) -> list[str]:
        flags: list[str] = []
        if text := self.text(paths.KUBELET_FLAGS_ENV):
            try:
                flags += kubeletfiles.flags_of_environment_file(text)
            except OperatorError as error:
                self.unseen.append(Unseen(paths.KUBELET_FLAGS_ENV, error.message))
        for path in _EXTRA_ARGS:
            for line in self.text(path).splitlines():
                if line.startswith("KUBELET_EXTRA_ARGS="):
                    flags += line.partition("=")[2].strip("\"'").split()
        return flags

    def _manifests(self) -> tuple[Manifest, ...]:
        try:
            # Those that begin with a dot are passed over by the kubelet, and no others.
            names = [name for name in self._host.list_dir(self.folder) if not name.startswith(".")]
        except OSError as error:
            self.unseen.append(Unseen(self.folder, (error.strerror or str(error)).lower()))
            return ()
        files = [path for name in names if not self._host.is_dir(path := f"{self.folder}/{name}")]
        return tuple(_manifest(path, content) for path in files if (content := self.read(path)) is not None)


def _manifest(path: str, content: bytes) -> Manifest:
    try:
        documents = goyaml.load(content.decode(errors="replace"), path)
    except OperatorError as error:
        return Manifest(path=path, problem=error.message)
    pod = documents[0].value if documents else None
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        return Manifest(path=path, problem=f"{path} does not hold a Pod")
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return Manifest(path=path, problem="invalid pod: name is needed for the pod")
    containers = (spec.get("containers") or []) if isinstance(spec, dict) else []
    return Manifest(
        path=path,
        pod=f"{metadata.get('namespace') or 'default'}/{metadata['name']}",
        containers=tuple(
            ContainerSpec(
                name=str(each.get("name", "")),
                image=str(each.get("image", "")),
                command=tuple(str(word) for word in (*(each.get("command") or ()), *(each.get("args") or ()))),
            )
            for each in containers
            if isinstance(each, dict)
        ),
    )


def _addresses(urls: str) -> list[str]:
    """The addresses in ``https://192.0.2.1:2379,https://127.0.0.1:2379``, or a bare one."""
    return [urlsplit(url).hostname or "" if "://" in url else url for url in urls.split(",") if url]


def _certificate_file(document: kubeconfigs.Document) -> str:
    """The file of the client certificate that a kubeconfig names; empty where the certificate is in it."""
    context = kubeconfigs.named(document, "context", str(document.get("current-context") or "")) or {}
    user = kubeconfigs.named(document, "user", str(context.get("user") or "")) or {}
    return "" if user.get("client-certificate-data") else str(user.get("client-certificate") or "")


def _in_common(one: bytes, other: bytes) -> bool:
    from slipway.credentials import x509

    try:
        return bool(set(x509.parse(one)) & set(x509.parse(other)))
    except ValueError:
        # What is wrong with either of them is told elsewhere.
        return True


def _certificate(
    name: str, path: str, content: bytes, *, key: bytes, ca: bytes, rotates: bool = False, authority: bool = False
) -> CertificateFact:
    from slipway.credentials import x509

    try:
        chain = x509.parse(content)
    except ValueError as error:
        return CertificateFact(name=name, path=path, authority=authority, problem=str(error))
    leaf = chain[0]
    profile = x509.profile_of(leaf)
    return CertificateFact(
        name=name,
        path=path,
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        names=(*profile.dns_names, *profile.addresses),
        authority=x509.is_authority(leaf),
        rotates=rotates,
        distrust=_distrust(chain, ca),
        key_problem=_key_problem(leaf, key),
    )


def _distrust(chain: Sequence[Certificate], ca: bytes) -> str:
    from slipway.credentials import x509

    try:
        authorities = x509.parse(ca) if ca else []
    except ValueError:
        return ""
    problems = []
    for authority in authorities:
        # At a time when both are valid, if there is one: what the time is now is another question.
        moment = max(chain[0].not_valid_before_utc, authority.not_valid_before_utc) + timedelta(seconds=1)
        if moment > min(chain[0].not_valid_after_utc, authority.not_valid_after_utc):
            return ""
        problems.append(x509.chain_problem(chain[0], list(chain[1:]), authority, moment))
    return problems[0] if problems and all(problems) else ""


def _key_problem(certificate: Certificate, key: bytes) -> str:
    from slipway.credentials import x509

    if not key:
        return ""
    try:
        private = keys.parse_private(key)
    except ValueError as error:
        return f"its key cannot be read: {error}"
    return "" if x509.belongs_to(certificate, private) else "its key is that of another certificate"
