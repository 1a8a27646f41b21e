"""Which object is meant, in the forms that people type for kubectl."""

from __future__ import annotations

import pytest
from fleet.overview.chains import NAME, PLANE, SPACE, WORKERS, ref, well

from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.fleet.overview.objects import Objects
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.references import resolve


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([NAME], ref("Cluster", NAME)),
        ([f"cluster/{NAME}"], ref("Cluster", NAME)),
        (["clusters", NAME], ref("Cluster", NAME)),
        ([f"kcp/{PLANE}"], ref("KubeadmControlPlane", PLANE)),
        (["kubeadmcontrolplane.controlplane.cluster.x-k8s.io", PLANE], ref("KubeadmControlPlane", PLANE)),
        ([f"md/{WORKERS}"], ref("MachineDeployment", WORKERS)),
        ([f"Machine/{WORKERS}-d"], ref("Machine", f"{WORKERS}-d")),
        ([f"bmm/{WORKERS}-d"], ref("BaremetalMachine", f"{WORKERS}-d")),
        (["host/host-d"], ref("MachineInventory", "host-d")),
        (["host-d"], ref("MachineInventory", "host-d")),
        (["pool", "pool"], ref("MachineInventoryPool", "pool")),
        ([f"bmc/{NAME}"], ref("BaremetalCluster", NAME)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_kind_and_a_name_are_found(words: list[str], meant: Ref) -> None:
    assert resolve(well(), words, SPACE) == resolve(well(), words) == meant


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["node/a"], UsageError, '"node" is not a kind that can be explained: use baremetalcluster'),
        (["machine/"], UsageError, "the name is missing: write machine/NAME"),
        (["machine/a", "b"], UsageError, "one object can be explained at a time"),
        (["machine/a"], OperatorError, f"there is no Machine a: there are {PLANE}-a, "),
        (["a"], OperatorError, f"there is nothing called a: write KIND/NAME or the name of a Cluster; there is {NAME}"),
        (["machine"], OperatorError, f"the name is missing: write machine/NAME; there are {PLANE}-a, "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_found_says_what_would_be_right(words: list[str], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        resolve(well(), words)
    assert said in str(caught.value)


def test_a_machine_is_meant_before_the_host_s_part_of_it() -> None:
    assert resolve(well(), [f"{WORKERS}-d"]).kind == "Machine"


def test_what_only_a_kind_tells_apart_wants_the_kind() -> None:
    same = [{"metadata": {"name": "a", "namespace": "x"}}]
    with pytest.raises(OperatorError, match="say which one, such as machineinventorypool/a"):
        resolve(Objects(pools=same, inventories=same), ["a"])


def test_a_kind_that_may_not_be_seen_says_so() -> None:
    with pytest.raises(OperatorError, match="you may not list clusters"):
        resolve(Objects(missing={"Cluster": "you may not list clusters"}), ["prod"])
    with pytest.raises(OperatorError, match="you may not list machines"):
        resolve(Objects(missing={"Machine": "you may not list machines"}), ["machine/a"])


def test_one_name_in_two_namespaces_wants_the_namespace() -> None:
    found = [{"metadata": {"name": "a", "namespace": each}} for each in ("x", "y")]
    with pytest.raises(OperatorError, match="name its namespace with --namespace"):
        resolve(Objects(clusters=found), ["a"])
    assert resolve(Objects(clusters=found), ["a"], "y") == Ref("Cluster", "y", "a")
