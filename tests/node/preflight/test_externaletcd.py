"""The version of an external etcd; rows of kubeadm's preflight/checks_test.go (1.36.3)."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from support.machine import Machine

from slipway.api.kubeadm.internal import ExternalEtcd
from slipway.node.preflight import externaletcd

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.upstream_table

NEW, OLD = b'{"etcdserver":"3.6.6","etcdcluster":"3.6.0"}', b'{"etcdserver":"3.5.9","etcdcluster":"3.5.0"}'
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([NEW], ""),
        ([REFUSED, REFUSED, REFUSED, NEW], ""),
        ([REFUSED] * 4, "does not tell its version: [Errno 111] Connection refused"),
        ([OSError(errno.EHOSTUNREACH, "No route to host")], "does not tell its version: [Errno 113] No route to host"),
        ([OLD], "only supports external etcd version >= 3.5.24-0. Current version: 3.5.9"),
        ([b'{"etcdserver":"3.5.24"}'], ""),
        ([b'{"etcdserver":"three"}'], 'couldn\'t parse external etcd version "three"'),
        ([b"no json"], "couldn't read the version of the external etcd"),
    ],
)
def test_an_external_etcd_must_be_new_enough(answers: list[bytes | OSError], problem: str, tmp_path: Path) -> None:
    host = Machine(tmp_path)
    host.answers = {"https://e1:2379/version": list(answers)}
    errors = externaletcd.version(ExternalEtcd(), ["https://e1:2379/"], pause=0).find(host).errors
    assert [problem in error for error in errors] == ([True] if problem else [])
    assert host.answers == {"https://e1:2379/version": []}


def test_every_endpoint_is_asked(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    host.answers = {"http://e1:2379/version": [OLD], "http://e2:2379/version": [NEW], "http://e3:2379/version": [OLD]}
    errors = externaletcd.version(ExternalEtcd(), ["http://e1:2379", "http://e2:2379", "http://e3:2379"], pause=0).find(host).errors
    assert len(errors) == 2


def test_a_missing_certificate_is_named_and_nobody_asked(tmp_path: Path) -> None:
    etcd = ExternalEtcd(ca_file="/etc/etcd/ca.crt")
    errors = externaletcd.version(etcd, ["https://e1:2379"]).find(Machine(tmp_path)).errors
    assert errors == ("couldn't load external etcd's certificates: /etc/etcd/ca.crt doesn't exist",)
