"""Loading, checking, printing and migrating configuration, compared with what the real kubeadm does (cases/config.py)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from cases.config import CASES, SOCKET, TOKEN, VERSIONS, ConfigCase, Recorded, both, cluster, document, init, join, read_recorded, reset
from support.machine import Machine

from slipway.api.kubeadm import internal
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import ConfigurationError, OperatorError, ValidationError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.node.config import documents
from slipway.node.config import load as configuration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from node.conftest import Lines

# What tools look for in the words of a refusal; the words around it are our own.
KEY_PHRASES = re.compile(
    r'kind and apiVersion is mandatory information|kind "\w+" is specified twice|unknown field "[^"]+"|key "\w+" already set in map'
    r"|mapping values are not allowed in this context|unknown configuration APIs"
    r'|uses an old API spec: "[^"]+" \(kind: "\w+"\)|the bootstrap token "\w*" was not of the form|cannot unmarshal number|cannot unmarshal'
    r'|time: invalid duration "\w+"|parsing time "\w+"|version "\w+" doesn\'t match patterns|invalid version "[^"]+"|hostport .*'
    r"|couldn't use .*|could not find a mutator|strict decoding error"
)


def machine_in(root: Path, environment: dict[str, str] | None = None, interfaces: dict[str, list[str]] | None = None) -> Machine:
    """A machine with a name that must be made lower case, and addresses of its own."""
    made = Machine(root, environment)
    made.name, made.interfaces = "Node-1", interfaces or {}
    return made


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return machine_in(tmp_path)


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Recorded]]:
    return {version: read_recorded(version) for version in VERSIONS}


def run(case: ConfigCase, version: str, root: Path) -> Recorded:
    host = machine_in(root, {"SLIPWAY_AS_KUBEADM": version})
    release = release_for(Version.parse(version))
    text, warnings = case.text_for(version), list[str]()
    try:
        match case.arguments:
            case ("validate",):
                documents.validate(text, host, warnings.append)
                return Recorded(0, "ok\n", warnings, "")
            case ("migrate",):
                return Recorded(0, documents.migrate_as_kubeadm(text, release, host, warn=warnings.append), warnings, "")
            case ("print", kind, *rest):
                components = rest[1].split(",") if rest else []
                return Recorded(0, documents.print_defaults(kind.removesuffix("-defaults"), components, release, host), warnings, "")
    except OperatorError as error:
        code = release.exit_codes[1] if isinstance(error, ValidationError) else error.exit_code
        return Recorded(code, "", warnings, error.message)
    raise AssertionError(case.arguments)


def as_json(text: str) -> str:
    """kubeadm 1.33 shows lists and maps in Go's notation, later releases and we as JSON."""
    text = re.sub(r"\[\]string\{([^}]*)\}", lambda match: f"[{match[1].replace(', ', ',')}]", text)
    return re.sub(r"map\[string\]bool(\{[^}]*\})", r"\1", text)


def without_hint(warning: str) -> str:
    """The hint how to leave a deprecated version is in our own words."""
    return warning.partition("). ")[0] if "deprecated API spec" in warning else warning


def phrases(text: str) -> Iterator[str]:
    return (match.group() for match in KEY_PHRASES.finditer(text))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_config_commands_do_what_the_real_ones_do(
    case: ConfigCase, version: str, recorded: dict[str, dict[str, Recorded]], tmp_path: Path
) -> None:
    real, ours = recorded[version][case.name], run(case, version, tmp_path)
    assert ours.code == real.code, ours.error
    assert ours.stdout == real.stdout
    # Go works through the documents of a file in random order.
    assert sorted(map(without_hint, ours.warnings)) == sorted(map(without_hint, real.warnings))
    if real.error.startswith("error unmarshaling") or case.name.startswith("refused") or "mutator" in real.error:
        expected = list(phrases(real.error))
        assert bool(expected) == bool(real.error)
        assert [phrase for phrase in expected if phrase not in ours.error] == []
    else:
        assert ours.error == as_json(real.error)


