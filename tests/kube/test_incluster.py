"""The connection of a Pod, by the files and the environment that the kubelet gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.kube import incluster
from slipway.kube.connection import Connection


@pytest.fixture
def account(tmp_path: Path) -> str:
    for name, text in (("token", "secret\n"), ("ca.crt", "PEM"), ("namespace", "slipway-system")):
        (tmp_path / name).write_text(text)
    return str(tmp_path)


@pytest.mark.parametrize(("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")])
def test_the_service_account_is_who_it_is(account: str, host: str, server: str) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    assert incluster.available(environment, account)
    expected = Connection(server=server, ca=b"PEM", token="secret", token_file=f"{account}/token")
    assert incluster.connection(environment, account) == expected
    assert incluster.namespace(account) == "slipway-system"


def test_outside_of_a_pod_it_says_what_to_do(account: str, tmp_path: Path) -> None:
    assert not incluster.available({}, account)
    with pytest.raises(OperatorError, match=r"this is not a Pod: .*name the cluster with --kubeconfig"):
        incluster.connection({}, account)
    assert incluster.namespace(str(tmp_path / "none")) == ""


def test_a_pod_without_a_token_says_which_file_is_missing(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(OperatorError, match=r"cannot read .*/ca.crt of the Pod's service account: No such file or directory"):
        incluster.connection(environment, str(tmp_path))
