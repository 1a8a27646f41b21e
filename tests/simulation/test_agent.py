"""The production agent on simulated hosts: registered, and given both plans of the provider; the power goes at every line."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from simulation.estate import FIRST, SECOND, Estate, condition

from slipway.api.cluster.kinds import MACHINE_INVENTORY
from slipway.api.elemental import plan as plans
from slipway.fleet.baremetal.plans import plan as provider
from slipway.simulation.boot import CLEARED, Life
from slipway.simulation.host.machine import Machine

pytestmark = pytest.mark.asyncio
# Each instruction is one shell, so that the power goes at the start of each; and in the middle of those that do several things.
REPROVISION = (*(f"sh:{number}" for number in range(1, 9)), "elemental", "cp", "mv:1", "mv:2", "sync:2", "systemctl", "systemd-run")
CLEAN = (*(f"sh:{number}" for number in range(1, 5)), "systemctl:2", "systemctl:4", "crictl:1", "crictl:2", "ctr:1")


@pytest_asyncio.fixture
async def estate() -> AsyncIterator[Estate]:
    async with Estate(controllers=("inventory",)) as made:
        yield made


def reprovision(estate: Estate, claim: str = "claim", version: str = SECOND) -> plans.Plan:
    image = f"{estate.world.registry.address}/os:{version}"
    user_data = b"#cloud-config\nwrite_files:\n- path: /etc/made-by\n  content: cloud-init\nruncmd:\n- echo once >> /var/lib/ran\n"
    return provider.reprovision(provider.Reprovision(claim, image, version, "node-a", user_data))


async def applied(estate: Estate, host: Life) -> None:
    async def probe() -> bool:
        return await estate.outcome(host) == "applied"

    await estate.until(probe, "the plan is applied")


async def booted(estate: Estate, host: Life, version: str) -> None:
    async def probe() -> bool:
        return host.machine.ready and host.machine.installed.kubernetes == version and host.machine.tree.exists("/var/lib/ran")

    await estate.until(probe, f"the host runs {version}")


def disk(machine: Machine, path: str) -> str:
    return machine.tree.file(path).content.decode()


async def test_hosts_register_by_themselves_and_are_ready_once_they_applied_the_empty_plan(estate: Estate) -> None:
    hosts = await estate.hosts(1, auth="tpm")
    assert {estate.name_of(host) for host in hosts} == {f"sim{number:08d}" for number in range(1)}
    found = await estate.client.get(MACHINE_INVENTORY, "sim00000000", "cpaas-system")
    (interface,) = found["spec"]["observedNetwork"]["interfaces"]
    assert (interface["name"], interface["addresses"]) == ("eth0", ["10.64.0.2/16"])


async def test_a_reprovision_plan_switches_the_image_clears_four_folders_and_runs_cloud_init_once(estate: Estate) -> None:
    (host,) = await estate.hosts(1)
    tree = host.machine.tree
    for folder in (*CLEARED, "/var/lib/data"):
        tree.make_dirs(folder)
        tree.write(f"{folder}/sentinel", b"x")
    await estate.give_plan(host, reprovision(estate), "reprovision")
    await applied(estate, host)
    await booted(estate, host, SECOND)
    assert [folder for folder in (*CLEARED, "/var/lib/data") if tree.exists(f"{folder}/sentinel")] == ["/var/lib/data"]
    assert (host.machine.hostname, disk(host.machine, "/etc/made-by"), disk(host.machine, "/var/lib/ran")) == (
        "node-a",
        "cloud-init",
        "once\n",
    )
    assert host.machine.boots == 2
    assert host.machine.fallback.kubernetes == FIRST


async def test_a_power_cut_anywhere_in_a_reprovision_ends_in_the_same_host(estate: Estate) -> None:
    """One host for each place, all at once."""
    hosts = dict(zip(REPROVISION, await estate.hosts(len(REPROVISION)), strict=True))
    await asyncio.gather(*(_cut(estate, host, program, reprovision(estate), "reprovision") for program, host in hosts.items()))
    for host in hosts.values():
        await booted(estate, host, SECOND)
    ran = {program: disk(host.machine, "/var/lib/ran") for program, host in hosts.items()}
    assert ran == dict.fromkeys(REPROVISION, "once\n")
    assert [program for program, host in hosts.items() if host.machine.is_masked("kubelet.service")] == []


async def test_a_power_cut_anywhere_in_a_clean_ends_in_a_host_that_does_not_come_back(estate: Estate) -> None:
    hosts = dict(zip(CLEAN, await estate.hosts(len(CLEAN)), strict=True))
    for host in hosts.values():
        _was_a_node(host)
    await asyncio.gather(*(_cut(estate, host, program, provider.clean("release"), "clean") for program, host in hosts.items()))
    for host in hosts.values():
        await host.power_cycle()

    async def up() -> bool:
        return all(host.machine.ready for host in hosts.values())

    await estate.until(up, "the hosts are up again")
    assert {program: host.machine.is_masked("kubelet.service") for program, host in hosts.items()} == dict.fromkeys(CLEAN, True)
    assert {program: host.machine.containers for program, host in hosts.items() if host.machine.containers} == {}


async def test_a_clean_that_scrubs_empties_the_folders_of_kubernetes_and_keeps_the_rest(estate: Estate) -> None:
    (host,) = await estate.hosts(1)
    tree = host.machine.tree
    for folder in (*CLEARED, "/var/lib/data"):
        tree.make_dirs(folder)
        tree.write(f"{folder}/sentinel", b"x")
    await estate.give_plan(host, provider.clean("release", scrub=True), "clean")
    await applied(estate, host)
    assert [folder for folder in (*CLEARED, "/var/lib/data") if tree.exists(f"{folder}/sentinel")] == ["/var/lib/data"]


async def _cut(estate: Estate, host: Life, program: str, plan: plans.Plan, kind: str) -> None:
    """Give a plan, cut the power where it starts a program, switch the host on again, and wait for the plan's end."""
    host.machine.faults.power_cut_at = program
    await estate.give_plan(host, plan, kind)

    async def off() -> bool:
        return not host.machine.powered

    await estate.until(off, f"the power goes at {program}")
    await host.power_on()
    await applied(estate, host)


