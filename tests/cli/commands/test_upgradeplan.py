"""``upgrade plan`` and ``upgrade diff`` where there is no cluster; the texts are those of the real kubeadm 1.35.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.conftest import Run


def test_a_plan_needs_the_administrators_file(run: Run) -> None:
    outcome = run("upgrade", "plan", "v1.36.3")
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith('error: couldn\'t create a Kubernetes client from file "/etc/kubernetes/admin.conf": ')


def test_there_is_no_difference_without_a_control_plane(run: Run) -> None:
    outcome = run("upgrade", "diff", "v1.36.3")
    assert outcome.code == 1
    assert 'the manifest file "/etc/kubernetes/manifests/kube-apiserver.yaml" does not exist' in outcome.err


def test_a_plan_is_for_one_version(run: Run) -> None:
    outcome = run("upgrade", "plan", "v1.36.2", "v1.36.3")
    assert outcome.code == 1
    assert "too many arguments. Required arguments: [version]" in outcome.err
