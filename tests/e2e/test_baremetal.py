"""A small bare-metal cluster on lab hosts: registered by themselves, made of pools, its nodes replaced for every reason that there is.

Clusters of the size that the guide for operators describes, and their upgrades, are in test_baremetal_upgrades.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e import baremetalmanifests as manifests
from e2e.apiprobe import ApiProbe
from e2e.arp import Owners
from e2e.baremetal import NAME, Baremetal, Shape, baremetal
from e2e.nodes import real_hosts
from e2e.planfaults import AFTER_THE_DECISION, CLEAN, REPROVISION, Fault, PlanFaults

pytestmark = real_hosts
OLD, NEW = "v1.34.10", "v1.35.4"
# Up to the instruction that puts the seed in its place, a host that loses its power comes back as what it was and runs its plan again; from
# there on as a node, and the next cut would be one in its join: so each has a worker of its own.
BEFORE_THE_DECISION = (*CLEAN, *(name for name in REPROVISION if name not in AFTER_THE_DECISION))
COLUMNS = {
    "bmm": ["NAME", "POOL", "PHASE", "INVENTORY", "READY", "AGE"],
    "mip": ["NAME", "CLUSTER", "TOTAL", "AVAILABLE", "ALLOCATED", "AGE"],
    "bmc": ["NAME", "ENDPOINT", "READY", "AGE"],
    "bmmt": ["NAME", "POOL", "AGE"],
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Baremetal]:
    """One control plane with a second host in its pool, one worker of an older version, and a host that is in no pool."""
    with baremetal(tmp_path_factory.mktemp("small"), "keel1", Shape(1, 1, 2, 1, 1), OLD, NEW) as fleet:
        fleet.add_to_catalog(NEW)
        fleet.make_cluster(NEW, OLD)
        fleet.wait_for_cluster(NEW, OLD)
        yield fleet


@pytest.mark.smoke
def test_hosts_that_registered_by_themselves_become_a_cluster_behind_its_virtual_address(small: Baremetal) -> None:
    assert small.unsettled(NEW, OLD) == []
    machines = small.in_use()
    assert len(set(machines.values())) == 2
    assert len(small.holders()) == 1
    inventory = small.items("machineinventories")[0]
    row = small.lab.hosts()[small.hosts[inventory["metadata"]["name"]]]
    assert inventory["metadata"]["labels"]["serial"] == row["serial"]
    assert any(row["address"] in "".join(each["addresses"]) for each in inventory["spec"]["observedNetwork"]["interfaces"])
    assert small.object("baremetalcluster", NAME)["spec"]["controlPlaneEndpoint"] == {"host": small.vip, "port": 6443}


@pytest.mark.smoke
@pytest.mark.parametrize("kind", sorted(COLUMNS))
def test_kubectl_shows_the_columns_that_operators_know(small: Baremetal, kind: str) -> None:
    assert small.columns(kind) == COLUMNS[kind]


@pytest.mark.smoke
def test_a_worker_is_replaced_on_the_only_host_that_its_pool_has(small: Baremetal) -> None:
    before = small.in_use()
    small.leave_sentinels()
    with ApiProbe(small.vip) as probe, Owners(small.bridge, small.vip) as owners:
        small.upgrade_workers(NEW)
        small.wait_for_cluster(NEW, NEW)
    # The control plane has nothing to do with it.
    assert (probe.asked > 50, owners.asked > 50, owners.doubled, len({heard.mac for heard in owners.heard})) == (True, True, [], 1)
    after = small.in_use()
    assert set(before.values()) == set(after.values())
    (replaced,) = before.keys() - after.keys()
    host = before[replaced]
    left = small.lab.on(host, "ls -d /var/lib/kubelet/sentinel /var/lib/containerd/sentinel /etc/kubernetes/sentinel", check=False)
    assert left == ""
    assert small.lab.on(host, "ls /srv/kept /etc/kept /var/lib/kept").split() == ["/etc/kept", "/srv/kept", "/var/lib/kept"]
    assert small.lab.hosts()[host]["version"] == NEW


def test_a_host_that_was_cleaned_and_lost_its_power_does_not_come_back(small: Baremetal) -> None:
    """Neither as a node, nor with the virtual address."""
    ((worker, host),) = small.workers().items()
    small.kubectl("scale", "machinedeployment", f"{NAME}-workers", "--replicas=0")
    small.plane.until("the worker's host is free", lambda: worker not in small.in_use(), 600)
    small.lab.run("host", "power-off", host)
    small.lab.run("host", "start", host)
    assert small.lab.on(host, "systemctl is-enabled kubelet", check=False).strip() == "masked"
    assert small.lab.on(host, "systemctl is-active kubelet", check=False).strip() == "inactive"
    assert small.lab.on(host, "ctr -n k8s.io tasks list -q").split() == []
    nodes = small.nodes()
    assert nodes is not None
    assert [node["metadata"]["name"] for node in nodes] == ["cp-1"]
    small.kubectl("scale", "machinedeployment", f"{NAME}-workers", "--replicas=1")
    small.wait_for_cluster(NEW, NEW)


@pytest.mark.parametrize(
    ("fault", "instructions"),
    [
        pytest.param("agent", (*CLEAN, *REPROVISION), id="agent-in-all-of-them"),
        pytest.param("power", BEFORE_THE_DECISION, id="power-up-to-the-seed"),
        *(pytest.param("power", (name,), id=f"power-in-{name}") for name in AFTER_THE_DECISION),
    ],
)
def test_a_worker_comes_back_once_whatever_its_host_loses_in_the_instructions_of_its_plans(
    small: Baremetal, fault: Fault, instructions: tuple[str, ...]
) -> None:
    version = small.worker_version()
    ((_, host),) = small.workers().items()
    faults = PlanFaults(small.lab.name, host)
    while True:
        made, boots, cuts = small.made_workers(), small.lab.hosts()[host]["boots"], faults.cuts
        ((before, _),) = small.workers().items()
        small.kubectl("delete", "machine", before, "--wait=false")
        struck = all(faults.strike(fault, instruction) for instruction in instructions)
        small.wait_until_gone([before])
        small.wait_for_cluster(NEW, version)
        if struck:
            break
    print("\n".join(f"{strike.fault} in {strike.instruction}, attempt {strike.attempt}" for strike in faults.strikes))
    assert [strike.instruction for strike in faults.strikes] == list(instructions)
    # The Machine that took the place of the first was not replaced in its turn, and its host joined once.
    assert len(small.made_workers() - made) == 1
    assert list(small.workers().values()) == [host]
    assert small.lab.on(host, "grep -c 'This node has joined the cluster' /var/log/cloud-init-output.log").strip() == "1"
    # The boot that the plan itself asks for is the last cut where that came after the seed.
    cut = faults.cuts - cuts
    assert small.lab.hosts()[host]["boots"] - boots in (max(cut, 1), cut + 1)


def test_workers_move_to_another_pool_by_a_new_template(small: Baremetal) -> None:
    version = small.worker_version()
    ((before, host),) = small.workers().items()
    (other,) = [name for name in small.hosts if all(name not in members for members in small.pools.values())]
    small.plane.apply(
        manifests.pool(NAME, f"{NAME}-worker-pool-2", {other: "moved-1"}),
        manifests.template(f"{NAME}-workers-2", f"{NAME}-worker-pool-2"),
    )
    small.move_workers(f"{NAME}-workers-2")
    small.wait_until_gone([before])
    small.wait_for_cluster(NEW, version)
    ((after, taken),) = small.workers().items()
    assert after != before
    assert taken == small.hosts[other] != host
    assert small.node(taken)["metadata"]["name"] == "moved-1"
    # The host that was left is clean, and in its pool.
    assert small.object("machineinventorypool", f"{NAME}-worker-pool")["status"]["available"] == 1
    assert small.lab.on(host, "systemctl is-enabled kubelet", check=False).strip() == "masked"


def test_a_new_bootstrap_template_replaces_the_workers(small: Baremetal) -> None:
    version = small.worker_version()
    before = small.workers()
    small.plane.apply(manifests.bootstrap_template(f"{NAME}-workers-2", "example.test/rack=8"))
    small.bootstrap_workers(f"{NAME}-workers-2")
    small.wait_until_gone(before)
    small.wait_for_cluster(NEW, version)
    ((after, host),) = small.workers().items()
    assert after not in before
    assert list(before.values()) == [host]
    assert small.node(host)["metadata"]["labels"]["example.test/rack"] == "8"
