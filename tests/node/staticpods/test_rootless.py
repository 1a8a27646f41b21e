"""Rows of kubeadm's util/users/users_linux_test.go and util/staticpod/utils_linux_test.go (1.36.3)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, Etcd, ExternalEtcd, LocalEtcd
from slipway.api.machinery.errors import OperatorError
from slipway.node.dryrun import host_for
from slipway.node.etcd import pod as etcd
from slipway.node.staticpods import components, rootless
from slipway.node.staticpods.rootless import Accounts, Owned

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

pytestmark = pytest.mark.upstream_table

LOGIN_DEFS = "SYS_UID_MIN 101\nSYS_UID_MAX 998\nSYS_GID_MIN 102\nSYS_GID_MAX 999\n"
PASSWD = "root:x:0:0:::/bin/bash\nkubeadm-etcd:x:101:102:::/bin/false\n"
GROUP = "root:x:0:root\nkubeadm-etcd:x:102:kubeadm-etcd\n"

# The ids of TestRunKubeAPIServerAsNonRoot and its companions: user 1000, group 1001, shared group 1002.
MADE = Accounts(
    dict.fromkeys(("kubeadm-etcd", "kubeadm-kas", "kubeadm-kcm", "kubeadm-ks"), 1000),
    {**dict.fromkeys(("kubeadm-etcd", "kubeadm-kas", "kubeadm-kcm", "kubeadm-ks"), 1001), "kubeadm-sa-key-readers": 1002},
    "",
    "",
)


def test_missing_accounts_are_added_and_existing_ones_kept() -> None:
    made = rootless.ensured(LOGIN_DEFS, PASSWD, GROUP)
    assert made.users == {"kubeadm-etcd": 101, "kubeadm-kas": 102, "kubeadm-kcm": 103, "kubeadm-ks": 104}
    assert made.groups == {
        "kubeadm-etcd": 102,
        "kubeadm-kas": 103,
        "kubeadm-kcm": 104,
        "kubeadm-ks": 105,
        "kubeadm-sa-key-readers": 106,
    }
    assert made.passwd == PASSWD + (
        "kubeadm-kas:x:102:103:::/bin/false\nkubeadm-kcm:x:103:104:::/bin/false\nkubeadm-ks:x:104:105:::/bin/false\n"
    )
    assert made.group == GROUP + (
        "kubeadm-kas:x:103:kubeadm-kas\nkubeadm-kcm:x:104:kubeadm-kcm\nkubeadm-ks:x:105:kubeadm-ks\n"
        "kubeadm-sa-key-readers:x:106:kubeadm-kas,kubeadm-kcm\n"
    )


def test_a_second_time_changes_nothing() -> None:
    made = rootless.ensured(LOGIN_DEFS, PASSWD, GROUP)
    assert rootless.ensured(LOGIN_DEFS, made.passwd, made.group) == made


@pytest.mark.parametrize(
    ("login_defs", "first_user", "first_group"),
    [
        ("", 100, 100),
        ("FOO 99\nBAR 99\n", 100, 100),
        ("SYS_UID_MIN 101\nSYS_GID_MIN 102\n", 101, 102),
        ("SYS_UID_MIN\t\t  201\n", 201, 100),
    ],
)
def test_the_limits_for_system_accounts_hold(login_defs: str, first_user: int, first_group: int) -> None:
    made = rootless.ensured(login_defs, "root:x:0:0:::/bin/bash", "")
    assert (made.users["kubeadm-etcd"], made.groups["kubeadm-etcd"]) == (first_user, first_group)
    assert made.passwd.startswith("root:x:0:0:::/bin/bash\nkubeadm-etcd:x:")


def test_ids_that_are_taken_are_passed_over() -> None:
    passwd = "foo:x:101:1:::\nbar:x:103:1:::\nbaz:x:105:1:::\n"
    assert list(rootless.ensured("", passwd, "").users.values()) == [100, 102, 104, 106]


@pytest.mark.parametrize(
    ("login_defs", "passwd", "group", "complaint"),
    [
        ("SYS_UID_MIN foo", "", "", '"foo" is not a number for SYS_UID_MIN'),
        ("", "foo:x:100:101:::/bin/bash:extra", "", "must have 7 fields"),
        ("", "foo:x:bar:101:::/bin/bash", "", '"bar" is not a numeric id'),
        ("", "foo:x:101:bar:::/bin/bash", "", '"bar" is not a numeric id'),
        ("", "", "foo:x:bar:foo", '"bar" is not a numeric id'),
        ("", "kubeadm-etcd:x:2000:102:::/bin/false", "", "outside the system UID range: 100 - 999"),
        ("", "kubeadm-etcd:x:102:102:::foo", "", 'unexpected shell "foo"'),
        ("", "kubeadm-etcd:x:102:102:::/bin/false", "", "could not find group with GID 102"),
        ("", "kubeadm-etcd:x:102:102:::/bin/false", "foo:x:102:", 'the group with that GID is named "foo"'),
        ("", "", "kubeadm-etcd:x:2000:", "outside the system GID range: 100 - 999"),
        ("", "", "kubeadm-etcd:x:100:", 'expected users "kubeadm-etcd" for group "kubeadm-etcd"; got ""'),
        ("SYS_UID_MAX 102", "", "", "could not allocate 4 ids"),
    ],
)
def test_accounts_that_cannot_be_used_are_named(login_defs: str, passwd: str, group: str, complaint: str) -> None:
    with pytest.raises(OperatorError, match=complaint):
        rootless.ensured(login_defs, passwd, group)


@pytest.mark.parametrize(
    ("component", "groups", "container"),
    [
        ("kube-apiserver", [1002], {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
        ("kube-controller-manager", [1002], {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}),
        ("kube-scheduler", None, {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}),
    ],
)
def test_a_pod_without_root_drops_its_capabilities(
    make_context: MakeContext, component: str, groups: list[int] | None, container: dict[str, Any]
) -> None:
    pod = components.manifest(component, make_context())
    secured = rootless.secured(component, pod, MADE)
    expected = {"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 1000, "runAsGroup": 1001}
    assert secured["spec"]["securityContext"] == ({**expected, "supplementalGroups": groups} if groups else expected)
    assert secured["spec"]["containers"] == [{**pod["spec"]["containers"][0], "securityContext": container}]


PKI = "/pki"
EXTERNAL = Etcd(external=ExternalEtcd(endpoints=["https://etcd:2379"]))


@pytest.mark.parametrize(
    ("component", "etcd_config", "external_ca", "expected"),
    [
        (
            "kube-apiserver",
            Etcd(),
            False,
            [
                Owned("/pki/sa.pub", 1000, 1001),
                Owned("/pki/sa.key", 0, 1002, 0o640),
                Owned("/pki/apiserver.key", 1000, 1001),
                Owned("/pki/apiserver-kubelet-client.key", 1000, 1001),
                Owned("/pki/front-proxy-client.key", 1000, 1001),
                Owned("/pki/apiserver-etcd-client.key", 1000, 1001),
            ],
        ),
        (
            "kube-apiserver",
            EXTERNAL,
            False,
            [
                Owned("/pki/sa.pub", 1000, 1001),
                Owned("/pki/sa.key", 0, 1002, 0o640),
                Owned("/pki/apiserver.key", 1000, 1001),
                Owned("/pki/apiserver-kubelet-client.key", 1000, 1001),
                Owned("/pki/front-proxy-client.key", 1000, 1001),
            ],
        ),
        (
            "kube-controller-manager",
            Etcd(),
            False,
            [
                Owned("/etc/kubernetes/controller-manager.conf", 1000, 1001),
                Owned("/pki/sa.key", 0, 1002, 0o640),
                Owned("/pki/ca.key", 1000, 1001),
            ],
        ),
        (
            "kube-controller-manager",
            Etcd(),
            True,
            [Owned("/etc/kubernetes/controller-manager.conf", 1000, 1001), Owned("/pki/sa.key", 0, 1002, 0o640)],
        ),
        ("kube-scheduler", Etcd(), False, [Owned("/etc/kubernetes/scheduler.conf", 1000, 1001)]),
        (
            "etcd",
            Etcd(local=LocalEtcd(data_dir="/var/lib/etcd/data")),
            False,
            [
                Owned("/var/lib/etcd/data", 1000, 1001, None),
                Owned("/pki/etcd/server.key", 1000, 1001),
                Owned("/pki/etcd/peer.key", 1000, 1001),
            ],
        ),
    ],
)
def test_each_component_owns_what_it_alone_reads(component: str, etcd_config: Etcd, external_ca: bool, expected: list[Owned]) -> None:
    cluster = ClusterConfiguration(certificates_dir=PKI, etcd=etcd_config)
    assert rootless.files(component, cluster, MADE, external_ca=external_ca) == expected


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="files are given to other users")
def test_the_scheduler_gives_up_root(make_context: MakeContext, tmp_path: Path) -> None:
    ctx = make_context(ClusterConfiguration(feature_gates={"RootlessControlPlane": True}), environment={"PATH": os.environ["PATH"]})
    for path, text in (("/etc/login.defs", LOGIN_DEFS), ("/etc/passwd", PASSWD), ("/etc/group", GROUP)):
        ctx.host.write(path, text.encode())
    ctx.host.write("/etc/kubernetes/scheduler.conf", b"", 0o644)
    components.write(ctx, "kube-scheduler")
    given = (tmp_path / "etc/kubernetes/scheduler.conf").stat()
    assert (given.st_uid, given.st_gid, given.st_mode & 0o777) == (104, 105, 0o600)
    assert (tmp_path / "etc/passwd").read_text() == rootless.ensured(LOGIN_DEFS, PASSWD, GROUP).passwd
    written = (tmp_path / "etc/kubernetes/manifests/kube-scheduler.yaml").read_text()
    assert "  securityContext:\n    runAsGroup: 105\n    runAsUser: 104\n    seccompProfile:\n" in written


def test_a_dry_run_only_says_what_would_change(make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    (tmp_path / "dry").mkdir()
    cluster = ClusterConfiguration(feature_gates={"RootlessControlPlane": True}, etcd=Etcd(local=LocalEtcd(data_dir="/var/lib/etcd")))
    ctx = make_context(cluster, endpoint=APIEndpoint(), environment={"KUBEADM_INIT_DRYRUN_DIR": str(tmp_path / "dry")})
    ctx.host = host_for(ctx.host, "KUBEADM_INIT_DRYRUN_DIR", "kubeadm-init-dryrun", lines)
    etcd.would_write_local(ctx)
    components.would_write(ctx, "kube-scheduler")
    assert [line for line in lines.said if "non-root" in line] == [
        '[etcd] Would create users and groups for "etcd" to run as non-root',
        '[etcd] Would update static pod manifest for "etcd" to run as non-root',
        "[control-plane] Would create users and groups for [kube-scheduler] to run as non-root",
        '[control-plane] Would update static pod manifest for "kube-scheduler" to run as non-root',
    ]
    assert "runAsUser" not in (tmp_path / "dry/kube-scheduler.yaml").read_text()
