"""Our steps beside what kubeadm itself made of the same files (tests/golden/history/README.md).

kubeadm writes its defaults into what it converts, and we do not.  So every field that we give must be equal, and every
field that only kubeadm gives must hold the default of its time, as listed here.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from slipway.api.kubeadm.history import Component, Journal, kinds
from slipway.api.kubeadm.migrate import migrate, sparse
from slipway.api.machinery import strict
from slipway.api.machinery.yaml import goyaml

GOLDEN = Path(__file__).parents[2] / "golden" / "history"

# kubeadm's steps from one version to the next: the input and kubeadm's output.
STEPS = [
    ("v1.11.10/conversion/master/v1alpha1.yaml", "v1.11.10/conversion/master/v1alpha2.yaml"),
    ("v1.11.10/conversion/node/v1alpha1.yaml", "v1.11.10/conversion/node/v1alpha2.yaml"),
    ("v1.11.10/defaulting/master/incomplete.yaml", "v1.11.10/defaulting/master/defaulted.yaml"),
    ("v1.11.10/defaulting/node/incomplete.yaml", "v1.11.10/defaulting/node/defaulted.yaml"),
    ("v1.12.10/conversion/master/v1alpha2.yaml", "v1.12.10/conversion/master/v1alpha3.yaml"),
    ("v1.12.10/conversion/node/v1alpha2.yaml", "v1.12.10/conversion/node/v1alpha3.yaml"),
    ("v1.12.10/defaulting/master/incomplete.yaml", "v1.12.10/defaulting/master/defaulted.yaml"),
    ("v1.12.10/defaulting/node/incomplete.yaml", "v1.12.10/defaulting/node/defaulted.yaml"),
    ("v1.13.12/conversion/master/v1alpha3.yaml", "v1.13.12/conversion/master/v1beta1.yaml"),
    ("v1.13.12/conversion/node/v1alpha3.yaml", "v1.13.12/conversion/node/v1beta1.yaml"),
    ("v1.13.12/defaulting/node/incomplete.yaml", "v1.13.12/defaulting/node/defaulted.yaml"),
    ("v1.14.10/conversion/controlplane/v1alpha3.yaml", "v1.14.10/conversion/controlplane/v1beta1.yaml"),
    ("v1.14.10/conversion/node/v1alpha3.yaml", "v1.14.10/conversion/node/v1beta1.yaml"),
    ("v1.14.10/defaulting/node/incomplete.yaml", "v1.14.10/defaulting/node/defaulted.yaml"),
    ("v1.15.12/conversion/node/v1beta1.yaml", "v1.15.12/conversion/node/v1beta2.yaml"),
    ("chain/v1beta1/input.yaml", "chain/v1beta1/v1.21.14.yaml"),
    ("chain/v1beta1-join/input.yaml", "chain/v1beta1-join/v1.21.14.yaml"),
    ("chain/v1beta1-external/input.yaml", "chain/v1beta1-external/v1.21.14.yaml"),
    ("chain/v1beta1/v1.21.14.yaml", "chain/v1beta1/v1.22.17.yaml"),
    ("chain/v1beta1-join/v1.21.14.yaml", "chain/v1beta1-join/v1.22.17.yaml"),
    ("chain/v1beta1-external/v1.21.14.yaml", "chain/v1beta1-external/v1.22.17.yaml"),
    ("chain/v1beta2/input.yaml", "chain/v1beta2/v1.22.17.yaml"),
    ("chain/v1beta2-join-file/input.yaml", "chain/v1beta2-join-file/v1.22.17.yaml"),
]
CHAINS = sorted(path.name for path in (GOLDEN / "chain").iterdir())
INPUTS = sorted(str(path.relative_to(GOLDEN)) for path in GOLDEN.glob("**/*.yaml") if path.parts[-2] != "types")

# What kubeadm of these releases writes where nothing is said (defaults.go of each version), by path without indices.
DEFAULTS: dict[str, tuple[Any, ...]] = {
    "apiEndpoint.bindPort": (6443,),
    "apiServer.timeoutForControlPlane": ("4m0s",),
    "auditPolicy.logDir": ("/var/log/kubernetes/audit",),
    "auditPolicy.logMaxAge": (2,),
    "bootstrapTokens.groups": (["system:bootstrappers:kubeadm:default-node-token"],),
    "bootstrapTokens.ttl": ("24h0m0s",),
    "bootstrapTokens.usages": (["signing", "authentication"],),
    "caCertPath": ("/etc/kubernetes/pki/ca.crt",),
    "caCertificateValidityPeriod": ("87600h0m0s",),
    "certificateValidityPeriod": ("8760h0m0s",),
    "certificatesDir": ("/etc/kubernetes/pki",),
    "clusterName": ("kubernetes",),
    "discovery.timeout": ("5m0s",),
    "discoveryTimeout": ("5m0s",),
    "dns.type": ("CoreDNS",),
    "encryptionAlgorithm": ("RSA-2048",),
    "etcd.local.dataDir": ("/var/lib/etcd",),
    "imageRepository": ("k8s.gcr.io", "registry.k8s.io"),
    "localAPIEndpoint.bindPort": (6443,),
    "networking.dnsDomain": ("cluster.local",),
    "networking.serviceSubnet": ("10.96.0.0/12",),
    "nodeRegistration.criSocket": ("/var/run/dockershim.sock", "unix:///var/run/dockershim.sock"),
    "nodeRegistration.imagePullPolicy": ("IfNotPresent",),
    "nodeRegistration.imagePullSerial": (True,),
    "nodeRegistration.taints.effect": ("NoSchedule",),
    "nodeRegistration.taints.key": ("node-role.kubernetes.io/master",),
    "timeouts.controlPlaneComponentHealthCheck": ("4m0s",),
    "timeouts.discovery": ("5m0s",),
    "timeouts.etcdAPICall": ("2m0s",),
    "timeouts.kubeletHealthCheck": ("4m0s",),
    "timeouts.kubernetesAPICall": ("1m0s",),
    "timeouts.tlsBootstrap": ("5m0s",),
    "timeouts.upgradeManifests": ("5m0s",),
    # Forced by kubeadm 1.11, and a default of the kubelet 1.12.
    "kubeletConfiguration.baseConfig.rotateCertificates": (True,),
    "nodeLeaseDurationSeconds": (40,),
}
# Fields that take their default from another one.
DERIVED = {"discoveryToken": "token", "tlsBootstrapToken": "token", "etcd.external.httpEndpoints": "etcd.external.endpoints"}
# Parts that kubeadm fills in whole, where the user wrote none of it.
COMPONENTS = (
    "KubeProxyConfiguration.",
    "KubeletConfiguration.",
    "MasterConfiguration.kubeProxy.",
    "MasterConfiguration.kubeletConfiguration.",
)


def read(text: str) -> list[tuple[str, str, goyaml.Document]]:
    """Version (of kubeadm's API only), kind and content of each document; files of v1alpha1 may not say."""
    found = []
    for document in goyaml.load(text):
        group, _, version = document.value.get("apiVersion", "kubeadm.k8s.io/v1alpha1").rpartition("/")
        found.append((version if group == "kubeadm.k8s.io" else "", document.value.get("kind", "MasterConfiguration"), document))
    return found


def typed(version: str, kind: str, document: goyaml.Document) -> Any:
    decoded, problems = strict.decode(kinds(version)[kind], document)
    assert problems == []
    return decoded


def by_kind(path: Path) -> dict[str, Any]:
    """The documents of a file as they are, but for zero values."""
    return {
        kind: sparse(typed(version, kind, document)) if version else document.value for version, kind, document in read(path.read_text())
    }


def after_one_step(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for version, kind, document in read(path.read_text()):
        if not version:
            found[kind] = document.value
            continue
        for new in import_module(f"slipway.api.kubeadm.history.{version}").convert(typed(version, kind, document), Journal()):
            found[new.kind if isinstance(new, Component) else type(new).__name__] = new.value if isinstance(new, Component) else sparse(new)
    return found


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        return {name: leaf for key, part in value.items() for name, leaf in leaves(part, f"{path}.{key}" if path else key).items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {name: leaf for index, part in enumerate(value) for name, leaf in leaves(part, f"{path}[{index}]").items()}
    return {path: value}


def unexplained(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Fields that differ for another reason than a default of kubeadm's."""
    mine, real = leaves(ours), leaves(theirs)
    found = [f"{path}: {value!r} != {real.get(path)!r}" for path, value in mine.items() if path not in real or real[path] != value]
    for path in real.keys() - mine.keys():
        kind, _, field = re.sub(r"\[\d+\]", "", path).partition(".")
        component = next((prefix for prefix in COMPONENTS if path.startswith(prefix)), None)
        untouched = component is not None and not any(name.startswith(component) for name in mine)
        derived = DERIVED.get(field)
        if derived is not None and real[path] == real.get(f"{kind}.{derived}"):
            continue
        if not untouched and real[path] not in DEFAULTS.get(field, ()):
            found.append(f"{path}: only kubeadm has it: {real[path]!r}")
    return sorted(found)


@pytest.mark.parametrize(("source", "expected"), STEPS, ids=[source for source, _ in STEPS])
def test_a_step_gives_what_kubeadm_gave(source: str, expected: str) -> None:
    ours, theirs = after_one_step(GOLDEN / source), by_kind(GOLDEN / expected)
    if "chain" in source and "ClusterConfiguration" in ours:
        # The recording raised the version between two kubeadms, which each refuse an older one.
        ours["ClusterConfiguration"]["kubernetesVersion"] = theirs["ClusterConfiguration"]["kubernetesVersion"]
    assert unexplained(ours, theirs) == []


@pytest.mark.parametrize("chain", CHAINS)
def test_one_step_gives_what_the_chain_of_kubeadms_gives_but_for_the_baked_in_defaults(chain: str) -> None:
    folder = GOLDEN / "chain" / chain
    ours = {document.value["kind"]: document.value for document in goyaml.load(migrate((folder / "input.yaml").read_text()).text)}
    theirs = {document.value["kind"]: document.value for document in goyaml.load((folder / "v1.35.4.yaml").read_text())}
    if "ClusterConfiguration" in ours:
        ours["ClusterConfiguration"]["kubernetesVersion"] = "v1.35.4"
    for kind in ours:
        del ours[kind]["apiVersion"], ours[kind]["kind"], theirs[kind]["apiVersion"], theirs[kind]["kind"]
    # kubeadm prints these even when they are empty.
    theirs = {path: leaf for path, leaf in leaves(theirs).items() if leaf not in ({}, None, "")}
    if chain == "v1beta2-join-file":
        # The input names the old socket, so the chain keeps it and we repair it.
        assert theirs.pop("JoinConfiguration.nodeRegistration.criSocket") == "unix:///var/run/dockershim.sock"
        assert ours["JoinConfiguration"]["nodeRegistration"].pop("criSocket") == "unix:///var/run/containerd/containerd.sock"
    assert unexplained(ours, theirs) == []


@pytest.mark.parametrize("chain", CHAINS)
def test_what_a_chain_of_kubeadms_baked_in_is_repaired(chain: str) -> None:
    migrated = migrate((GOLDEN / "chain" / chain / "v1.35.4.yaml").read_text())
    for old in ("k8s.gcr.io", "dockershim", "node-role.kubernetes.io/master"):
        assert old not in migrated.text


@pytest.mark.parametrize("source", INPUTS)
def test_migrating_a_second_time_changes_nothing(source: str) -> None:
    once = migrate((GOLDEN / source).read_text(), source)
    again = migrate(once.text, source)
    assert again.text == once.text
    assert {note.action for note in again.notes} <= {"kept"}


@pytest.mark.parametrize("source", INPUTS)
def test_every_document_of_the_result_is_current_and_strict(source: str) -> None:
    for version, kind, document in read(migrate((GOLDEN / source).read_text(), source).text):
        if version:
            assert version == "v1beta4"
            typed(version, kind, document)
