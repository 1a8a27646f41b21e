"""Whether the kubelet and the control plane of this node answer, and waiting until they do.

Where a component is asked is read from its static Pod, as kubeadm's WaitForControlPlaneComponents does it.  All are asked
at once; a wait that cannot end well is ended early, by what diagnosis.py finds.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from slipway.api import components
from slipway.api.kubeadm import addresses
from slipway.api.kubeadm.addresses import join_host_port
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host import waiting
from slipway.node import paths
from slipway.node.cluster import live
from slipway.node.health import diagnosis

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping, Sequence

    from slipway.node.context import NodeContext

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_API_SERVER = "kube-apiserver"
_LOOK = 2.0
"""Seconds between two looks at the containers and the kubelet, for a failure that no waiting mends."""
_UNDISTURBED = 4.0
"""Seconds in which a control plane that comes up as it should is not looked at: looking takes time from it."""
_REMIND = 15.0
"""Seconds after which the operator is told again what is awaited."""
_ANSWER = 5.0
"""Seconds that a component has for an answer."""


class _Place(NamedTuple):
    """Where a component is asked, by which of its flags, and which path it answers."""

    address_flag: str
    port: int
    path: str


_PLACES = {
    _API_SERVER: _Place("advertise-address", 6443, "livez"),
    "kube-controller-manager": _Place("bind-address", 10257, "healthz"),
    "kube-scheduler": _Place("bind-address", 10259, "livez"),
}


class _Answer(NamedTuple):
    component: str
    seconds: float
    problem: str


def component_urls(ctx: NodeContext, names: Sequence[str] = CONTROL_PLANE) -> dict[str, str]:
    """Where each component is asked for its health, by its manifest; OperatorError where one is missing or is not the component's."""
    return {name: url_of(name, _command(ctx, name), ctx.config.local_api_endpoint.advertise_address) for name in names}


def wait_for_control_plane(ctx: NodeContext) -> None:
    """The kubelet, then what the release waits for: all components, or the API server alone."""
    timeouts = ctx.config.timeouts
    wait_for_kubelet(ctx, waiting.seconds(timeouts.kubelet_health_check, 240))
    timeout = waiting.seconds(timeouts.control_plane_component_health_check, 240)
    if ctx.release.gate(ctx.config.cluster.feature_gates, "WaitForAllControlPlaneComponents"):
        wait_for_components(ctx, CONTROL_PLANE, timeout)
    else:
        wait_for_api(ctx, timeout)


def wait_for_kubelet(ctx: NodeContext, timeout: float) -> None:
    """Until the kubelet answers at its health port; nothing where that port is 0."""
    values = _kubelet_configuration(ctx)
    address, port = str(values.get("healthzBindAddress") or "127.0.0.1"), values.get("healthzPort", 10248)
    if port == 0:
        ctx.progress.say("[kubelet-check] Skipping the kubelet health check because the healthz port is set to 0")
        return
    url = f"http://{join_host_port(address, str(port))}/healthz"
    ctx.progress.say(f"[kubelet-check] Waiting for a healthy kubelet at {url}. This can take up to {waiting.shown(timeout)}")
    look = diagnosis.KubeletLook(ctx)
    began = next_look = time.monotonic()

    def probe() -> str:
        nonlocal next_look
        missing = problem_at(url)
        if missing and time.monotonic() - next_look >= _LOOK:
            next_look = time.monotonic()
            if hopeless := look.hopeless():
                raise OperatorError(hopeless)
        return missing

    try:
        taken = waiting.until(probe, timeout=timeout)
    except OperatorError as error:
        ctx.progress.say(f"[kubelet-check] The kubelet is not healthy after {waiting.shown(time.monotonic() - began)}")
        ctx.progress.show(f"\n{diagnosis.explain(ctx, ('kubelet',))}\n\n")
        raise OperatorError(f"failed while waiting for the kubelet to start: {error.message}") from error
    ctx.progress.say(f"[kubelet-check] The kubelet is healthy after {waiting.shown(taken)}")


def _kubelet_configuration(ctx: NodeContext) -> Mapping[str, object]:
    """The configuration that the kubelet reads, which patches may have changed; the cluster's where it is not written yet."""
    from slipway.api.machinery.yaml import goyaml

    if ctx.host.exists(paths.KUBELET_CONFIG):
        documents = goyaml.load(ctx.host.read(paths.KUBELET_CONFIG).decode(), paths.KUBELET_CONFIG)
        if documents and isinstance(documents[0].value, dict):
            return documents[0].value
    component = ctx.config.cluster.component_configs.get(components.KUBELET_GROUP)
    return component.value if component is not None else {}


def wait_for_components(ctx: NodeContext, names: Sequence[str], timeout: float) -> None:
    """Until all of them answer; who fails is diagnosed before the error is raised."""
    ctx.progress.say(f"[control-plane-check] Waiting for healthy control plane components. This can take up to {waiting.shown(timeout)}")
    urls = component_urls(ctx, names)
    for name, url in urls.items():
        ctx.progress.say(f"[control-plane-check] Checking {name} at {url}")
    _wait(ctx, urls, timeout, "[control-plane-check] {name} is")


def wait_for_api(ctx: NodeContext, timeout: float) -> None:
    """What releases did that did not wait for all components: the API server alone."""
    ctx.progress.say(f"[api-check] Waiting for a healthy API server. This can take up to {waiting.shown(timeout)}")
    _wait(ctx, {_API_SERVER: f"{addresses.local_api_url(ctx.config.local_api_endpoint)}/healthz"}, timeout, "[api-check] The API server is")


