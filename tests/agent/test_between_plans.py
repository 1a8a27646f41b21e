"""What an agent does while there is no plan to run: facts of the host, probes and periodic instructions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent.world import Site, shell
from support.ports import free_port
from support.waiting import eventually

from slipway.agent import hostfacts
from slipway.agent.machine import RealMachine
from slipway.agent.plan import periodic
from slipway.api.elemental import names
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plan import HTTPGet, PeriodicInstruction, Plan, Probe
from slipway.host.real import RealHost


class _Registry(BaseHTTPRequestHandler):
    """Asks who is there, as registries do."""

    def do_GET(self) -> None:
        self.send_response(401 if self.path == "/v2/" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Nobody reads it."""


@pytest.fixture
def web() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Registry) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def _facts(site: Site, key: str, value: object) -> dict[str, Any] | None:
    found = msgspec.json.decode((await site.data()).get(plans.HOST_FACTS) or b"{}")
    return found if found.get(key) == value else None


@pytest.mark.asyncio
async def test_a_host_says_what_it_runs_and_whether_it_is_clean(site: Site) -> None:
    host = site.machine.host
    host.write("/etc/os-release", b'ID=sle\nIMAGE="registry.example/os:v1.35.4"\n')
    host.write("/proc/sys/kernel/random/boot_id", b"0a1b\n")
    (site.root / "etc/systemd/system").mkdir(parents=True)
    (site.root / "etc/systemd/system/kubelet.service").symlink_to("/dev/null")
    async with site.agent():
        facts = await eventually(partial(_facts, site, "bootId", "0a1b"), "facts")
    assert facts["image"]["reference"] == "registry.example/os:v1.35.4"
    assert facts["clean"] is True
    assert facts["freeBytes"]["/"] > 0
    assert facts["observedAt"].endswith("Z")


@pytest.mark.asyncio
async def test_a_registry_is_tried_as_soon_as_it_is_named(site: Site, web: str) -> None:
    async with site.agent():
        await site.settled("applied")
        await site.edit({}, {names.REGISTRY_ADDRESS_ANNOTATION: web})
        expected = {"address": web, "reachable": True, "message": "it answers in plain HTTP only"}
        await eventually(partial(_facts, site, "registry", expected), "the registry")


def test_a_registry_that_is_not_there_is_told_with_its_address(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    reachable, message = hostfacts.reach(RealMachine(RealHost(str(tmp_path), {})), address)
    assert not reachable
    assert message == f"{address} does not answer: Connection refused"


def test_a_host_that_runs_containers_is_not_clean(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path), {})
    host.write("/etc/systemd/system/kubelet.service", b"")
    assert hostfacts.is_clean(host)
    host.make_dir("/run/containerd/io.containerd.runtime.v2.task/k8s.io/0123")
    assert not hostfacts.is_clean(host)


def test_a_host_whose_kubelet_would_start_is_not_clean(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path), {})
    host.write("/etc/systemd/system/kubelet.service", b"[Service]\n")
    host.write("/etc/systemd/system/multi-user.target.wants/kubelet.service", b"[Service]\n")
    assert not hostfacts.is_clean(host)


def test_a_kubelet_that_cannot_be_masked_is_held_back_by_being_wanted_by_nobody(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path), {})
    host.write("/etc/systemd/system/kubelet.service", b"[Service]\n")
    host.write("/etc/systemd/system/multi-user.target.wants/sshd.service", b"[Service]\n")
    assert hostfacts.is_clean(host)


def test_what_a_container_that_has_ended_left_behind_is_no_container(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path), {})
    host.write("/etc/systemd/system/kubelet.service", b"")
    host.write("/run/containerd/io.containerd.runtime.v2.task/k8s.io/0123/init.pid", b"4711")
    assert hostfacts.is_clean(host)
    host.make_dir("/proc/4711")
    assert not hostfacts.is_clean(host)


