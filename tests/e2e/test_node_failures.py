"""What goes wrong on real hosts: a sentence that says what and where, a non-zero exit code, and nothing lost."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from e2e.nodes import IGNORED, OURS, TOKEN, Nodes, nodes, real_hosts
from support.waiting import eventually_blocking

pytestmark = real_hosts

VERSION = "v1.35.4"
JOIN = """apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: {endpoint}
    token: {token}
    caCertHashes: ["{pin}"]
timeouts:
  discovery: 8s
  tlsBootstrap: 20s
"""

# Somebody between a node and its cluster: everything is passed on, but the certificate is not the cluster's.
MAN_IN_THE_MIDDLE = """
import http.server, ssl, sys, urllib.request
unverified = ssl._create_unverified_context()
class Relay(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with urllib.request.urlopen(f"https://{sys.argv[1]}:6443{self.path}", context=unverified) as answer:
            body = answer.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("0.0.0.0", 7443), Relay)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/srv/mitm.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

# A certificate for the address, by an authority ("" for one of its own), valid from a number of days from now on.
CERTIFY = """
import datetime, ipaddress, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
address, authority, days, certificate_path, key_path = sys.argv[1:]
key = rsa.generate_private_key(65537, 2048)
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
issuer, signer = name, key
if authority:
    issuer = x509.load_pem_x509_certificate(open(authority + ".crt", "rb").read()).subject
    signer = serialization.load_pem_private_key(open(authority + ".key", "rb").read(), None)
begin = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=float(days))
names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName("kubernetes")])
made = x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number(), begin, begin + datetime.timedelta(days=300))
made = made.add_extension(names, False).sign(signer, hashes.SHA256())
pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
chain = made.public_bytes(serialization.Encoding.PEM)
open(certificate_path, "wb").write(chain if key_path != certificate_path else chain + pem)
if key_path != certificate_path:
    open(key_path, "wb").write(pem)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    """A control plane on host-1; host-2 is the machine on which things go wrong."""
    with nodes(VERSION, 2, "fail") as made:
        made.init("host-1")
        yield made


def failing(cluster: Nodes, host: str, command: str) -> str:
    """What a command that must fail says, on its standard error last."""
    began = time.monotonic()
    done = cluster.lab.run("host", "exec", host, "--", "sh", "-ec", command, check=False)
    print(f"{command}: exit code {done.returncode} after {time.monotonic() - began:.1f} s\n{done.stderr}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "this is a bug" not in done.stderr
    assert done.stderr.strip()
    return done.stdout + done.stderr


def join_fails(cluster: Nodes, *, endpoint: str = "", token: str = TOKEN, pin: str = "") -> str:
    """A failed join leaves no credentials and no kubelet configuration behind."""
    text = JOIN.format(endpoint=endpoint or f"{cluster.address('host-1')}:6443", token=token, pin=pin or cluster.pin())
    cluster.lab.on("host-2", "cat > /srv/join.yaml", stdin=text)
    said = failing(cluster, "host-2", f"{OURS} join --config /srv/join.yaml {IGNORED}")
    assert cluster.lab.on("host-2", "find /etc/kubernetes /var/lib/kubelet/config.yaml -type f", check=False) == ""
    return said


def test_a_wrong_token(cluster: Nodes) -> None:
    assert "token" in join_fails(cluster, token="abcdef.fedcba9876543210")


def test_an_unknown_token(cluster: Nodes) -> None:
    assert '"zzzzzz"' in join_fails(cluster, token="zzzzzz.0123456789abcdef")


def test_an_expired_token(cluster: Nodes) -> None:
    cluster.lab.on("host-1", f"{OURS} token create expire.0123456789abcdef --ttl 1s")
    deadline = time.monotonic() + 60
    while "bootstrap-token-expire" in cluster.lab.kubectl("-n kube-system get secrets -o name"):
        assert time.monotonic() < deadline, "the token is never deleted"
        time.sleep(1)
    said = join_fails(cluster, token="expire.0123456789abcdef")
    assert "expired" in said
    assert "token create" in said


def test_a_wrong_pin(cluster: Nodes) -> None:
    said = join_fails(cluster, pin="sha256:" + "0" * 64)
    assert "pinned" in said
    assert cluster.pin() in said


def test_a_man_in_the_middle(cluster: Nodes) -> None:
    address = cluster.address("host-1")
    cluster.lab.on("host-1", f"/opt/slipway/bin/python3 - {address} '' 0 /srv/mitm.pem /srv/mitm.pem", stdin=CERTIFY)
    cluster.lab.on("host-1", "cat > /srv/mitm.py", stdin=MAN_IN_THE_MIDDLE)
    cluster.lab.on("host-1", f"systemd-run --quiet --unit=mitm python3 /srv/mitm.py {address}")
    try:
        said = join_fails(cluster, endpoint=f"{address}:7443")
    finally:
        cluster.lab.on("host-1", "systemctl stop mitm")
    assert f"{address}:7443" in said
    assert "certificate" in said


def test_an_unreachable_endpoint(cluster: Nodes) -> None:
    address = cluster.address("host-1")
    assert f"{address}:6444" in join_fails(cluster, endpoint=f"{address}:6444")
    nobody = f"{address.rpartition('.')[0]}.250"
    assert f"{nobody}:6443" in join_fails(cluster, endpoint=f"{nobody}:6443")


def test_clocks_that_differ(cluster: Nodes) -> None:
    """A node whose clock is a day behind sees certificates that are valid from tomorrow on."""
    pki, address = "/etc/kubernetes/pki", cluster.address("host-1")
    cluster.lab.on("host-1", f"cp {pki}/apiserver.crt {pki}/apiserver.key /srv/")
    cluster.lab.on("host-1", f"/opt/slipway/bin/python3 - {address} {pki}/ca 1 {pki}/apiserver.crt {pki}/apiserver.key", stdin=CERTIFY)
    try:
        wait_served(cluster, f"{pki}/apiserver.crt")
        said = join_fails(cluster)
    finally:
        cluster.lab.on("host-1", f"cp /srv/apiserver.crt /srv/apiserver.key {pki}/")
        wait_served(cluster, f"{pki}/apiserver.crt")
    assert "is not valid before" in said
    assert "clock" in said


def wait_served(cluster: Nodes, path: str) -> None:
    """Until the API server has taken up a certificate file, for which it has a minute."""
    served = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], 6443)))"
    wanted = cluster.lab.on("host-1", f"cat {path}").strip()
    ask = f"python3 - {cluster.address('host-1')}"
    eventually_blocking(lambda: cluster.lab.on("host-1", ask, stdin=served).strip() == wanted, f"{path} is served", 90, pause=1)


def test_a_taken_port(cluster: Nodes) -> None:
    cluster.write_config("host-2")
    cluster.lab.on("host-2", "systemd-run --quiet --unit=taker python3 -m http.server 6443")
    try:
        said = failing(cluster, "host-2", f"{OURS} init --config /srv/kubeadm.yaml {IGNORED}")
    finally:
        cluster.lab.on("host-2", "systemctl stop taker")
    assert "[ERROR Port-6443]: Port 6443 is in use" in said
    assert cluster.lab.on("host-2", "find /etc/kubernetes -type f", check=False) == ""


@pytest.mark.parametrize("size", ["8k", "40k", "72k"])
def test_a_full_disk(cluster: Nodes, size: str) -> None:
    """Wherever the disk ends, no file is half written."""
    cluster.write_config("host-2")
    cluster.lab.on("host-2", f"mkdir -p /etc/kubernetes && mount -t tmpfs -o size={size} tmpfs /etc/kubernetes")
    try:
        said = failing(cluster, "host-2", f"{OURS} init --config /srv/kubeadm.yaml {IGNORED}")
        left = cluster.lab.on("host-2", "find /etc/kubernetes -name '.*' -type f; find /etc/kubernetes -type f -size 0")
    finally:
        cluster.lab.on("host-2", "umount /etc/kubernetes")
    assert "No space left on device" in said
    assert "/etc/kubernetes" in said
    assert left == ""


def test_a_runtime_that_stops_in_the_middle(cluster: Nodes) -> None:
    cluster.write_config("host-2", init="timeouts:\n  controlPlaneComponentHealthCheck: 25s\n")
    # Masked, since the kubelet's unit would start it again.
    written = "/etc/kubernetes/manifests/kube-scheduler.yaml"
    script = f"until test -e {written}; do sleep 0.05; done; systemctl mask --runtime --now containerd"
    cluster.lab.on("host-2", f"systemd-run --quiet --unit=stopper sh -c '{script}'")
    said = failing(cluster, "host-2", f"{OURS} init --config /srv/kubeadm.yaml {IGNORED}")
    assert "container runtime" in said
    cluster.lab.on("host-2", "systemctl unmask --runtime containerd; systemctl start containerd")
    cluster.lab.on("host-2", f"{OURS} init --config /srv/kubeadm.yaml {IGNORED}")
    cluster.wait_healthy("host-2")
    cluster.lab.on("host-2", f"{OURS} reset --force")


def test_a_component_that_cannot_start_is_diagnosed(cluster: Nodes) -> None:
    extra = "scheduler:\n  extraArgs:\n  - name: no-such-flag\n    value: x\n"
    cluster.write_config("host-2", cluster=extra, init="timeouts:\n  controlPlaneComponentHealthCheck: 40s\n")
    said = failing(cluster, "host-2", f"{OURS} init --config /srv/kubeadm.yaml {IGNORED}")
    assert "kube-scheduler exited with exit code 1: it does not know the flag --no-such-flag" in said
    assert "unknown flag: --no-such-flag" in said, "the container's own last lines"
    cluster.lab.on("host-2", f"{OURS} reset --force")


def test_afterwards_the_machine_joins(cluster: Nodes) -> None:
    cluster.join("host-2", OURS, control_plane=True)
    cluster.wait_healthy()
    assert cluster.etcd_members() == {"host-1": False, "host-2": False}
