"""Images pulled by a real containerd from a real registry protocol, which a host serves from its own OCI archives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e.nodes import OURS, REAL, Nodes, nodes, real_hosts

pytestmark = real_hosts

VERSION = "v1.35.4"

# The reading half of the registry protocol (OCI distribution specification): manifests and blobs, out of OCI archives.
REGISTRY = """
import http.server, json, pathlib, tarfile
blobs, tags = {}, {}
for path in pathlib.Path("/usr/share/slipway/images").glob("*.tar"):
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if member.name.startswith("blobs/sha256/"):
                blobs["sha256:" + member.name.rpartition("/")[2]] = archive.extractfile(member).read()
        for entry in json.load(archive.extractfile("index.json"))["manifests"]:
            name, _, tag = entry["annotations"]["io.containerd.image.name"].partition("/")[2].rpartition(":")
            tags[name, tag] = entry
class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        name, _, rest = self.path.removeprefix("/v2/").partition("/manifests/" if "/manifests/" in self.path else "/blobs/")
        entry = tags.get((name, rest))
        digest = entry["digest"] if entry else rest
        body = blobs.get(digest, b"")
        self.send_response(200 if body or self.path == "/v2/" else 404)
        manifest = "/manifests/" in self.path
        self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json" if manifest else "application/octet-stream")
        self.send_header("Docker-Content-Digest", digest)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
    do_GET = do_HEAD = answer
http.server.ThreadingHTTPServer(("127.0.0.1", 5000), Registry).serve_forever()
"""

# What containerd speaks plain HTTP with by itself: an address of the machine.
REPOSITORY = "127.0.0.1:5000"
LISTENS = 'import socket; socket.create_connection(("127.0.0.1", 5000))'


@pytest.fixture(scope="module")
def host() -> Iterator[Nodes]:
    with nodes(VERSION, 1, "pull") as made:
        made.lab.on("host-1", "cat > /srv/registry.py", stdin=REGISTRY)
        made.lab.on("host-1", "systemd-run --quiet --unit=registry python3 /srv/registry.py")
        made.lab.on(
            "host-1", "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 5000))' 2>/dev/null; do sleep 0.1; done"
        )
        yield made


def pulled(host: Nodes) -> set[str]:
    return {name for name in host.lab.on("host-1", "ctr -n k8s.io images list -q").split() if name.startswith(f"{REPOSITORY}/")}


def forget(host: Nodes) -> None:
    for name in pulled(host):
        host.lab.on("host-1", f"ctr -n k8s.io images rm --sync {name}")


@pytest.mark.parametrize("serial", [True, False], ids=["one after the other", "at the same time"])
def test_every_image_is_pulled(host: Nodes, serial: bool) -> None:
    forget(host)
    host.write_config(
        "host-1",
        init=f"nodeRegistration:\n  imagePullSerial: {str(serial).lower()}\n",
        cluster=f"imageRepository: {REPOSITORY}\ndns:\n  imageRepository: {REPOSITORY}/coredns\n",
    )
    wanted = set(host.lab.on("host-1", f"{REAL} config images list --config /srv/kubeadm.yaml").split())
    said = host.lab.on("host-1", f"{OURS} config images pull --config /srv/kubeadm.yaml")
    assert pulled(host) >= wanted
    assert [line for line in said.splitlines() if line.startswith("[config/images] Pulled ")] != []
    assert {line.split()[-1] for line in said.splitlines() if line.startswith("[config/images] Pulled ")} == wanted


def test_an_image_that_the_registry_does_not_have_is_named(host: Nodes) -> None:
    command = f"{OURS} config images pull --image-repository {REPOSITORY}/nowhere --kubernetes-version {VERSION}"
    done = host.lab.run("host", "exec", "host-1", "--", "sh", "-ec", command, check=False)
    assert done.returncode == 1
    assert f"{REPOSITORY}/nowhere/kube-apiserver:{VERSION}" in done.stderr
    assert "not found" in done.stderr


def test_preflight_tells_and_pulls_what_is_missing(host: Nodes) -> None:
    forget(host)
    command = f"{OURS} init phase preflight --config /srv/kubeadm.yaml --ignore-preflight-errors=all"
    assert "[preflight] Pulling images required" in host.lab.on("host-1", command)
    assert len(pulled(host)) >= 7