async def test_a_host_without_its_registry_fails_with_elementals_code_and_stays_as_it_was(estate: Estate) -> None:
    (host,) = await estate.hosts(1)
    estate.world.registry.reachable = False
    await estate.give_plan(host, reprovision(estate), "reprovision", max_failures=1)

    async def failed() -> bool:
        return await estate.outcome(host) == "failed"

    await estate.until(failed, "the plan fails")
    state = plans.read((await estate.secret(host))["data"])
    assert "ended with 18" in str(state.output)
    assert (host.machine.staged, host.machine.boots) == (None, 1)


async def test_an_image_of_another_version_is_noticed_before_it_boots(estate: Estate) -> None:
    (host,) = await estate.hosts(1)
    estate.world.registry.push("os", SECOND, "v1.33.13")
    await estate.give_plan(host, reprovision(estate), "reprovision", max_failures=1)

    async def failed() -> bool:
        return await estate.outcome(host) == "failed"

    await estate.until(failed, "the plan fails")
    state = plans.read((await estate.secret(host))["data"])
    assert "is v1.33.13, and the Machine is to be v1.35.4" in str(state.output)
    assert host.machine.boots == 1


async def test_an_agent_that_is_killed_while_a_plan_runs_goes_on_with_it(estate: Estate) -> None:
    (host,) = await estate.hosts(1)
    await estate.give_plan(host, reprovision(estate), "reprovision")
    host.kill_agent()
    await applied(estate, host)
    await booted(estate, host, SECOND)
    assert disk(host.machine, "/var/lib/ran") == "once\n"


def _was_a_node(host: Life) -> None:
    """What a host has that is a control plane: its kubelet's files, static Pods and their containers."""
    machine = host.machine
    machine.tree.make_dirs("/var/lib/kubelet")
    machine.tree.make_dirs("/etc/kubernetes/manifests")
    manifest = (
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system}\nspec: {containers: [{name: etcd, image: etcd}]}\n"
    )
    machine.tree.write("/etc/kubernetes/manifests/etcd.yaml", manifest)
    machine.tree.write("/var/lib/kubelet/config.yaml", b"{}")
    machine.run_container("static/etcd", "etcd")
    machine.run_container("default/app", "app")


async def test_hosts_of_another_process_register_and_what_they_cost_is_told_apart(estate: Estate, tmp_path: Path) -> None:
    url = (await estate.registration())["status"]["registrationURL"]
    authority = tmp_path / "ca.crt"
    authority.write_text(await estate.registration_authority())
    words = ["--registration-url", url, "--registration-ca-cert", str(authority), "--hosts", "3", "--pace", "0"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "slipway.simulation",
        *words,
        "--image",
        f"registry.sim:5000/os:{FIRST}={FIRST}",
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        for number in range(3):
            await estate.when(MACHINE_INVENTORY, f"sim{number:08d}", lambda found: condition(found, "Ready").get("status") == "True")
    finally:
        process.terminate()
        said, _ = await process.communicate()
    assert b"seconds of processor" in said


async def test_hosts_by_the_dozen_are_registered_in_a_moment(estate: Estate) -> None:
    began = time.process_time()
    await estate.hosts(36)
    assert (time.process_time() - began) / 36 < 0.3, "seconds of processor for a host, of the manager and both its sides together"
