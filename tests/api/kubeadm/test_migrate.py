"""Whole files through ``migrate``: what is kept, what is said, what is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from slipway.api.kubeadm.migrate import Migration, migrate
from slipway.api.machinery.errors import ConfigurationError
from slipway.lab.programs.cache import cache_root

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden" / "history"
KUBEADM = cache_root() / "bin" / "v1.35.4" / "kubeadm"


def migrated(text: str) -> Migration:
    return migrate(dedent(text).lstrip("\n"), "old.yaml")


def said(migration: Migration) -> list[str]:
    return [f"{note.action} {note.path}" for note in migration.notes]


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        migrated(text)
    return caught.value.message


# ---- what comes out


def test_a_sparse_file_stays_sparse() -> None:
    migration = migrated(
        """
        apiVersion: kubeadm.k8s.io/v1beta2
        kind: ClusterConfiguration
        networking:
          podSubnet: 10.244.0.0/16
        """
    )
    assert migration.text == dedent(
        """\
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: ClusterConfiguration
        networking:
          podSubnet: 10.244.0.0/16
        """
    )
    assert migration.notes == []


def test_an_empty_configuration_of_any_old_version_is_one_of_v1beta4() -> None:
    for version in ("v1alpha3", "v1beta1", "v1beta2", "v1beta3"):
        text = f"apiVersion: kubeadm.k8s.io/{version}\nkind: InitConfiguration\n"
        assert migrate(text).text == "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"


def test_v1alpha1_reaches_v1beta4_in_one_step() -> None:
    migration = migrated(
        """
        apiVersion: kubeadm.k8s.io/v1alpha1
        kind: MasterConfiguration
        api:
          advertiseAddress: 192.0.2.1
          controlPlaneEndpoint: cp.example
        token: abcdef.0123456789abcdef
        nodeName: first
        kubernetesVersion: v1.35.4
        apiServerExtraArgs:
          v: "2"
        apiServerExtraVolumes:
        - name: logs
          hostPath: /logs
          mountPath: /logs
        etcd:
          image: registry.example/etcd:3.5.24-0
        """
    )
    assert migration.text == dedent(
        """\
        apiVersion: kubeadm.k8s.io/v1beta4
        bootstrapTokens:
        - token: abcdef.0123456789abcdef
        kind: InitConfiguration
        localAPIEndpoint:
          advertiseAddress: 192.0.2.1
        nodeRegistration:
          name: first
        ---
        apiServer:
          extraArgs:
          - name: v
            value: "2"
          extraVolumes:
          - hostPath: /logs
            mountPath: /logs
            name: logs
            readOnly: true
        apiVersion: kubeadm.k8s.io/v1beta4
        controlPlaneEndpoint: cp.example
        etcd:
          local:
            imageRepository: registry.example
            imageTag: 3.5.24-0
        kind: ClusterConfiguration
        kubernetesVersion: v1.35.4
        """
    )


def test_a_current_file_is_kept_to_the_letter() -> None:
    text = dedent(
        """\
        # the first control plane
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: InitConfiguration
        nodeRegistration: {name: first}  # flow style
        ---
        kind: ResetConfiguration
        apiVersion: kubeadm.k8s.io/v1beta4
        force: true
        ---
        kind: UpgradeConfiguration
        apiVersion: kubeadm.k8s.io/v1beta4
        apply: {kubernetesVersion: v1.36.3}
        """
    )
    assert migrate(text) == Migration(text, [])


def test_reset_and_upgrade_configurations_stay_beside_an_old_document() -> None:
    migration = migrated(
        """
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: ResetConfiguration
        force: true
        ---
        apiVersion: kubeadm.k8s.io/v1beta3
        kind: JoinConfiguration
        discovery: {timeout: 1m}
        """
    )
    assert migration.text == dedent(
        """\
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: ResetConfiguration
        force: true
        ---
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: JoinConfiguration
        timeouts:
          discovery: 1m0s
        """
    )


def test_documents_stay_in_their_order_and_foreign_ones_as_they_are() -> None:
    migration = migrated(
        """
        apiVersion: kubelet.config.k8s.io/v1beta1
        kind: KubeletConfiguration
        maxPods: 50 # few
        ---
        apiVersion: v1
        kind: ConfigMap
        data: {a: b}
        ---
        # an empty document
        ---
        apiVersion: kubeadm.k8s.io/v1beta3
        kind: ClusterConfiguration
        """
    )
    assert migration.text == dedent(
        """\
        apiVersion: kubelet.config.k8s.io/v1beta1
        kind: KubeletConfiguration
        maxPods: 50 # few
        ---
        apiVersion: v1
        kind: ConfigMap
        data: {a: b}
        ---
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: ClusterConfiguration
        """
    )
    assert said(migration) == ["kept ConfigMap"]


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("", "timeouts:\n  controlPlaneComponentHealthCheck: 9m0s\n"),
        ("nodeRegistration:\n  name: first\n", "nodeRegistration:\n  name: first\ntimeouts:\n  controlPlaneComponentHealthCheck: 9m0s\n"),
    ],
)
def test_the_timeout_of_the_cluster_joins_the_init_configuration_of_the_file(init: str, expected: str) -> None:
    cluster = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\napiServer:\n  timeoutForControlPlane: 9m\n"
    migration = migrate(f"{cluster}---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\n{init}")
    assert migration.text == (
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n---\n"
        f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n{expected}"
    )


def test_the_timeout_of_a_lone_cluster_configuration_gets_an_init_configuration() -> None:
    migration = migrate("apiVersion: kubeadm.k8s.io/v1beta1\nkind: ClusterConfiguration\napiServer:\n  timeoutForControlPlane: 9m\n")
    assert migration.text == (
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\ntimeouts:\n  controlPlaneComponentHealthCheck: 9m0s\n---\n"
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
    )
    assert said(migration) == ["moved ClusterConfiguration.apiServer.timeoutForControlPlane"]


def test_a_timeout_of_v1beta4_comes_before_the_one_of_an_older_cluster_configuration() -> None:
    migration = migrated(
        """
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: InitConfiguration
        timeouts:
          controlPlaneComponentHealthCheck: 1m0s
        ---
        apiVersion: kubeadm.k8s.io/v1beta3
        kind: ClusterConfiguration
        apiServer: {timeoutForControlPlane: 9m}
        """
    )
    assert "controlPlaneComponentHealthCheck: 1m0s" in migration.text
    assert "9m" not in migration.text
    assert "kept InitConfiguration.timeouts.controlPlaneComponentHealthCheck" in said(migration)


# ---- repairs


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k8s.gcr.io", "registry.k8s.io"),
        ("gcr.io/google_containers", "registry.k8s.io"),
        ("gcr.io/google-containers", "registry.k8s.io"),
        ("k8s.gcr.io/coredns", "registry.k8s.io/coredns"),
    ],
)
def test_a_closed_registry_is_replaced_wherever_it_is_named(old: str, new: str) -> None:
    migration = migrated(
        f"""
        apiVersion: kubeadm.k8s.io/v1beta2
        kind: ClusterConfiguration
        imageRepository: {old}
        dns: {{imageRepository: {old}}}
        etcd: {{local: {{imageRepository: {old}}}}}
        """
    )
    assert migration.text.count(f"imageRepository: {new}\n") == 3
    assert said(migration) == [
        "repaired ClusterConfiguration.imageRepository",
        "repaired ClusterConfiguration.dns.imageRepository",
        "repaired ClusterConfiguration.etcd.local.imageRepository",
    ]


@pytest.mark.parametrize(
    "repository", ["registry.example/k8s.gcr.io", "k8s.gcr.io.example", "gcr.io/google_containers2", "registry.k8s.io"]
)
def test_any_other_registry_is_the_users(repository: str) -> None:
    text = f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nimageRepository: {repository}\n"
    assert migrate(text) == Migration(text, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/var/run/dockershim.sock", "unix:///var/run/containerd/containerd.sock"),
        ("unix:///var/run/dockershim.sock", "unix:///var/run/containerd/containerd.sock"),
        ("npipe:////./pipe/docker_engine", "npipe:////./pipe/containerd-containerd"),
        ("/var/run/crio/crio.sock", "unix:///var/run/crio/crio.sock"),
    ],
)
@pytest.mark.parametrize("kind", ["InitConfiguration", "JoinConfiguration"])
def test_a_socket_that_is_gone_or_has_no_scheme_is_repaired(kind: str, old: str, new: str) -> None:
    migration = migrate(f"apiVersion: kubeadm.k8s.io/v1beta2\nkind: {kind}\nnodeRegistration:\n  criSocket: {old}\n")
    assert f"criSocket: {new}\n" in migration.text
    assert said(migration) == [f"repaired {kind}.nodeRegistration.criSocket"]


@pytest.mark.parametrize(
    "socket", ["unix:///run/containerd/containerd.sock", "unix:///var/run/cri-dockerd.sock", "unix:///run/dockershim.sock.old"]
)
def test_any_other_socket_is_the_users(socket: str) -> None:
    text = f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\ncriSocket: {socket}\n"
    assert migrate(text) == Migration(text, [])


MASTER = "{key: node-role.kubernetes.io/master, effect: NoSchedule}"
CONTROL_PLANE = "{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}"
OTHER = "{key: dedicated, value: x, effect: NoExecute}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"[{MASTER}]", [("node-role.kubernetes.io/control-plane", "NoSchedule")]),
        (f"[{MASTER}, {CONTROL_PLANE}]", [("node-role.kubernetes.io/control-plane", "NoSchedule")]),
        (f"[{OTHER}, {MASTER}]", [("dedicated", "NoExecute"), ("node-role.kubernetes.io/control-plane", "NoSchedule")]),
    ],
)
def test_the_master_taint_becomes_that_of_the_control_plane(before: str, after: list[tuple[str, str]]) -> None:
    for head in ("kind: InitConfiguration\n", "kind: JoinConfiguration\ncontrolPlane: {}\n"):
        migration = migrate(f"apiVersion: kubeadm.k8s.io/v1beta3\n{head}nodeRegistration:\n  taints: {before}\n")
        assert re.findall(r"effect: (\S+)\n\s+key: (\S+)", migration.text) == [(effect, key) for key, effect in after]
        assert [note.action for note in migration.notes] == ["repaired"]


@pytest.mark.parametrize(
    ("head", "taints"),
    [
        ("kind: JoinConfiguration\n", f"[{MASTER}]"),
        ("kind: InitConfiguration\n", "[{key: node-role.kubernetes.io/master, effect: NoExecute}]"),
        ("kind: InitConfiguration\n", "[{key: node-role.kubernetes.io/master, value: mine, effect: NoSchedule}]"),
        ("kind: InitConfiguration\n", "[]"),
        ("kind: InitConfiguration\n", f"[{CONTROL_PLANE}]"),
    ],
)
def test_any_other_taint_is_the_users(head: str, taints: str) -> None:
    text = f"apiVersion: kubeadm.k8s.io/v1beta4\n{head}nodeRegistration:\n  taints: {taints}\n"
    assert migrate(text) == Migration(text, [])


def test_gates_that_no_supported_kubeadm_has_are_dropped_and_others_kept() -> None:
    migration = migrated(
        """
        apiVersion: kubeadm.k8s.io/v1beta2
        kind: ClusterConfiguration
        featureGates: {IPv6DualStack: true, PublicKeysECDSA: true, Mistyped: true}
        """
    )
    assert "featureGates:\n  Mistyped: true\n  PublicKeysECDSA: true\n" in migration.text
    assert said(migration) == ["dropped ClusterConfiguration.featureGates.IPv6DualStack"]


@pytest.mark.parametrize(("version", "notes"), [("v1.32.9", 1), ("v1.33.0", 0), ("stable-1", 0), ("1.10.2", 1)])
def test_an_old_kubernetes_version_is_kept_and_mentioned(version: str, notes: int) -> None:
    text = f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: {version}\n"
    migration = migrate(text)
    assert migration.text == text
    assert said(migration) == ["kept ClusterConfiguration.kubernetesVersion"] * notes


# ---- component configurations

CLUSTER = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"


@pytest.mark.parametrize(
    ("before", "after", "notes"),
    [
        (
            "apiVersion: kubeletconfig/v1alpha1\nkind: KubeletConfiguration\npodManifestPath: /p\nallowPrivileged: true\nmaxPods: 9\n",
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 9\nstaticPodPath: /p\n",
            [
                "repaired KubeletConfiguration.apiVersion",
                "moved KubeletConfiguration.podManifestPath",
                "dropped KubeletConfiguration.allowPrivileged",
            ],
        ),
        (
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nlogging:\n  format: json\n  sanitization: true\n",
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nlogging:\n  format: json\n",
            ["dropped KubeletConfiguration.logging.sanitization"],
        ),
        (
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nfeatureGates: A=true,B=F,\n",
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nfeatureGates:\n  A: true\n  B: false\nkind: KubeProxyConfiguration\n",
            ["repaired KubeProxyConfiguration.featureGates"],
        ),
        (
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nconntrack:\n  max: null\n  min: 1\n"
            "resourceContainer: /kube-proxy\nudpIdleTimeout: 250ms\n",
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nconntrack:\n  min: 1\nkind: KubeProxyConfiguration\n",
            [
                "dropped KubeProxyConfiguration.conntrack.max",
                "dropped KubeProxyConfiguration.resourceContainer",
                "dropped KubeProxyConfiguration.udpIdleTimeout",
            ],
        ),
        (
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nconntrack: null\nmode: mistyped\n",
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nconntrack: null\nmode: mistyped\n",
            [],
        ),
    ],
    ids=["kubelet 1.9", "kubelet 1.20", "kube-proxy 1.9", "kube-proxy 1.13", "current"],
)
def test_component_configurations_are_kept_and_brought_up_to_date(before: str, after: str, notes: list[str]) -> None:
    migration = migrate(f"{CLUSTER}---\n{before}")
    assert migration.text == f"{CLUSTER}---\n{after}"
    assert said(migration) == notes


def test_a_component_version_that_nobody_reads_is_kept_and_mentioned() -> None:
    text = f"{CLUSTER}---\napiVersion: kubelet.config.k8s.io/v1alpha1\nkind: KubeletConfiguration\n"
    migration = migrate(text)
    assert migration.text == text
    assert "kubeadm reads only kubelet.config.k8s.io/v1beta1 of this kind" in str(migration.notes[0])


# ---- documents that do not say what they are


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("kubernetesVersion: v1.9.0\nnetworking: {podSubnet: 10.0.0.0/8}\n", ["InitConfiguration", "ClusterConfiguration"]),
        ("apiVersion: ''\nkind: ''\nnodeName: n1\nnoTaintMaster: true\n", ["InitConfiguration", "ClusterConfiguration"]),
        ("token: abcdef.0123456789abcdef\ndiscoveryTokenAPIServers: ['a:6443']\n", ["JoinConfiguration"]),
    ],
)
def test_v1alpha1_is_recognised_by_its_fields_with_a_note(text: str, kinds: list[str]) -> None:
    migration = migrate(text)
    assert re.findall(r"^kind: (\w+)", migration.text, re.MULTILINE) == kinds
    assert "has no apiVersion and kind" in str(migration.notes[0])


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("localAPIEndpoint: {}\n", "no apiVersion and no kind"),
        ("nodeName: either\n", "no apiVersion and no kind"),
        ("{}\n", "no apiVersion and no kind"),
        ("kind: MasterConfiguration\nnodeName: x\n", "no apiVersion"),
        ("apiVersion: kubeadm.k8s.io/v1beta4\n", "no kind"),
    ],
)
def test_any_other_document_without_apiversion_or_kind_is_refused(text: str, missing: str) -> None:
    message = refusal(text)
    assert f"old.yaml:1: the document has {missing}: kind and apiVersion is mandatory information that must be specified" in message


# ---- refusals


def test_all_problems_of_all_documents_are_told_with_their_lines() -> None:
    message = refusal(
        """
        apiVersion: kubeadm.k8s.io/v1beta1
        kind: InitConfiguration
        nodeRegistration:
          criSockets: /s
          name: 1
        bootstrapTokens:
        - token: short
          expires: tomorrow
        ---
        apiVersion: kubeadm.k8s.io/v1beta1
        kind: ClusterConfiguration
        clusterName: a
        clusterName: b
        apiServer:
          timeoutForControlPlane: soon
        ---
        apiVersion: kubelet.config.k8s.io/v1beta1
        kind: KubeletConfiguration
        maxPods: 1
        maxPods: 2
        """
    )
    assert message.startswith("strict decoding error:\n")
    for expected in (
        'old.yaml:4: unknown field "nodeRegistration.criSockets" (did you mean "criSocket"?)',
        'old.yaml:5: cannot unmarshal number 1 into field "nodeRegistration.name" of type string',
        'old.yaml:7: bootstrapTokens[0].token: the bootstrap token "short" was not of the form',
        "old.yaml:8: bootstrapTokens[0].expires:",
        'old.yaml:13: duplicate field "clusterName"',
        "old.yaml:15: cannot unmarshal",
        'old.yaml:20: duplicate field "maxPods"',
    ):
        assert expected in message


def test_all_that_cannot_be_converted_is_told_at_once() -> None:
    message = refusal(
        """
        apiVersion: kubeadm.k8s.io/v1alpha2
        kind: MasterConfiguration
        auditPolicy: {path: /p}
        etcd: {local: {image: etcd}}
        unifiedControlPlaneImage: one
        kubeProxy: {config: {featureGates: A=perhaps}}
        """
    )
    assert message.splitlines()[0] == "old.yaml cannot be migrated"
    paths = [line.strip().split(":")[0] for line in message.splitlines()[1:]]
    assert paths == [
        "ClusterConfiguration.etcd.local.image",
        "ClusterConfiguration.unifiedControlPlaneImage",
        "ClusterConfiguration.auditPolicy.path",
        "KubeProxyConfiguration.featureGates",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no document of kubeadm.k8s.io"),
        ("# only a comment\n", "has no document of kubeadm.k8s.io"),
        ("apiVersion: v1\nkind: ConfigMap\n", "has no document of kubeadm.k8s.io"),
        ("- a\n- b\n", "a document must be a mapping"),
        ("just text\n", "a document must be a mapping"),
        ("apiVersion: 1\nkind: A\n", "apiVersion and kind must be texts"),
        ("a: [\n", "this is not valid YAML"),
        (
            "apiVersion: kubeadm.k8s.io/v1beta9\nkind: InitConfiguration\n",
            "kubeadm.k8s.io/v1beta9 is not a known version; known are v1alpha1, ",
        ),
        (
            "apiVersion: kubeadm.k8s.io/v1beta1\nkind: NodeConfiguration\n",
            "kubeadm.k8s.io/v1beta1 has no kind NodeConfiguration; it has InitConfiguration",
        ),
        ("apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterStatus\n", "has nothing that kubeadm.k8s.io/v1beta4 could hold: ClusterStatus"),
        (
            "apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\n---\n"
            "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n",
            'kind "InitConfiguration" is specified twice',
        ),
        (
            "apiVersion: kubeadm.k8s.io/v1alpha2\nkind: MasterConfiguration\nkubeProxy: {config: {}}\n---\n"
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n",
            'kind "KubeProxyConfiguration" is specified twice',
        ),
    ],
)
def test_a_file_that_cannot_be_migrated_gets_a_sentence(text: str, words: str) -> None:
    assert words in refusal(text)


# ---- the real kubeadm reads the result

CONFIGURATIONS = sorted(
    str(path.relative_to(GOLDEN)) for path in GOLDEN.glob("**/*.yaml") if path.parent.parent.name != "chain" or path.name == "input.yaml"
)


@pytest.mark.skipif(not KUBEADM.exists(), reason="needs the real kubeadm v1.35.4, which `make golden` builds")
@pytest.mark.parametrize("source", CONFIGURATIONS)
def test_the_real_kubeadm_finds_the_result_valid(source: str, tmp_path: Path) -> None:
    text = migrate((GOLDEN / source).read_text(), source).text
    # The versions of that time are refused as too old, and a missing one is looked up in the network.
    if "kind: ClusterConfiguration" not in text and "kind: InitConfiguration" in text:
        text += f"---\n{CLUSTER}kubernetesVersion: v1.35.4\n"
    text = re.sub(r"kubernetesVersion: .*", "kubernetesVersion: v1.35.4", text)
    file = tmp_path / "new.yaml"
    file.write_text(text)
    answer = subprocess.run([KUBEADM, "config", "validate", "--config", file], capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.returncode) == ("ok\n", 0), answer.stderr
