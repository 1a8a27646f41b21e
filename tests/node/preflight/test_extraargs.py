"""Checks of extra arguments: unknown flags of components, and the files that authorization modes need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.machine import Machine

from slipway.api.components import flags
from slipway.api.kubeadm.internal import (
    APIServer,
    Arg,
    ClusterConfiguration,
    ControlPlaneComponent,
    Etcd,
    HostPathMount,
    InitConfiguration,
    LocalEtcd,
    NodeRegistrationOptions,
)
from slipway.api.machinery.version import Version
from slipway.api.releases import KNOWN_PATCHES, release_for
from slipway.node.preflight import extraargs, machine, workflows
from slipway.node.preflight.check import Check

RELEASE = release_for(Version(1, 35, 4))


@pytest.fixture
def host(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def args(**values: str) -> list[Arg]:
    return [Arg(name=name.replace("_", "-"), value=value) for name, value in values.items()]


def found(checks: list[Check], host: Machine) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(check.name, each.errors, each.warnings) for check in checks if any((each := check.find(host))[:2])]


@pytest.mark.parametrize(
    ("given", "files", "errors"),
    [
        (args(authorization_mode="Node,RBAC"), [], []),
        ([], [], []),
        (
            args(authorization_mode="Node,ABAC"),
            [],
            [("FileExisting--etc-kubernetes-abac_policy.json", "authorization mode ABAC needs a file, and apiServer.extraArgs has no")],
        ),
        (
            args(authorization_mode="Node,RBAC, Webhook"),
            [],
            [("FileExisting--etc-kubernetes-webhook_authz.conf", "authorization mode Webhook needs a file")],
        ),
        (
            args(authorization_mode="ABAC", authorization_policy_file="/etc/abac.json"),
            [],
            [("FileExisting--etc-abac.json", "/etc/abac.json doesn't exist")],
        ),
        (args(authorization_mode="ABAC", authorization_policy_file="/etc/abac.json"), ["/etc/abac.json"], []),
        (
            [
                *args(authorization_mode="Node"),
                Arg(name="authorization_mode", value="Webhook"),
                *args(authorization_webhook_config_file="/w"),
            ],
            ["/w"],
            [],
        ),
        (
            [
                *args(authorization_mode="Webhook"),
                *args(authorization_webhook_config_file="/a"),
                *args(authorization_webhook_config_file="/b"),
            ],
            ["/a"],
            [("FileExisting--b", "/b doesn't exist")],
        ),
        (args(authorization_config="/etc/authorization.yaml"), [], []),
    ],
)
def test_authorization_modes_need_their_files(given: list[Arg], files: list[str], errors: list[tuple[str, str]], host: Machine) -> None:
    for path in files:
        host.put(path, "")
    names = [(name, told[0]) for name, told, _ in found(extraargs.authorization_files(APIServer(extra_args=given)), host)]
    assert [(name, told[: len(start)]) for (name, told), (_, start) in zip(names, errors, strict=True)] == errors


@pytest.mark.parametrize(
    ("mount", "on_host"),
    [
        (HostPathMount(host_path="/srv/policies", mount_path="/etc/abac"), "/srv/policies/policy.json"),
        (HostPathMount(host_path="/srv/one.json", mount_path="/etc/abac/policy.json"), "/srv/one.json"),
        (HostPathMount(host_path="/srv/other", mount_path="/etc/ab"), "/etc/abac/policy.json"),
    ],
)
def test_a_file_is_looked_for_where_its_volume_comes_from(mount: HostPathMount, on_host: str, host: Machine) -> None:
    given = args(authorization_mode="ABAC", authorization_policy_file="/etc/abac/policy.json")
    checks = extraargs.authorization_files(APIServer(extra_args=given, extra_volumes=[mount]))
    assert found(checks, host)
    host.put(on_host, "")
    assert not found(checks, host)


def configuration(**components: list[Arg]) -> InitConfiguration:
    return InitConfiguration(
        cluster=ClusterConfiguration(
            kubernetes_version="v1.35.4",
            api_server=APIServer(extra_args=components.get("api_server", [])),
            controller_manager=ControlPlaneComponent(extra_args=components.get("controller_manager", [])),
            scheduler=ControlPlaneComponent(extra_args=components.get("scheduler", [])),
            etcd=Etcd(local=LocalEtcd(data_dir="/var/lib/etcd", extra_args=components.get("etcd", []))),
        ),
        node_registration=NodeRegistrationOptions(name="n1", kubelet_extra_args=components.get("kubelet", [])),
    )


@pytest.mark.parametrize(
    ("component", "name", "warning"),
    [
        ("api_server", "audit-log-pth", 'kube-apiserver 1.35 has no flag "audit-log-pth": did you mean "audit-log-path"?'),
        ("api_server", "--audit-log-path", 'kube-apiserver 1.35 has no flag "--audit-log-path": did you mean "audit-log-path"?'),
        (
            "controller_manager",
            "node-cidr-mask",
            'kube-controller-manager 1.35 has no flag "node-cidr-mask": did you mean "node-cidr-mask-size"?',
        ),
        ("scheduler", "qqqqqqqqqqqq", 'kube-scheduler 1.35 has no flag "qqqqqqqqqqqq"'),
        ("etcd", "quota-backend-byte", 'etcd 3.6 has no flag "quota-backend-byte": did you mean "quota-backend-bytes"?'),
        ("etcd", "quota_backend_bytes", 'etcd 3.6 has no flag "quota_backend_bytes": did you mean "quota-backend-bytes"?'),
        ("kubelet", "node-ipp", 'kubelet 1.35 has no flag "node-ipp": did you mean "node-ip"?'),
    ],
)
def test_a_flag_that_a_component_does_not_know_is_warned_of(component: str, name: str, warning: str, host: Machine) -> None:
    config = configuration(**{component: [Arg(name=name, value="x"), Arg(name=name, value="y")]})
    checks = [check for check in workflows.init_checks(config, RELEASE) if check.name == "ExtraArgs"]
    assert found(checks, host) == [("ExtraArgs", (), (warning,))]


def test_flags_that_are_known_are_not_warned_of(host: Machine) -> None:
    config = configuration(
        # The last of these is hidden in --help, as it is deprecated.
        api_server=[*args(audit_log_path="/x", v="2"), Arg(name="feature_gates", value=""), Arg(name="kubelet-read-only-port", value="0")],
        controller_manager=args(node_cidr_mask_size="20", profiling="false"),
        scheduler=args(leader_elect="false", vmodule="x=1"),
        etcd=args(quota_backend_bytes="1", listen_metrics_urls="http://127.0.0.1:2381"),
        kubelet=args(node_ip="10.0.0.5", node_labels="a=b"),
    )
    checks = [check for check in workflows.init_checks(config, RELEASE) if check.name == "ExtraArgs"]
    assert (len(checks), found(checks, host)) == (2, [])


def test_the_kubelets_flags_are_those_of_the_one_that_is_installed(host: Machine) -> None:
    host.programs = {"kubelet --version": "Kubernetes v1.34.10\n"}
    given = args(pod_infra_container_image="pause")
    assert found(extraargs.kubelet_flags(given, machine.InstalledKubelet(), RELEASE), host) == []
    host.programs = {"kubelet --version": "Kubernetes v1.35.4\n"}
    ((_, _, (warning,)),) = found(extraargs.kubelet_flags(given, machine.InstalledKubelet(), RELEASE), host)
    assert re.match(r'kubelet 1\.35 has no flag "pod-infra-container-image" \(.*1\.34 (has|have) it\)', warning)


def test_an_upgrade_is_warned_of_flags_that_the_new_release_does_not_know(host: Machine) -> None:
    config = configuration(api_server=args(audit_log_pth="/x"))
    assert [name for name, _, _ in found(workflows.upgrade_checks(config, RELEASE)[-1:], host)] == ["ExtraArgs"]
    workers = workflows.upgrade_checks(config, RELEASE, control_plane=False)
    assert "ExtraArgs" not in [check.name for check in workers]


def test_an_etcd_image_with_a_tag_of_the_users_own_is_not_judged(host: Machine) -> None:
    config = configuration(etcd=args(no_such_flag="x"))
    assert config.cluster.etcd.local is not None
    config.cluster.etcd.local.image_tag = "mine"
    assert found(extraargs.control_plane_flags(config.cluster, RELEASE), host) == []


def test_a_release_that_is_not_recorded_counts_as_the_nearest() -> None:
    newest = max(flags.accepted("kube-apiserver"))
    assert flags.problem("kube-apiserver", 99, "no-such-flag-of-any-kind").startswith(f"kube-apiserver 1.{newest} has no flag")
    assert flags.problem("kube-apiserver", 99, "audit-log-path") == ""


def test_a_flag_of_an_older_etcd_is_told_as_such() -> None:
    # etcd 3.6 came without the v2 API.
    assert flags.problem("etcd", 5, "enable-v2") == ""
    assert flags.problem("etcd", 6, "enable-v2").startswith('etcd 3.6 has no flag "enable-v2" (3.5 has it)')


@pytest.mark.parametrize("component", ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"])
def test_every_release_that_is_known_has_its_flags_recorded(component: str) -> None:
    assert set(flags.accepted(component)) == set(KNOWN_PATCHES)