def test_flags_alone_are_a_configuration(machine: Machine, lines: Lines) -> None:
    overrides = {
        "kubernetesVersion": "1.35.2",
        "nodeRegistration.name": "Worker-7",
        "localAPIEndpoint.advertiseAddress": "10.0.0.7",
        "networking.podSubnet": "10.244.0.0/16",
        "patches.directory": "/patches",
    }
    config, release = configuration.load_init(machine, None, overrides, lines)
    assert str(release.version) == "1.35.2"
    assert config.cluster.kubernetes_version == "v1.35.2"
    assert config.node_registration.name == "worker-7"
    assert config.local_api_endpoint == internal.APIEndpoint(advertise_address="10.0.0.7", bind_port=6443)
    assert config.cluster.networking.pod_subnet == "10.244.0.0/16"
    assert config.patches == internal.Patches(directory="/patches")
    assert set(config.cluster.component_configs) == {"kubelet.config.k8s.io", "kubeproxy.config.k8s.io"}
    assert re.fullmatch("[a-z0-9]{6}[.][a-z0-9]{16}", config.bootstrap_tokens[0].token)


def test_flags_beside_a_file_are_laid_over_it(machine: Machine, lines: Lines) -> None:
    text = init(nodeRegistration={"ignorePreflightErrors": ["Swap"]}) + "---\n" + cluster(kubernetesVersion="v1.34.1")
    overrides = {"nodeRegistration.name": "other", "nodeRegistration.ignorePreflightErrors": ["NumCPU", "swap"]}
    config, release = configuration.load_init(machine, text, overrides, lines)
    assert release.minor == 34
    assert config.node_registration.name == "other"
    assert config.node_registration.ignore_preflight_errors == ["numcpu", "swap"]


def test_all_checks_ignored_by_a_flag_leaves_no_room_for_single_ones_in_the_file(machine: Machine, lines: Lines) -> None:
    text = init(nodeRegistration={"ignorePreflightErrors": ["Swap"]}) + "---\n" + cluster(kubernetesVersion="v1.34.1")
    with pytest.raises(ConfigurationError, match="don't specify individual checks if 'all' is used"):
        configuration.load_init(machine, text, {"nodeRegistration.ignorePreflightErrors": ["all"]}, lines)


def test_checks_to_ignore_are_in_lower_case_and_sorted_wherever_they_come_from(machine: Machine, lines: Lines) -> None:
    overrides = {"nodeRegistration.ignorePreflightErrors": ["Swap", "NumCPU", "swap"], "localAPIEndpoint.advertiseAddress": "10.0.0.1"}
    config, _ = configuration.load_init(machine, None, {"kubernetesVersion": "v1.35.0", **overrides}, lines)
    assert config.node_registration.ignore_preflight_errors == ["numcpu", "swap"]
    with pytest.raises(ConfigurationError, match="don't specify individual checks"):
        configuration.load_reset(machine, None, {"ignorePreflightErrors": ["all", "Swap"]}, lines)


def test_init_warns_of_unknown_fields_and_goes_on(machine: Machine, lines: Lines) -> None:
    text = init(foo=1) + "---\n" + cluster(kubernetesVersion="v1.35.0", clusterNam="x")
    config, _ = configuration.load_init(machine, text, {}, lines, source="c.yaml")
    assert config.cluster.cluster_name == "kubernetes"
    assert [
        warning for warning in lines.warned if 'unknown field "foo"' in warning or 'unknown field "clusterNam"' in warning
    ] == lines.warned
    assert len(lines.warned) == 2
    assert lines.warned[0].startswith("c.yaml: ")


def test_init_refuses_a_value_of_the_wrong_type(machine: Machine, lines: Lines) -> None:
    with pytest.raises(ConfigurationError, match=r'line \d+: cannot unmarshal .* "clusterName"'):
        configuration.load_init(machine, init() + "---\n" + cluster(clusterName=[1]), {}, lines)


def test_init_warns_of_a_deprecated_version(machine: Machine, lines: Lines) -> None:
    configuration.load_init(machine, both("v1beta3", kubernetesVersion="v1.35.0"), {}, lines)
    assert [re.findall(r"deprecated API spec.*kind: .(\w+)", warning) for warning in lines.warned] == [
        ["ClusterConfiguration"],
        ["InitConfiguration"],
    ]


def test_the_control_plane_timeout_of_v1beta3_becomes_the_timeout_of_init(machine: Machine, lines: Lines) -> None:
    text = both("v1beta3", kubernetesVersion="v1.35.0", apiServer={"timeoutForControlPlane": "9m"})
    config, _ = configuration.load_init(machine, text, {}, lines)
    assert config.timeouts.control_plane_component_health_check == Duration.of(minutes=9)


