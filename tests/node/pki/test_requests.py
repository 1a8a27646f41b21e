"""``certs generate-csr``, against the real kubeadm's keys, requests and kubeconfigs."""

from __future__ import annotations

from pathlib import Path

import cases.certificate_state as state
import pytest
from cases.certificates import Machine, cases_with_fast_keys, described_tree, read_golden

from slipway.api.machinery.errors import OperatorError
from slipway.node.pki import requests

pytestmark = pytest.mark.recorded


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
@pytest.mark.parametrize(("name", "version"), cases_with_fast_keys())
def test_requests_are_those_of_the_real_kubeadm(name: str, version: str, tmp_path: Path) -> None:
    machine, golden = Machine(tmp_path, name, version), read_golden(name, version)
    machine.ctx.config.cluster.certificates_dir = "/requests/pki"
    requests.generate(machine.ctx, "/requests")
    assert sorted(machine.said()) == golden["generate-csr"]
    assert described_tree(tmp_path / "requests") == golden["requests"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("pki/apiserver.key", "file already exists: key or CSR /requests/pki/apiserver"),
        ("pki/etcd/peer.csr", "file already exists: key or CSR /requests/pki/etcd/peer"),
        ("admin.conf", "file already exists: kube config: /requests/admin.conf"),
        ("kubelet.conf.csr", "file already exists: csr: /requests/kubelet.conf"),
    ],
)
def test_nothing_is_overwritten(path: str, sentence: str, tmp_path: Path) -> None:
    existing = tmp_path / "requests" / path
    existing.parent.mkdir(parents=True)
    existing.write_text("precious")
    machine = Machine(tmp_path)
    machine.ctx.config.cluster.certificates_dir = "/requests/pki"
    with pytest.raises(OperatorError, match=sentence):
        requests.generate(machine.ctx, "/requests")
    assert state.contents(tmp_path) == {f"requests/{path}": b"precious"}
