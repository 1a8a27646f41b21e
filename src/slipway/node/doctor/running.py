"""What runs on a node, asked: the kubelet, the container runtime, the components, etcd, the API server, the shared address.

Every question has a limit of its own, since on a broken node many have no answer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from slipway.api.kubeadm.addresses import join_host_port
from slipway.api.machinery.errors import OperatorError
from slipway.host.cri.client import ContainerRuntimeError, service_of
from slipway.kube import errors
from slipway.kube.client import Client
from slipway.node import paths
from slipway.node.cluster import live
from slipway.node.config import cluster as clusterconfig
from slipway.node.doctor.facts import Api, Component, Etcd, EtcdEndpoint, Kubelet, Runtime, Vip
from slipway.node.etcd import wal
from slipway.node.health import observation, wait
from slipway.workload.alive import pod as alive
from slipway.workload.alive import values
from slipway.workload.etcdapi import EtcdError
from slipway.workload.etcdclient import EtcdClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.host.cri.client import ContainerRuntime
    from slipway.host.interface import Host
    from slipway.node.doctor.facts import ContainerSpec
    from slipway.node.doctor.files import NodeFiles

ANSWER = 3.0
"""Seconds that whoever is asked has for an answer."""
_OVERRIDING = {
    "cgroup-driver": "cgroupDriver",
    "fail-cgroupv1": "failCgroupV1",
    "fail-swap-on": "failSwapOn",
    "rotate-certificates": "rotateCertificates",
}
_CLOCK_DRIFT = "prober found high clock drift"


def kubelet(host: Host, files: NodeFiles) -> Kubelet:
    config = {**files.kubelet_config, **_overridden(files.kubelet_flags)}
    port = config.get("healthzPort", 10248)
    url = f"http://{join_host_port(str(config.get('healthzBindAddress') or '127.0.0.1'), str(port))}/healthz" if port else ""
    unit = observation.unit(host)
    active = unit is None or unit.active == "active"
    told = host.run("kubelet", "--version").stdout if host.which("kubelet") else ""
    return Kubelet(
        unit=unit,
        version=told.strip().removeprefix("Kubernetes "),
        config=config,
        config_problem=files.kubelet_problem,
        health=wait.problem_at(url, ANSWER) if url and active and files.role != "none" else "",
    )


def _overridden(flags: Sequence[str]) -> dict[str, object]:
    """What flags say that have precedence over the configuration."""
    given = {field: wait.flag_of(flags, flag) for flag, field in _OVERRIDING.items()}
    return {field: {"true": True, "false": False}.get(value, value) for field, value in given.items() if value}


def runtime(host: Host, files: NodeFiles) -> Runtime:
    socket = files.runtime_socket()
    service = service_of(socket)
    unit = observation.unit(host, service)
    specs = [container for manifest in files.manifests for container in manifest.containers]
    with host.container_runtime(socket) as client:
        try:
            told = client.version()
            return Runtime(
                socket=socket,
                service=service,
                unit=unit,
                version=f"{told.name} {told.version}",
                not_ready=tuple(client.status_problems()),
                network_not_ready=tuple(client.status_problems("NetworkReady")),
                cgroup_driver=client.cgroup_driver(),
                components=_components(host, client, specs),
                left=len(client.containers()),
            )
        except ContainerRuntimeError as error:
            permitted = "no permission" not in error.message
            return Runtime(socket=socket, service=service, unit=unit, problem=error.message, permitted=permitted, components=None)


def _components(host: Host, client: ContainerRuntime, specs: Iterable[ContainerSpec]) -> tuple[Component, ...]:
    chosen = list(specs)
    found = observation.containers(host, client, [spec.name for spec in chosen])
    made = []
    for spec in chosen:
        there = found.get(spec.name)
        missing = there is None and bool(spec.image) and not client.has_image(spec.image)
        made.append(Component(name=spec.name, image=spec.image, image_missing=missing, found=there))
    return tuple(made)


def answers(files: NodeFiles) -> dict[str, str]:
    """Component → what is wrong with its answer; empty where nothing is."""
    urls = {name: wait.url_of(name, spec.command, "127.0.0.1") for name in wait.CONTROL_PLANE if (spec := files.spec(name)) is not None}
    if not urls:
        return {}
    with ThreadPoolExecutor(len(urls)) as pool:
        return dict(zip(urls, pool.map(lambda url: wait.problem_at(url, ANSWER), urls.values()), strict=True))


def etcd(host: Host, files: NodeFiles) -> Etcd | None:
    spec = files.local_etcd
    if spec is None:
        return _external_etcd(host, files)
    folder = wait.flag_of(spec.command, "data-dir") or paths.ETCD_DATA_DIR
    problem = ""
    try:
        wal.owner(host, folder)
    except OperatorError as error:
        problem = error.message
    quota = wait.flag_of(spec.command, "quota-backend-bytes")
    urls = (wait.flag_of(spec.command, "listen-client-urls") or "https://127.0.0.1:2379").split(",")
    own = next((url for url in urls if "127.0.0.1" in url or "[::1]" in url), urls[0])
    known = Etcd(
        data_dir=folder,
        data_missing=not host.exists(folder),
        owner_problem=problem,
        quota=int(quota) if quota.isdecimal() and int(quota) else Etcd().quota,
    )
    return _asked_etcd(host, files.pki, known, own)


def _asked_etcd(host: Host, pki: str, known: Etcd, own: str) -> Etcd:
    client = EtcdClient(
        [own],
        ca=host.read(f"{pki}/etcd/ca.crt"),
        certificate=host.read(f"{pki}/etcd/healthcheck-client.crt"),
        key=host.read(f"{pki}/etcd/healthcheck-client.key"),
        timeout=ANSWER,
        patience=0.0,
    )
    try:
        status = client.status(own)
    except EtcdError as error:
        return msgspec.structs.replace(known, own=EtcdEndpoint(url=own, problem=error.message))
    found = msgspec.structs.replace(known, own=EtcdEndpoint(url=own, status=status))
    try:
        members, alarms = client.members(), client.alarms()
    except EtcdError:
        # Without a leader nobody tells the members; that there is none is in the status.
        return found
    others = [url for member in members if member.id != status.member_id for url in member.client_urls[:1]]
    client.endpoints = tuple(others)
    told = client.statuses() if others else {}
    return msgspec.structs.replace(
        found,
        members=tuple(members),
        alarms=tuple(alarms),
        others=tuple(
            EtcdEndpoint(url=url, problem=answer.message) if isinstance(answer, EtcdError) else EtcdEndpoint(url=url, status=answer)
            for url, answer in told.items()
        ),
    )


def drift(components: Iterable[Component]) -> str:
    """The line in which etcd told of clocks that differ."""
    logs = (component.found.log for component in components if component.name == "etcd" and component.found is not None)
    return next((line for log in logs for line in reversed(log) if _CLOCK_DRIFT in line), "")


def _external_etcd(host: Host, files: NodeFiles) -> Etcd | None:
    server = files.spec("kube-apiserver")
    urls = wait.flag_of(server.command, "etcd-servers") if server is not None else ""
    if server is None or not urls:
        return None
    ca, certificate, key = (wait.flag_of(server.command, f"etcd-{name}file") for name in ("ca", "cert", "key"))

    def ask(url: str) -> EtcdEndpoint:
        try:
            host.fetch(f"{url.rstrip('/')}/version", ca=ca, identity=(certificate, key) if certificate and key else None, timeout=ANSWER)
        except OSError as error:
            return EtcdEndpoint(url=url, problem=str(error))
        return EtcdEndpoint(url=url)

    named = urls.split(",")
    with ThreadPoolExecutor(len(named)) as pool:
        return Etcd(external=True, others=tuple(pool.map(ask, named)))


def api(host: Host) -> Api | None:
    """The API server by the kubelet's own kubeconfig: what it may not do, the kubelet may not."""
    if not host.exists(paths.KUBELET_CONF):
        return None
    connection = live.connection_of(host, paths.KUBELET_CONF)
    server, name = connection.server, urlsplit(connection.server).hostname or ""
    try:
        if not _is_address(name):
            host.resolve(name)
    except OSError as error:
        return Api(server=server, trouble="name", problem=f"{name}: {error.strerror or error}")
    client = Client(connection, timeout=ANSWER, environment=host.environment)
    try:
        version = str(client.server_version())
        node = client.get("v1", "Node", clusterconfig.node_name(host))
    except errors.UntrustedError as error:
        return Api(server=server, trouble="untrusted", problem=error.message, ahead=_ahead(host, server))
    except errors.UnreachableError as error:
        return Api(server=server, trouble="unreachable", problem=error.message)
    except (errors.UnauthorizedError, errors.ForbiddenError) as error:
        return Api(server=server, trouble="refused", problem=error.message, ahead=_ahead(host, server))
    except errors.ApiError as error:
        return Api(server=server, trouble="failing", problem=error.message)
    finally:
        client.close()
    return Api(server=server, version=version, asked_for_node=True, node=node, ahead=_ahead(host, server))


