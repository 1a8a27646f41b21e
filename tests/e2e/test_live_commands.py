"""``token``, ``certs`` and ``kubeconfig`` on a cluster that the real kubeadm made: what they print is what the real ones print."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from e2e.labcli import LabCommands
from e2e.nodes import CERTIFICATE_KEY, REAL, TOKEN, nodes, real_hosts

pytestmark = real_hosts

VERSION = "v1.35.4"
OURS = "kubeadm"  # by that name it answers in the words of kubeadm
OTHER = "aaaaaa.0123456789abcdef"
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|resourceVersion: \S+|uid: \S+")


@pytest.fixture(scope="module")
def lab() -> Iterator[LabCommands]:
    with nodes(VERSION, 1, "commands") as made:
        made.init("host-1", REAL)
        made.lab.on("host-1", "cd; sed s/6443/6444/ /etc/kubernetes/admin.conf > closed.conf")
        yield made.lab


def both(lab: LabCommands, words: str, *, between: str = "true") -> tuple[str, str]:
    """What the real program and ours print on standard output, with their exit codes, but for times."""
    shown = []
    for program in (REAL, OURS):
        text = lab.on("host-1", f"cd; code=0; {program} {words} || code=$?; echo code $code; {between}")
        shown.append(TIMES.sub("T", text))
    return shown[0], shown[1]


@pytest.mark.parametrize(
    "words",
    [
        "token list",
        "token list -o json",
        "token list -o yaml",
        "token list -o kyaml",
        f"token create {TOKEN}",
        f"token create {OTHER} --ttl 0 --dry-run",
        f"token create {OTHER} --ttl 0 --dry-run --print-join-command",
        f"token create {OTHER} --ttl 0 --dry-run --print-join-command --certificate-key {CERTIFICATE_KEY}",
        f"token delete --dry-run {TOKEN}",
        "token delete zzzzzz",
        "token list --kubeconfig closed.conf",
        "certs check-expiration",
        "certs check-expiration -o json | sed /residual/d",
        "certs check-expiration -o yaml | sed /residual/d",
        "certs check-expiration --kubeconfig closed.conf",
        "certs check-expiration --kubeconfig none.conf",
        "certs renew scheduler.conf",
        "certs renew apiserver --kubeconfig closed.conf",
        "certs renew all",
    ],
)
def test_both_print_the_same(lab: LabCommands, words: str) -> None:
    real, ours = both(lab, words)
    assert ours == real


@pytest.mark.parametrize(
    "words",
    ["--ttl 0 --description 'a & b <c>' --usages authentication --groups system:bootstrappers:x", "--ttl 90s", "--print-join-command"],
)
def test_both_make_the_same_token(lab: LabCommands, words: str) -> None:
    look = (
        "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get secret bootstrap-token-aaaaaa "
        f"-o jsonpath='{{.type}}{{.data}}' | sed 's/\"expiration\":[^,]*//'; {OURS} token list; {REAL} token delete aaaaaa zzzzzz || true"
    )
    real, ours = both(lab, f"token create {OTHER} {words}", between=look)
    assert ours == real


def test_a_kubeconfig_for_a_user_leads_to_the_cluster(lab: LabCommands) -> None:
    """Where the real one needs the file, the cluster is asked."""
    real = lab.on("host-1", f"cd; {REAL} kubeconfig user --client-name jane --config /srv/kubeadm.yaml | grep -v -e -data:")
    ours = lab.on("host-1", f"cd; {OURS} kubeconfig user --client-name jane | grep -v -e -data:")
    assert ours == real
