"""What a killed init or join left is recognised by what it is; anything else stays in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.machine import Machine

from slipway.api.kubeadm.internal import (
    APIEndpoint,
    Arg,
    ClusterConfiguration,
    Etcd,
    JoinConfiguration,
    JoinControlPlane,
    LocalEtcd,
    Networking,
    NodeRegistrationOptions,
)
from slipway.host import procfs
from slipway.kube import kubeconfig
from slipway.node import kubeconfigs, paths
from slipway.node.etcd import pod
from slipway.node.pki import store
from slipway.node.preflight import resume, workflows
from slipway.node.preflight.resume import NOTHING
from slipway.node.staticpods import components

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

    from slipway.node.context import NodeContext

MANIFESTS = [f"{paths.MANIFESTS_DIR}/{name}.yaml" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")]


@pytest.fixture
def ctx(make_context: MakeContext, tmp_path: Path) -> NodeContext:
    cluster = ClusterConfiguration(
        kubernetes_version="v1.36.3",
        certificates_dir=paths.PKI_DIR,
        networking=Networking(service_subnet="10.96.0.0/12", pod_subnet="10.244.0.0/16", dns_domain="cluster.local"),
        etcd=Etcd(local=LocalEtcd(data_dir="/var/lib/etcd")),
        image_repository="registry.k8s.io",
    )
    context = make_context(cluster, endpoint=APIEndpoint(advertise_address="10.0.0.1", bind_port=6443))
    context.config.node_registration = NodeRegistrationOptions(name="n1")
    context.host = Machine(tmp_path)
    return context


def write_all(ctx: NodeContext) -> None:
    pod.write_local(ctx)
    for component in components.COMPONENTS:
        components.write(ctx, component)


def names(ctx: NodeContext) -> set[str]:
    left = resume.of_control_plane(ctx, ctx.host)
    return {check.name for check in workflows.init_checks(ctx.config, ctx.release, earlier=left)}


def test_an_empty_machine_has_nothing_to_go_on_with(ctx: NodeContext, lines: Lines) -> None:
    left = resume.of_control_plane(ctx, ctx.host)
    left.tell(ctx.progress, "init")
    assert (left, lines.said) == (NOTHING, [])


def test_an_init_goes_on_with_the_manifests_that_it_would_write(ctx: NodeContext, lines: Lines) -> None:
    write_all(ctx)
    lines.said.clear()
    left = resume.of_control_plane(ctx, ctx.host)
    left.tell(ctx.progress, "init")
    assert lines.said == [f"[preflight] Going on with an earlier init: {', '.join(MANIFESTS)}, the data in /var/lib/etcd"]
    assert left.ports == {
        6443: "kube-apiserver", 10257: "kube-controller", 10259: "kube-scheduler", 2379: "etcd", 2380: "etcd", 10250: "kubelet",
    }  # fmt: skip
    assert not [name for name in names(ctx) if name.startswith(("FileAvailable", "DirAvailable"))]


def test_a_manifest_that_says_something_else_is_in_the_way(ctx: NodeContext) -> None:
    write_all(ctx)
    ctx.config.cluster.controller_manager.extra_args.append(Arg(name="v", value="4"))
    assert {name for name in names(ctx) if name.startswith("FileAvailable")} == {
        "FileAvailable--etc-kubernetes-manifests-kube-controller-manager.yaml"
    }
    assert 10257 not in resume.of_control_plane(ctx, ctx.host).ports


@pytest.mark.parametrize("content", ["", "nonsense: [", "kind: Pod\n", "[]\n"])
def test_a_manifest_that_cannot_be_read_is_in_the_way(content: str, ctx: NodeContext) -> None:
    ctx.host.write(MANIFESTS[3], content.encode())
    ctx.host.write("/var/lib/etcd/member/wal", b"")
    assert {name for name in names(ctx) if "etcd" in name} >= {
        "FileAvailable--etc-kubernetes-manifests-etcd.yaml",
        "DirAvailable--var-lib-etcd",
    }


def test_data_of_an_etcd_without_a_manifest_are_not_ours(ctx: NodeContext) -> None:
    ctx.host.write("/var/lib/etcd/member/wal", b"")
    assert "DirAvailable--var-lib-etcd" in names(ctx)


def test_a_control_plane_that_joins_may_have_been_told_of_other_members(ctx: NodeContext) -> None:
    pod.write_joined(ctx, [pod.Member("n0", "https://10.0.0.9:2380"), pod.Member("n1", "https://10.0.0.1:2380")])
    assert resume.of_control_plane(ctx, ctx.host, joining=True).files == (MANIFESTS[3],)
    assert resume.of_control_plane(ctx, ctx.host) == NOTHING
    ctx.config.node_registration.name = "n2"
    assert resume.of_control_plane(ctx, ctx.host, joining=True) == NOTHING


@pytest.fixture
def authorities(ctx: NodeContext) -> tuple[bytes, bytes]:
    """The CA of the cluster, whose files are on the machine, and that of another one."""
    store.ensure_certificate(ctx, "ca")
    store.ensure_certificate(ctx, "front-proxy-ca")
    return ctx.host.read(f"{paths.PKI_DIR}/ca.crt"), ctx.host.read(f"{paths.PKI_DIR}/front-proxy-ca.crt")


def join(name: str = "n1", *, control_plane: bool = False) -> JoinConfiguration:
    return JoinConfiguration(
        ca_cert_path=f"{paths.PKI_DIR}/ca.crt",
        control_plane=JoinControlPlane() if control_plane else None,
        node_registration=NodeRegistrationOptions(name=name),
    )


def test_a_join_goes_on_with_the_files_of_its_cluster(ctx: NodeContext, authorities: tuple[bytes, bytes]) -> None:
    ca, other = authorities
    document = kubeconfig.document(server="https://10.0.0.1:6443", cluster="kubernetes", user="boot", ca=ca, credentials={"token": "t"})
    ctx.host.write(paths.BOOTSTRAP_KUBELET_CONF, kubeconfig.text(document, ctx.release).encode())
    kubeconfigs.ensure(ctx, "kubelet")
    files = (paths.KUBELET_CONF, paths.BOOTSTRAP_KUBELET_CONF, f"{paths.PKI_DIR}/ca.crt")
    assert tuple(resume.join_traces(join(), ctx.host)) == files

    left = resume.of_join(join(), ctx.host, ca)
    assert (left.files, left.ports) == (files, {10250: "kubelet"})
    assert not [check for check in workflows.join_checks(join(), ctx.release, earlier=left) if check.name.startswith("FileAvailable")]
    assert resume.of_join(join(control_plane=True), ctx.host, ca).files == files[:2]
    assert resume.of_join(join("n2"), ctx.host, ca).files == files[1:], "the kubelet's credentials are another node's"
    assert resume.of_join(join(), ctx.host, other) == NOTHING


def test_the_ca_alone_does_not_explain_a_kubelet(ctx: NodeContext, authorities: tuple[bytes, bytes]) -> None:
    left = resume.of_join(join(), ctx.host, authorities[0])
    assert (left.files, left.ports) == ((f"{paths.PKI_DIR}/ca.crt",), {})


# /proc/net/tcp as the kernel prints it: 127.0.0.1:10257 and 0.0.0.0:22 listen, one connection goes from 10257.
TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2811 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12346 1 0000000000000000 100 0 0 10 0
   2: 0100007F:2811 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 12347 1 0000000000000000 100 0 0 10 0
"""


def test_listening_sockets_are_found_by_their_port() -> None:
    assert procfs.listening_inodes(TABLE.splitlines(), 10257) == ["12345"]
    assert procfs.listening_inodes(TABLE.splitlines(), 10250) == []