def test_a_file_without_a_kind_for_the_command_is_refused(machine: Machine, lines: Lines) -> None:
    with pytest.raises(ConfigurationError, match="no InitConfiguration or ClusterConfiguration kind was found"):
        configuration.load_init(machine, join(), {}, lines)
    with pytest.raises(ConfigurationError, match="no JoinConfiguration found in the supplied config"):
        configuration.load_join(machine, both(), {}, lines)
    with pytest.raises(ConfigurationError, match="no ResetConfiguration found in the supplied config"):
        configuration.load_reset(machine, join(), {}, lines)
    with pytest.raises(ConfigurationError, match="no UpgradeConfiguration found in the supplied config"):
        configuration.load_upgrade(machine, reset(), {}, lines)


def test_an_old_version_is_refused_with_the_way_out(machine: Machine, lines: Lines) -> None:
    with pytest.raises(ConfigurationError, match=r"old API spec.*v1beta2.*config migrate --old-config"):
        configuration.load_init(machine, document("InitConfiguration", "v1beta2"), {}, lines)


@pytest.mark.parametrize(
    ("environment", "version", "outcome"),
    [
        ({}, "v1.33.0", 33),
        ({}, "v1.32.0", "not supported"),
        ({}, "v1.37.0", 36),
        ({}, "v1.38.0", "Kubernetes v1.38.0 is not supported: this program knows 1.33, 1.34, 1.35, 1.36"),
        ({}, "v2.37.0", "not supported"),
        ({"SLIPWAY_AS_KUBEADM": "v1.35.4"}, "v1.34.0", 35),
        ({"SLIPWAY_AS_KUBEADM": "v1.35.4"}, "v1.33.9", "control plane version >= 1.34.0. Current version: v1.33.9"),
        ({"SLIPWAY_AS_KUBEADM": "v1.35.4"}, "v1.37.1", 35),
    ],
)
def test_which_versions_are_deployed(environment: dict[str, str], version: str, outcome: object, tmp_path: Path, lines: Lines) -> None:
    host = machine_in(tmp_path, environment)
    text = init() + "---\n" + cluster(kubernetesVersion=version)
    if isinstance(outcome, str):
        with pytest.raises(OperatorError, match=re.escape(outcome)):
            configuration.load_init(host, text, {}, lines)
    else:
        assert configuration.load_init(host, text, {}, lines)[1].minor == outcome


@pytest.mark.parametrize("version", ["v1.37.0", "v1.37.2-rc.1", "1.37.5"])
def test_the_minor_after_the_newest_known_is_deployed_as_the_newest_with_a_warning(version: str, machine: Machine, lines: Lines) -> None:
    config, release = configuration.load_init(machine, both(kubernetesVersion=version), {}, lines)
    wanted = f"v{version.removeprefix('v')}"
    assert (config.cluster.kubernetes_version, str(release.version)) == (wanted, "1.36.3")
    assert f"Kubernetes {wanted} is newer than the releases that this program knows: acting as v1.36.3" in lines.warned


def test_a_known_version_is_no_reason_for_a_warning(machine: Machine, lines: Lines) -> None:
    configuration.load_init(machine, both(kubernetesVersion="v1.36.9"), {}, lines)
    assert lines.warned == []


def test_a_ci_version_changes_the_repository_only_if_it_is_the_default(machine: Machine, lines: Lines) -> None:
    config, _ = configuration.load_init(machine, both(kubernetesVersion="ci/v1.35.1-5+abc"), {}, lines)
    assert (config.cluster.kubernetes_version, config.cluster.ci_kubernetes_version) == ("v1.35.1-5+abc", "ci/v1.35.1-5+abc")
    assert config.cluster.control_plane_image_repository == "gcr.io/k8s-staging-ci-images"
    config, _ = configuration.load_init(machine, both(kubernetesVersion="ci/v1.35.1", imageRepository="r.example.com"), {}, lines)
    assert config.cluster.control_plane_image_repository == "r.example.com"


@pytest.mark.parametrize(
    ("sockets", "expected"),
    [
        ([], SOCKET),
        (["/var/run/crio/crio.sock"], "unix:///var/run/crio/crio.sock"),
        (["/var/run/cri-dockerd.sock"], "unix:///var/run/cri-dockerd.sock"),
    ],
)
def test_the_cri_socket_is_the_one_that_exists(sockets: list[str], expected: str, tmp_path: Path, lines: Lines) -> None:
    for socket in sockets:
        (tmp_path / socket[1:]).parent.mkdir(parents=True)
        (tmp_path / socket[1:]).touch()
    config, _ = configuration.load_join(machine_in(tmp_path), join(nodeRegistration={"criSocket": ""}), {}, lines)
    assert config.node_registration.cri_socket == expected


