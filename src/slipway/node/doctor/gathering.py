"""All facts of a machine, gathered once: files first, then everything that may keep one waiting, at the same time and with a deadline.

Nothing is changed on the machine: files are read, services and programs are asked.
"""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths
from slipway.node.config import cluster as clusterconfig
from slipway.node.config import dynamicdefaults
from slipway.node.doctor import running
from slipway.node.doctor.facts import Agent, Clock, Disk, Facts, Kubelet, Port, Runtime, Unseen
from slipway.node.doctor.files import NodeFiles
from slipway.node.health import observation
from slipway.node.health.wait import flag_of
from slipway.node.preflight import machine, system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from slipway.host.interface import Host

DEADLINE = 10.0
"""Seconds in which all is gathered; who has not answered by then is noted as unseen."""
_QUIET = 2.0
_INTERFACES = "/sys/class/net"
_AGENTS = ("slipway-agent", "elemental-system-agent")
_SECURE_PORTS = {"kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}
_AS_ROOT = "run it as root"


def gather(
    host: Host,
    *,
    agent: Callable[[], Mapping[str, Any]] = dict,
    say: Callable[[str], None] = lambda line: None,
    deadline: float = DEADLINE,
) -> Facts:
    """``agent`` tells of the agent of a bare-metal host; ``say`` is told what is waited for."""
    files = NodeFiles(host)
    now, root = host.now(), host.user_id() == 0
    questions: dict[str, Callable[[], Any]] = {
        "the kubelet": lambda: running.kubelet(host, files),
        "the container runtime": lambda: running.runtime(host, files),
        "the components": lambda: running.answers(files),
        "etcd": lambda: running.etcd(host, files),
        "the API server": lambda: running.api(host),
        "the shared address": lambda: running.vip(host),
        "the clock": lambda: _clock(host),
        "disks": lambda: tuple(_disks(host, files)),
        "addresses": lambda: tuple(_addresses(host)),
        "ports": lambda: tuple(_ports(host, files)) if root else (),
        "cgroups": lambda: _cgroups(host),
        "the agent": lambda: _agent(host, agent),
    }
    told, unseen = _ask_all(questions, say, deadline)
    certificates, missing = files.certificates(now)
    kubeconfigs, embedded, rotating = files.kubeconfigs()
    kubelet: Kubelet = told.get("the kubelet") or Kubelet(config=files.kubelet_config, config_problem=files.kubelet_problem)
    runtime = _with_answers(told.get("the container runtime") or Runtime(components=None), told.get("the components") or {})
    if not root:
        unseen += [Unseen("who listens on the node's ports", _AS_ROOT)]
    if not runtime.permitted:
        unseen += [Unseen("the container runtime and its containers", _AS_ROOT)]
        runtime = msgspec.structs.replace(runtime, problem="")
    etcd = told.get("etcd")
    if etcd is not None and runtime.components:
        etcd = msgspec.structs.replace(etcd, drift=running.drift(runtime.components))
    unified, controllers = told.get("cgroups") or (True, Facts(now=now).controllers)
    path, resolv_problem, nameservers = files.resolv_conf()
    return Facts(
        now=now,
        role=files.role,
        node=_name(host),
        unseen=_once((*files.unseen, *unseen)),
        left=files.left,
        kubelet=msgspec.structs.replace(kubelet, rotating_file=rotating),
        runtime=runtime,
        manifests=files.manifests,
        certificates=(*certificates, *embedded),
        missing_certificates=tuple(missing),
        kubeconfigs=tuple(kubeconfigs),
        etcd=etcd,
        api=told.get("the API server"),
        addresses=told.get("addresses") or (),
        claimed_addresses=tuple(files.claimed_addresses()),
        swaps=tuple(line.split()[0] for line in files.text("/proc/swaps").splitlines()[1:] if line.strip()),
        swap_in_fstab=files.swap_in_fstab(),
        clock=told.get("the clock") or Clock(),
        disks=told.get("disks") or (),
        unified=unified,
        controllers=controllers,
        ports=told.get("ports") or (),
        nameservers=nameservers,
        resolv_conf=path,
        resolv_conf_problem=resolv_problem,
        forwarding_off=tuple(path for path in (machine.IPV4_FORWARDING,) if files.text(path).strip() == "0"),
        vip=told.get("the shared address"),
        agent=told.get("the agent"),
    )


def _ask_all(
    questions: Mapping[str, Callable[[], Any]], say: Callable[[str], None], deadline: float
) -> tuple[dict[str, Any], list[Unseen]]:
    """Every question on a thread of its own; one that has no answer by the deadline is left behind."""
    told: dict[str, Any] = {}
    failed: dict[str, Exception] = {}

    def ask(name: str) -> None:
        try:
            told[name] = questions[name]()
        except Exception as error:  # judged by the thread that asked
            failed[name] = error

    began = said = time.monotonic()
    threads = {name: Thread(target=ask, args=(name,), name=f"doctor: {name}", daemon=True) for name in questions}
    for thread in threads.values():
        thread.start()
    while waiting := [name for name, thread in threads.items() if thread.is_alive()]:
        elapsed = time.monotonic() - began
        if elapsed >= deadline:
            break
        if elapsed >= _QUIET and time.monotonic() - said >= _QUIET:
            said = time.monotonic()
            say(f"Still waiting for {', '.join(waiting)} ({deadline - elapsed:.0f} s at most)")
        threads[waiting[0]].join(min(0.1, deadline - elapsed))
    # Who answers from now on is too late: what is told must not change while it is read.
    told, failed = dict(told), dict(failed)
    unseen = [Unseen(name, f"no answer within {deadline:.0f} s") for name in threads if name not in told and name not in failed]
    for name, error in failed.items():
        if not isinstance(error, OSError | OperatorError):
            raise error
        unseen.append(Unseen(name, _reason(error)))
    return told, unseen


def _reason(error: OSError | OperatorError) -> str:
    if isinstance(error, PermissionError):
        return f"{error.filename}: permission denied: {_AS_ROOT}"
    if isinstance(error, OperatorError):
        return error.message
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _once(unseen: tuple[Unseen, ...]) -> tuple[Unseen, ...]:
    return tuple(dict.fromkeys(unseen))


def _with_answers(runtime: Runtime, answers: Mapping[str, str]) -> Runtime:
    if runtime.components is None:
        return runtime
    components = tuple(msgspec.structs.replace(each, answer=answers.get(each.name, "")) for each in runtime.components)
    return msgspec.structs.replace(runtime, components=components)


def _name(host: Host) -> str:
    try:
        return clusterconfig.node_name(host)
    except (OSError, OperatorError):
        # What is wrong with the kubelet's kubeconfig is told elsewhere.
        return dynamicdefaults.node_name("", host)


def _clock(host: Host) -> Clock:
    # A container has the clock of its host, and no service for it.
    if host.exists("/run/systemd/container") or host.which("timedatectl") is None:
        return Clock()
    shown = host.run("timedatectl", "show", "--property=NTPSynchronized", "--value")
    return Clock(synchronized={"yes": True, "no": False}.get(shown.stdout.strip()))


def _disks(host: Host, files: NodeFiles) -> Iterator[Disk]:
    """One for every file system that a node writes to."""
    etcd = files.local_etcd
    images = "/var/lib/containers" if "crio" in files.runtime_socket() else "/var/lib/containerd"
    purposes = {
        paths.KUBELET_DIR: "the kubelet and the volumes of Pods",
        images: "images and containers",
        (flag_of(etcd.command, "data-dir") if etcd is not None else "") or paths.ETCD_DATA_DIR: "etcd's data",
        paths.KUBERNETES_DIR: "the node's configuration and certificates",
        "/var/log": "logs",
        "/": "the system",
    }
    seen = set()
    for path, purpose in purposes.items():
        try:
            space = host.space(path)
        except FileNotFoundError:
            continue
        if space.device not in seen:
            seen.add(space.device)
            yield Disk(path=path, purpose=purpose, space=space)


def _addresses(host: Host) -> Iterator[str]:
    for interface in host.list_dir(_INTERFACES):
        # bonding_masters is a file among the devices.
        if host.is_dir(f"{_INTERFACES}/{interface}"):
            yield from host.addresses(interface)


def _ports(host: Host, files: NodeFiles) -> Iterator[Port]:
    if files.role == "none":
        return
    expected = {10250: observation.KUBELET}
    for component, port in _SECURE_PORTS.items():
        if (spec := files.spec(component)) is not None:
            named = flag_of(spec.command, "secure-port")
            expected[int(named) if named.isdecimal() else port] = component
    if files.local_etcd is not None:
        expected |= {2379: "etcd", 2380: "etcd"}
    for number, component in expected.items():
        yield Port(number=number, component=component, owner=host.port_owner(number))


def _cgroups(host: Host) -> tuple[bool | None, tuple[str, ...]]:
    mounts = host.read("/proc/mounts").decode(errors="replace").splitlines()
    mounted = system.hierarchy(mounts, has_v1_memory=host.is_dir(f"{system.CGROUP_MOUNT}/memory"))
    if mounted is None:
        return None, ()
    folder, unified = mounted
    controllers = host.read(f"{folder}/cgroup.controllers").decode().split() if unified else system.controllers_v1(host)
    return unified, tuple(controllers)


def _agent(host: Host, status: Callable[[], Mapping[str, Any]]) -> Agent | None:
    known = status()
    # An image may have the unit on every host: without a registration it rightly does nothing.
    if not running.is_worth_telling(known):
        return None
    units = {name: unit for name in _AGENTS if (unit := observation.unit(host, name)) is not None and unit.loaded}
    service = next(iter(units), _AGENTS[0])
    return Agent(unit=units.get(service), service=service, status=known)
