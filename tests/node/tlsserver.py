"""A cluster that is being discovered: a TLS server that answers with the JSON it is given, and the cluster-info of its authority."""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from support import tlsserver
from support.tlsserver import Server, authority, json_answer, leaf

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.credentials import x509 as credentials
from slipway.workload import clusterinfo

NOW, DAY = tlsserver.NOW, timedelta(days=1)
Answer = tuple[int, dict[str, Any]]


class Bundle:
    """Certificates that came together."""

    def __init__(self, pem: bytes) -> None:
        self.pem = pem


class Authority:
    """A CA with a key of its own."""

    def __init__(self, name: str = "kubernetes") -> None:
        self._identity = authority(name)
        self.pem = self._identity.certificate

    @property
    def pin(self) -> str:
        return credentials.public_key_pins(self.pem)[0]

    def server_pem(self, period: tuple[timedelta, timedelta] = (-DAY, DAY), name: str = "kube-apiserver") -> bytes:
        """A certificate for 127.0.0.1 with its key; the period is told from now."""
        begins, ends = (end / DAY for end in period)
        return leaf(self._identity, names=("127.0.0.1",), begins=begins, ends=ends, common_name=name).pem


@contextmanager
def serving(folder: Path, pem: bytes, answer: Callable[[str, str], Answer]) -> Iterator[str]:
    """Serve until the block ends; ``answer`` gets path and Authorization header.  The value is host:port."""

    def step(connection: ssl.SSLSocket, request: bytes) -> bool:
        line, *headers = request.decode().split("\r\n")
        fields = dict(header.split(": ", 1) for header in headers if header)
        status, body = answer(line.split()[1], fields.get("Authorization", ""))
        return json_answer(json.dumps(body), f"{status} {HTTPStatus(status).phrase}")(connection, request)

    server = Server(folder, pem, step)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.close()


def cluster_info(authority: Authority | Bundle, *tokens: str, server: str = "https://10.0.0.1:6443") -> dict[str, Any]:
    """The ConfigMap as the controller manager leaves it, signed with tokens."""
    text = clusterinfo.kubeconfig(server, b64encode(authority.pem).decode(), release_for(Version(1, 35, 4)))
    found = clusterinfo.config_map(text)
    found["data"] |= {clusterinfo.SIGNATURE_PREFIX + token.partition(".")[0]: clusterinfo.signature(text, token) for token in tokens}
    return found
