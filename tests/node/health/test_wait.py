"""Where components are asked for their health, and what is made of their answers."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from slipway.api.kubeadm.internal import APIEndpoint, ComponentConfig
from slipway.api.machinery.errors import OperatorError
from slipway.node import paths
from slipway.node.health import wait as health

if TYPE_CHECKING:
    from collections.abc import Iterator

    from node.conftest import Lines, MakeContext

    from slipway.node.context import NodeContext

pytestmark = pytest.mark.upstream_table

KUBELET = "kubelet.config.k8s.io"


@pytest.fixture
def ctx(make_context: MakeContext) -> NodeContext:
    return make_context(endpoint=APIEndpoint(advertise_address="192.168.0.1", bind_port=6443))


def put(ctx: NodeContext, component: str, *command: str) -> None:
    words = "".join(f"\n    - '{word}'" for word in command)
    text = f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: {component}\n    command:{words or ' []'}\n"
    ctx.host.write(f"{paths.MANIFESTS_DIR}/{component}.yaml", text.encode())


# util/apiclient/wait_test.go, TestGetControlPlaneComponents
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            ("--advertise-address=fd00:1::|--secure-port=1111", "--bind-address=127.0.0.1|--secure-port=2222", "--secure-port=3333"),
            ("https://[fd00:1::]:1111/livez", "https://127.0.0.1:2222/healthz", "https://127.0.0.1:3333/livez"),
        ),
        (
            ("-advertise-address=fd00:1::|-secure-port=1111", "-bind-address 127.0.0.1|-secure-port 2222", "-secure-port 3333"),
            ("https://[fd00:1::]:1111/livez", "https://127.0.0.1:2222/healthz", "https://127.0.0.1:3333/livez"),
        ),
        (("", "", ""), ("https://192.168.0.1:6443/livez", "https://127.0.0.1:10257/healthz", "https://127.0.0.1:10259/livez")),
    ],
)
def test_components_are_asked_where_their_manifests_say(flags: tuple[str, ...], expected: tuple[str, ...], ctx: NodeContext) -> None:
    for component, given in zip(health.CONTROL_PLANE, flags, strict=True):
        put(ctx, component, component, *given.split("|"))
    assert tuple(health.component_urls(ctx).values()) == expected


def test_a_component_without_manifest_cannot_be_asked(ctx: NodeContext) -> None:
    with pytest.raises(OperatorError, match=r"failed to read manifest for kube-apiserver: .*kube-apiserver.yaml: No such file"):
        health.component_urls(ctx)


@pytest.mark.parametrize("command", [(), ("",), ("kube-proxy",)])
def test_a_manifest_of_something_else_is_refused(command: tuple[str, ...], ctx: NodeContext) -> None:
    put(ctx, "kube-scheduler", *command)
    with pytest.raises(OperatorError, match='the Pod has no container command starting with "kube-scheduler"'):
        health.component_urls(ctx, ["kube-scheduler"])


class Kubelet(BaseHTTPRequestHandler):
    """Answers as the kubelet's health port does: 500 for the first questions, then 200."""

    failures = 0

    def do_GET(self) -> None:
        type(self).failures -= 1
        self.send_response(500 if self.failures >= 0 else 200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class has
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Kubelet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def listens(ctx: NodeContext, port: int) -> None:
    values = {"healthzBindAddress": "127.0.0.1", "healthzPort": port}
    ctx.config.cluster.component_configs[KUBELET] = ComponentConfig(value=values)


def test_a_kubelet_is_awaited_until_it_is_well(ctx: NodeContext, port: int, lines: Lines) -> None:
    listens(ctx, port)
    Kubelet.failures = 2
    health.wait_for_kubelet(ctx, 60)
    assert lines.said[0] == f"[kubelet-check] Waiting for a healthy kubelet at http://127.0.0.1:{port}/healthz. This can take up to 1m0s"
    assert lines.said[-1].startswith("[kubelet-check] The kubelet is healthy after ")


def test_a_kubelet_without_health_port_is_not_awaited(ctx: NodeContext, lines: Lines) -> None:
    listens(ctx, 0)
    health.wait_for_kubelet(ctx, 0)
    assert lines.said == ["[kubelet-check] Skipping the kubelet health check because the healthz port is set to 0"]