def _ahead(host: Host, server: str) -> float | None:
    try:
        told = wait.date_at(f"{server}/livez", ANSWER)
        return (host.now() - parsedate_to_datetime(told)).total_seconds() if told else None
    except (OSError, ValueError):
        return None


def vip(host: Host) -> Vip | None:
    if not host.exists(alive.VALUES) and not host.exists(alive.MANIFEST):
        return None
    try:
        known = values.decode(host.read(alive.VALUES), alive.VALUES)
    except FileNotFoundError:
        return Vip(problem=f"{alive.VALUES}: no such file")
    except OperatorError as error:
        return Vip(problem=error.message)
    missing = not host.exists(f"/sys/class/net/{known.interface}")
    try:
        configured = known.vip in host.read(alive.CONFIGURATION).decode(errors="replace")
    except FileNotFoundError:
        configured = False
    return Vip(
        values=known,
        interface_missing=missing,
        holds=not missing and known.vip in host.addresses(known.interface),
        configured=configured,
        answer=wait.problem_at(f"https://{join_host_port(known.vip, str(known.port))}/livez", ANSWER),
    )


def is_worth_telling(status: Mapping[str, object]) -> bool:
    """Whether the agent's files say anything at all."""
    return bool(status.get("configured") or status.get("registered") or status.get("problem") or status.get("plan"))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