def _wait(ctx: NodeContext, urls: Mapping[str, str], timeout: float, words: str) -> None:
    """Ask every component on a thread of its own; what is said is said from here."""
    import queue
    import threading

    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
    ended = threading.Event()
    latest = dict.fromkeys(urls, "no answer yet")

    def watch(name: str, ask: Callable[[], str]) -> None:
        began = time.monotonic()
        while not ended.is_set():
            latest[name] = ask()
            elapsed = time.monotonic() - began
            if not latest[name] or elapsed > timeout:
                answers.put(_Answer(name, elapsed, latest[name]))
                return
            ended.wait(waiting.POLL)

    for name, ask in {name: _asker(ctx, name, url) for name, url in urls.items()}.items():
        threading.Thread(target=watch, args=(name, ask), name=f"health of {name}", daemon=True).start()
    look = diagnosis.Look(ctx)
    pending, problems, began = list(urls), [], time.monotonic()
    reminded, next_look = began, began + _UNDISTURBED
    try:
        while pending:
            try:
                answer = answers.get(timeout=max(0.0, next_look - time.monotonic()))
            except queue.Empty:
                next_look = time.monotonic() + _LOOK
                if hopeless := look.hopeless(pending):
                    raise _failure(ctx, pending, hopeless) from None
                if time.monotonic() - reminded >= _REMIND:
                    reminded = time.monotonic()
                    awaited = "; ".join(f"{name}: {latest[name]}" for name in pending)
                    ctx.progress.say(f"[control-plane-check] Still waiting for {awaited}")
                continue
            healthy = "not healthy" if answer.problem else "healthy"
            ctx.progress.say(f"{words.format(name=answer.component)} {healthy} after {waiting.shown(answer.seconds)}")
            pending.remove(answer.component)
            if answer.problem:
                problems.append((answer.component, f"{answer.component} check failed at {urls[answer.component]}: {answer.problem}"))
    finally:
        ended.set()
    if problems:
        raise _failure(ctx, [name for name, _ in problems], "; ".join(problem for _, problem in problems))


def _failure(ctx: NodeContext, names: Sequence[str], problem: str) -> OperatorError:
    ctx.progress.show(f"\n{diagnosis.explain(ctx, names)}\n\n")
    return OperatorError(f"failed while waiting for the control plane to start: {problem}")


def _asker(ctx: NodeContext, name: str, url: str) -> Callable[[], str]:
    """A question to a component: the API server with the administrator's certificate, for it may refuse strangers."""
    if name == _API_SERVER and ctx.host.exists(paths.ADMIN_CONF):
        server, _, path = url.rpartition("/")
        client = live.connect(ctx.host, paths.ADMIN_CONF, server=server).client

        def ask() -> str:
            try:
                client.raw(f"/{path}", timeout=_ANSWER)
            except OperatorError as error:
                return error.message
            return ""

        return ask
    return lambda: problem_at(url)


def problem_at(url: str, timeout: float = _ANSWER) -> str:
    """What is wrong with the answer of a URL; empty where it is well."""
    try:
        answer = _heard(url, timeout)
    except OSError as error:
        return f"Get {url}: {getattr(error, 'strerror', None) or error or type(error).__name__}"
    return "" if answer.status == 200 else f"Get {url}: status code {answer.status}"


def date_at(url: str, timeout: float = _ANSWER) -> str:
    """The time of whoever answers, as its header Date has it, whatever else it says; OSError where nobody does."""
    return _heard(url, timeout).date


class _Heard(NamedTuple):
    status: int
    date: str


def _heard(url: str, timeout: float) -> _Heard:
    """The controller manager and the scheduler sign their own certificates, so nobody's authority is asked for."""
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=_unverified())
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        return _Heard(response.status, response.headers.get("Date", ""))
    except http.client.HTTPException as error:
        raise OSError(str(error) or type(error).__name__) from error
    finally:
        connection.close()


@cache
def _unverified() -> ssl.SSLContext:
    """Made once: with OpenSSL 3 that takes milliseconds, and it is needed ten times a second."""
    from slipway.credentials import tls

    return tls.client_context("a component of this node", insecure=True)


def _command(ctx: NodeContext, component: str) -> list[str]:
    """The command line in the static Pod of a component."""

    path = f"{paths.MANIFESTS_DIR}/{component}.yaml"
    try:
        documents = goyaml.load(ctx.host.read(path).decode(), path)
    except OSError as error:
        raise OperatorError(f"failed to read manifest for {component}: {ctx.host.location(path)}: {error.strerror or error}") from error
    pod = documents[0].value if documents else None
    containers = (pod.get("spec") or {}).get("containers") or [] if isinstance(pod, dict) else []
    commands = [container["command"] for container in containers if (container.get("command") or [""])[0] == component]
    if not commands:
        raise OperatorError(f'{ctx.host.location(path)}: the Pod has no container command starting with "{component}"')
    return [str(word) for word in commands[0]]


def url_of(component: str, command: Sequence[str], advertise_address: str) -> str:
    place = _PLACES[component]
    address = flag_of(command, place.address_flag) or (advertise_address if component == _API_SERVER else "127.0.0.1")
    return f"https://{join_host_port(address, flag_of(command, 'secure-port') or str(place.port))}/{place.path}"


def flag_of(command: Sequence[str], name: str) -> str:
    """The value of the last ``--name=value`` of a command line, or of ``--name value`` in one word; empty where there is none."""
    words = [word.strip().replace(" ", "=", 1) if "=" not in word else word.strip() for word in command]
    given = [word.partition("=")[2] for word in words if word.partition("=")[0] in (f"--{name}", f"-{name}")]
    return given[-1] if given else ""