def test_two_cri_sockets_must_be_decided_between(tmp_path: Path, lines: Lines) -> None:
    for name in ("containerd/containerd.sock", "crio/crio.sock"):
        (tmp_path / "var/run" / name).parent.mkdir(parents=True)
        (tmp_path / "var/run" / name).touch()
    with pytest.raises(ConfigurationError, match=r"multiple CRI endpoints.*containerd\.sock, unix:///var/run/crio/crio\.sock"):
        configuration.load_reset(machine_in(tmp_path), reset(criSocket=""), {}, lines)


@pytest.mark.parametrize(
    ("taints", "control_plane", "expected"),
    [
        (None, {}, ["node-role.kubernetes.io/control-plane"]),
        ([], {}, []),
        ([{"key": "k", "effect": "NoExecute"}], {}, ["k"]),
        (None, None, None),
    ],
)
def test_only_a_control_plane_without_taints_gets_one(
    taints: object, control_plane: dict[str, object] | None, expected: list[str] | None, machine: Machine, lines: Lines
) -> None:
    if control_plane is not None:
        control_plane = {"localAPIEndpoint": {"advertiseAddress": "10.0.0.1"}}
    config, _ = configuration.load_join(machine, join(nodeRegistration={"taints": taints}, controlPlane=control_plane), {}, lines)
    assert (None if config.node_registration.taints is None else [taint.key for taint in config.node_registration.taints]) == expected


def test_a_join_from_flags(machine: Machine, lines: Lines) -> None:
    overrides = {
        "discovery.bootstrapToken.token": TOKEN,
        "discovery.bootstrapToken.apiServerEndpoint": "10.0.0.1:6443",
        "discovery.bootstrapToken.unsafeSkipCAVerification": True,
    }
    config, _ = configuration.load_join(machine, None, overrides, lines)
    assert config.discovery.tls_bootstrap_token == TOKEN
    assert config.node_registration.name == "node-1"
    assert config.control_plane is None


def test_reset_and_upgrade_from_flags(machine: Machine, lines: Lines) -> None:
    reset_config, _ = configuration.load_reset(machine, None, {"force": True}, lines)
    assert (reset_config.force, reset_config.cri_socket, reset_config.certificates_dir) == (True, SOCKET, "/etc/kubernetes/pki")
    upgrade, _ = configuration.load_upgrade(machine, None, {"apply.kubernetesVersion": "v1.36.3"}, lines)
    assert (upgrade.apply.kubernetes_version, upgrade.apply.etcd_upgrade, upgrade.node.image_pull_serial) == ("v1.36.3", True, True)


def test_without_a_fixed_release_an_upgrade_configuration_is_checked_for_every_minor(machine: Machine) -> None:
    text = document("UpgradeConfiguration", apply={"patches": {"directory": "relative"}}) + "---\n" + both(kubernetesVersion="v1.35.0")
    with pytest.raises(ConfigurationError, match=r"apply\.patches\.directory"):
        documents.validate(text, machine, lambda warning: None)


def test_checking_a_file_without_a_version_asks_no_release_server(machine: Machine) -> None:
    warnings = list[str]()
    documents.validate(init(), machine, warnings.append)
    assert warnings == []


def test_a_label_is_looked_up_and_decides_the_release(machine: Machine, lines: Lines) -> None:
    machine.answers["https://dl.k8s.io/release/stable-1.35.txt"] = [b"v1.35.9\n"]
    config, release = configuration.load_init(machine, both(kubernetesVersion="stable-1.35"), {}, lines)
    assert (config.cluster.kubernetes_version, str(release.version)) == ("v1.35.9", "1.35.9")


def test_a_label_that_does_not_matter_is_not_looked_up(machine: Machine, lines: Lines) -> None:
    config, _ = configuration.load_init(machine, both(kubernetesVersion="ci/latest-1.35"), {}, lines, look_up=False)
    assert (config.cluster.kubernetes_version, config.cluster.ci_kubernetes_version) == ("v1.35.4", "ci/v1.35.4")
