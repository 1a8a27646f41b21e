"""An image fetched from a registry into a folder: its layers one over the other, each byte checked, nothing outside of the folder."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import ssl
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from lab.image_registry import ImageRegistry, digest, image_registry, tar
from support import tlsserver

from slipway.agent.staging import fetch
from slipway.agent.staging.fetch import Room
from slipway.agent.staging.registry import Layer, PullError, Registry, parse
from slipway.api.machinery.errors import OperatorError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files of many owners need root")
OS = "os/base:v1.35.4"


@pytest.fixture
def images() -> Iterator[ImageRegistry]:
    with image_registry() as made:
        yield made


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """How full the disk of this machine is says nothing."""
    monkeypatch.setattr(fetch, "_room", lambda folder: Room(1 << 40, 1 << 40))


def members(*found: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for each in found:
            member, content = each if isinstance(each, tuple) else (each, b"")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


def fetched(images: ImageRegistry, tmp_path: Path, name: str = OS) -> Path:
    fetch.fetch(f"{images.address}/{name}", str(tmp_path / "root"))
    return tmp_path / "root"


def refused(images: ImageRegistry, tmp_path: Path) -> str:
    with pytest.raises(OperatorError) as error:
        fetched(images, tmp_path)
    return error.value.message


@pytest.mark.parametrize("compressed", [False, True])
def test_layers_lie_one_over_the_other(images: ImageRegistry, tmp_path: Path, compressed: bool) -> None:
    made = images.add(
        OS, tar({"etc/kept": "base", "etc/changed": "base"}), tar({"etc/changed": "top", "usr/new": "top"}), compressed=compressed
    )
    found = fetch.fetch(f"{images.address}/{OS}", str(tmp_path / "root"))
    root = tmp_path / "root"
    assert {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()} == {
        "etc/kept": "base",
        "etc/changed": "top",
        "usr/new": "top",
    }
    assert found.digest == made


def test_what_a_layer_removes_is_gone_and_what_it_brings_stays(images: ImageRegistry, tmp_path: Path) -> None:
    lower = tar({"etc/gone": "x", "etc/kept": "x", "opt/a": "x", "opt/b/c": "x", "srv/old": "x"})
    device = tarfile.TarInfo("srv/old")
    device.type = tarfile.CHRTYPE
    upper = members(
        tarfile.TarInfo("etc/.wh.gone"),
        (tarfile.TarInfo("opt/new"), b"x"),
        tarfile.TarInfo("opt/.wh..wh..opq"),
        device,
    )
    images.add(OS, lower, upper)
    root = fetched(images, tmp_path)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) == ["etc/kept", "opt/new"]


def test_owners_modes_links_and_capabilities_are_those_of_the_image(images: ImageRegistry, tmp_path: Path) -> None:
    program = tarfile.TarInfo("usr/bin/ping")
    program.uid, program.gid, program.mode = 7, 8, 0o4711
    # A capability as the kernel keeps it, which is no text.
    kept = bytes.fromhex("0100000200200000000000000000000000000000")
    program.pax_headers = {"SCHILY.xattr.security.capability": kept.decode("utf-8", "surrogateescape")}
    images.add(OS, members((program, b"x"), link("usr/bin/ping6", "usr/bin/ping", tarfile.LNKTYPE), link("bin", "usr/bin")))
    root = fetched(images, tmp_path)
    found = (root / "usr/bin/ping").stat()
    assert (found.st_uid, found.st_gid, oct(found.st_mode & 0o7777), found.st_nlink) == (7, 8, "0o4711", 2)
    assert os.readlink(root / "bin") == "usr/bin"
    assert os.getxattr(root / "usr/bin/ping", "security.capability") == kept


def test_no_link_in_an_image_leads_out_of_its_folder(images: ImageRegistry, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    images.add(
        OS,
        members(link("etc", str(tmp_path / "outside")), link("up", "../../outside")),
        members(
            (tarfile.TarInfo("etc/passwd"), b"mine"), (tarfile.TarInfo("up/passwd"), b"mine"), (tarfile.TarInfo("../../outside/x"), b"mine")
        ),
    )
    root = fetched(images, tmp_path)
    assert list((tmp_path / "outside").iterdir()) == []
    assert (root / "outside/passwd").read_text() == "mine"


def test_a_file_that_is_replaced_does_not_change_its_other_names(images: ImageRegistry, tmp_path: Path) -> None:
    lower = members((tarfile.TarInfo("a"), b"old"), link("b", "a", tarfile.LNKTYPE), link("c", "a"))
    images.add(OS, lower, members((tarfile.TarInfo("a"), b"new"), (tarfile.TarInfo("c"), b"own")))
    root = fetched(images, tmp_path)
    assert [(root / name).read_text() for name in "abc"] == ["new", "old", "own"]


def test_a_layer_that_is_not_what_its_digest_says_is_refused(images: ImageRegistry, tmp_path: Path) -> None:
    layer = tar({"etc/kept": "base"})
    images.add(OS, layer)
    images.blobs[digest(layer)] = tar({"etc/kept": "evil"})
    assert "is not what it is named" in refused(images, tmp_path)


def test_a_layer_that_ends_in_the_middle_is_refused(images: ImageRegistry, tmp_path: Path) -> None:
    layer = tar({"etc/kept": "base" * 10000})
    images.add(OS, layer)
    images.blobs[digest(layer)] = layer[:9000]
    assert refused(images, tmp_path)


def test_an_image_that_is_there_already_is_not_fetched_again(images: ImageRegistry, tmp_path: Path) -> None:
    made = images.add(OS, tar({"etc/kept": "base"}))
    found = fetch.fetch(f"{images.address}/{OS}", str(tmp_path / "root"), made)
    assert (found.same, (tmp_path / "root").exists()) == (True, False)


def test_the_room_that_the_kubelet_wants_and_that_a_deployment_takes_is_left(images: ImageRegistry, tmp_path: Path) -> None:
    assert fetch.reserved(100 << 30, {"nodefs.available": "10%", "imagefs.available": "15%"}) == 15 << 30
    assert fetch.reserved(100 << 30, {"nodefs.available": "20Gi"}) == 20 << 30
    assert fetch.reserved(2 << 30, {"nodefs.available": "1%"}) == 1 << 30
    fetch.check_room(Room(100 << 30, 3 << 30), 2 << 30, 1 << 30, OS)
    with pytest.raises(OperatorError, match="1024 MiB are left alone; it is pulled when it is needed"):
        fetch.check_room(Room(100 << 30, (3 << 30) - 1), 2 << 30, 1 << 30, OS)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, {}),
        ("kind: KubeletConfiguration\n", {"nodefs.available": "10%", "imagefs.available": "15%"}),
        ("evictionHard: {nodefs.available: 1%}\n", {"nodefs.available": "1%", "imagefs.available": "15%"}),
        ("{", {"nodefs.available": "10%", "imagefs.available": "15%"}),
    ],
    ids=["no-node", "defaults", "own", "unreadable"],
)
def test_the_kubelets_thresholds_are_those_of_its_configuration(tmp_path: Path, config: str | None, expected: dict[str, str]) -> None:
    path = tmp_path / "config.yaml"
    if config is not None:
        path.write_text(config)
    assert fetch._thresholds(str(path)) == expected


class _Guarded(BaseHTTPRequestHandler):
    """In front of a registry: gives a token to whoever has the password, and asks for the token."""

    registry: ImageRegistry

    def do_GET(self) -> None:
        told = self.headers.get("Authorization", "")
        if self.path.startswith("/token"):
            code, kind, body = 200, "application/json", json.dumps({"token": "t0ken"}).encode()
            if told != f"Basic {base64.b64encode(b'robot:secret').decode()}" or "scope=repository%3Aos%2Fbase%3Apull" not in self.path:
                code = 403
        elif told == "Bearer t0ken":
            code, kind, body = self.registry.answer(self.path)
        else:
            code, kind, body = 401, "application/json", b"{}"
        self.send_response(code)
        if code == 401:
            host = self.headers["Host"]
            self.send_header("WWW-Authenticate", f'Bearer realm="http://{host}/token",service="s",scope="repository:os/base:pull"')
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""


def test_a_registry_that_asks_who_is_there_is_told_by_the_hosts_docker_configuration(
    images: ImageRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images.add(OS, tar({"etc/kept": "base"}))
    handler = type("Handler", (_Guarded,), {"registry": images})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        auths = {"auths": {address: {"auth": base64.b64encode(b"robot:secret").decode()}}}
        (tmp_path / "config.json").write_text(json.dumps(auths))
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        fetch.fetch(f"{address}/{OS}", str(tmp_path / "root"))
        server.shutdown()
    assert (tmp_path / "root/etc/kept").read_text() == "base"


def test_a_password_is_not_sent_without_tls_where_the_registry_has_it(
    images: ImageRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = type("Handler", (_Guarded,), {"registry": images})
    (tmp_path / "pair.pem").write_bytes(tlsserver.leaf(tlsserver.authority()).pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        address = f"127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {address: {"auth": "cm9ib3Q6c2VjcmV0"}}}))
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        with pytest.raises(PullError, match=f"password to be sent to http://{address}/token, without TLS: it is not sent"):
            Registry(address, verify=False).manifest(parse(f"{address}/{OS}"))
        server.shutdown()


def test_gzip_of_many_members_is_read_to_its_end_in_pieces_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_PIECE", 1000)
    content = bytes(5000) + b"the end"
    packed = gzip.compress(content) + gzip.compress(content)
    layer = Layer("sha256:it", len(packed), "application/vnd.oci.image.layer.v1.tar+gzip", digest(content * 2))
    pieces = list(fetch._content(iter((packed[:7], packed[7:])), layer, lambda count: None))
    assert b"".join(pieces) == content * 2
    assert max(map(len, pieces)) == 1000
