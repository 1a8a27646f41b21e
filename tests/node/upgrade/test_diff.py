"""``upgrade diff``; the texts were seen in runs of the real kubeadm 1.35.4."""

from __future__ import annotations

import pytest
from node.conftest import Lines, MakeContext

from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, Etcd, Networking
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.node.staticpods import components
from slipway.node.upgrade import diff

PATH = "/etc/kubernetes/manifests/kube-scheduler.yaml"


def configuration(version: str) -> ClusterConfiguration:
    return ClusterConfiguration(
        kubernetes_version=version,
        image_repository="registry.k8s.io",
        certificates_dir="/etc/kubernetes/pki",
        networking=Networking(service_subnet="10.96.0.0/12"),
        etcd=Etcd(),
    )


@pytest.mark.parametrize(
    ("context_lines", "shown"),
    [
        (0, "@@ -2 +2 @@\n-    image: registry.k8s.io/kube-scheduler:v1.34.10\n+    image: registry.k8s.io/kube-scheduler:v1.35.4\n"),
        (
            1,
            "@@ -1,3 +1,3 @@\n     - --leader-elect=true\n-    image: registry.k8s.io/kube-scheduler:v1.34.10\n"
            "+    image: registry.k8s.io/kube-scheduler:v1.35.4\n     imagePullPolicy: IfNotPresent\n",
        ),
        # Both texts end with a newline, after which kubeadm's library sees one more line.
        (
            2,
            "@@ -1,4 +1,4 @@\n     - --leader-elect=true\n-    image: registry.k8s.io/kube-scheduler:v1.34.10\n"
            "+    image: registry.k8s.io/kube-scheduler:v1.35.4\n     imagePullPolicy: IfNotPresent\n \n",
        ),
    ],
)
def test_differences_are_shown_with_the_context_that_is_asked_for(context_lines: int, shown: str) -> None:
    old = "    - --leader-elect=true\n    image: registry.k8s.io/kube-scheduler:v1.34.10\n    imagePullPolicy: IfNotPresent\n"
    made = diff.compare(old, old.replace("v1.34.10", "v1.35.4"), PATH, context_lines)
    assert made == f"--- {PATH}\n+++ new manifest\n{shown}"


def test_the_three_components_are_compared(make_context: MakeContext, lines: Lines) -> None:
    endpoint = APIEndpoint(advertise_address="10.0.0.1", bind_port=6443)
    before = make_context(configuration("v1.35.1"), endpoint=endpoint, version="v1.35.4")
    for component in components.COMPONENTS:
        before.host.write(components.path_of(component), goyaml.dump(components.manifest(component, before)).encode())
    diff.check_manifests(before.host)
    diff.show(before, 0)
    assert "".join(lines.shown) == ""
    diff.show(make_context(configuration("v1.35.4"), endpoint=endpoint, version="v1.35.4"), 0)
    changed = [line for text in lines.shown for line in text.splitlines() if line.startswith("+ ")]
    assert changed == [f"+    image: registry.k8s.io/{component}:v1.35.4" for component in components.COMPONENTS]


def test_there_is_nothing_to_compare_on_a_worker(make_context: MakeContext) -> None:
    with pytest.raises(OperatorError, match=r'the manifest file "/etc/kubernetes/manifests/kube-apiserver\.yaml" does not exist'):
        diff.check_manifests(make_context().host)