def test_containers_that_are_not_of_kubernetes_are_no_cluster(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path), {})
    host.write("/etc/systemd/system/kubelet.service", b"")
    host.make_dir("/run/containerd/io.containerd.runtime.v2.task/moby/0123")
    assert hostfacts.is_clean(host)


@pytest.mark.asyncio
async def test_the_outcome_of_a_plan_comes_with_facts_of_after_it(site: Site) -> None:
    host = site.machine.host
    host.write("/etc/systemd/system/kubelet.service", b"[Service]\n")
    host.write("/etc/systemd/system/multi-user.target.wants/kubelet.service", b"[Service]\n")
    async with site.agent():
        assert (await eventually(partial(_facts, site, "clean", False), "facts of before"))["plan"] == plans.checksum(plans.EMPTY)
        checksum = await site.give(Plan(instructions=(shell("mask", f": > {site.root}/etc/systemd/system/kubelet.service"),)))
        await site.settled("applied", checksum)
        facts = msgspec.json.decode((await site.data())[plans.HOST_FACTS])
    assert (facts["clean"], facts["plan"]) == (True, checksum)
    assert facts["freeBytes"]


def test_a_host_whose_tasks_are_no_folder_is_not_known_to_be_clean(tmp_path: Path) -> None:
    host = RealHost(str(tmp_path), {})
    host.write("/etc/systemd/system/kubelet.service", b"")
    host.write("/run/containerd/io.containerd.runtime.v2.task/k8s.io", b"")
    assert not hostfacts.is_clean(host)


@pytest.mark.parametrize("address", ["a..b", "[::1", "x" * 300, "a b", "host:port"])
def test_a_registry_whose_address_is_none_is_told(tmp_path: Path, address: str) -> None:
    reachable, message = hostfacts.reach(RealMachine(RealHost(str(tmp_path), {})), address)
    assert (reachable, address in message) == (False, True)


def test_little_free_bytes_alone_are_no_news_until_the_facts_are_old() -> None:
    before = msgspec.json.encode({"bootId": "a", "image": {}, "clean": True, "freeBytes": {"/": 1000}})
    facts: dict[str, Any] = {"bootId": "a", "image": {}, "clean": True, "freeBytes": {"/": 1001}}
    assert not hostfacts.is_news(before, facts, hostfacts.PERIOD)
    assert hostfacts.is_news(before, facts, hostfacts.RENEWAL)
    assert hostfacts.is_news(before, {**facts, "freeBytes": {"/": 800}}, 1.0)
    assert hostfacts.is_news(before, {**facts, "clean": False}, 1.0)


@pytest.mark.asyncio
async def test_periodic_instructions_run_once_the_plan_is_applied(site: Site) -> None:
    plan = Plan(periodic_instructions=(PeriodicInstruction("tick", "sh", ("-c", f"echo x >> {site.root}/ticks; echo said")),))
    await site.give(plan)

    async def kept() -> dict[str, periodic.Kept]:
        return periodic.read((await site.data()).get(plans.APPLIED_PERIODIC_OUTPUT, b""))

    async with site.agent():
        found = await eventually(kept, "a periodic instruction")
    async with site.agent():
        await eventually(lambda: site.said.count("the plan is applied") > 1)
    assert (found["tick"].exit_code, found["tick"].stdout) == (0, b"said\n")
    # The period is ten minutes, whoever asks.
    assert site.lines("ticks") == ["x"]


@pytest.mark.asyncio
async def test_probes_of_an_applied_plan_are_told(site: Site, web: str) -> None:
    gone = f"http://127.0.0.1:{free_port()}/"
    probes = {"up": Probe(HTTPGet(f"http://{web}/healthz")), "down": Probe(HTTPGet(gone), failure_threshold=1)}
    await site.give(Plan(instructions=(shell("x", "true"),), probes=probes))

    async def told() -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode((await site.data()).get(plans.PROBE_STATUSES) or b"{}")
        return found

    async with site.agent():
        found = await eventually(told, "probes")
    assert found == {"up": {"healthy": True, "successCount": 1}, "down": {"failureCount": 1}}
