"""A registry with images of a few bytes, for programs that pull: the reading half of the OCI distribution specification."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import json
import platform
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def tar(files: Mapping[str, str]) -> bytes:
    """A layer with files that have these contents."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return written.getvalue()


class ImageRegistry:
    """What the registry has; tests damage it as they like."""

    def __init__(self) -> None:
        self.address = ""
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.asked: list[str] = []

    def add(self, name: str, *layers: bytes, compressed: bool = False) -> str:
        """An image of layers, the lowest first, under ``repository:tag``; its digest."""
        stored = [gzip.compress(layer) if compressed else layer for layer in layers]
        config = json.dumps({"rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}}).encode()
        for blob in (*stored, config):
            self.blobs[digest(blob)] = blob
        kind = f"{LAYER}+gzip" if compressed else LAYER
        described = [{"mediaType": kind, "digest": digest(blob), "size": len(blob)} for blob in stored]
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": {"digest": digest(config)}, "layers": described}
        return self.add_document(name, MANIFEST, document)

    def add_document(self, name: str, media_type: str, document: Any) -> str:
        repository, _, tag = name.rpartition(":")
        body = json.dumps(document).encode()
        for reference in (tag, digest(body)):
            self.manifests[repository, reference] = (media_type, body)
        return digest(body)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        self.asked.append(path)
        if path == "/v2/":
            return 200, "application/json", b"{}"
        repository, _, reference = path.removeprefix("/v2/").partition("/manifests/")
        if (repository, reference) in self.manifests:
            return 200, *self.manifests[repository, reference]
        blob = self.blobs.get(path.rpartition("/blobs/")[2])
        return (200, "application/octet-stream", blob) if blob is not None else (404, "application/json", b"{}")


@contextmanager
def image_registry() -> Iterator[ImageRegistry]:
    made = ImageRegistry()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, kind, body = made.answer(self.path)
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.address = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
