"""What users get wrong, under a manager that runs: each is refused or told in a sentence where it is wrong, and holds up nothing else."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from fleet import infrastructure, test_lives
from fleet.infrastructure import TEST_CLUSTER, TEST_CONFIG, TEST_CONFIG_TEMPLATE, TEST_MACHINE, TEST_MACHINE_TEMPLATE
from fleet.lives import Life, life
from fleet.world import kubeconfig
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    NAMESPACE,
    SECRET,
    Kind,
)
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import PatchType
from slipway.kube.errors import ApiError

pytestmark = pytest.mark.asyncio(loop_scope="module")
Manifest = dict[str, Any]
_NUMBERS = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane() -> AsyncIterator[Life]:
    """A management cluster with all controllers and webhooks, and the simulated infrastructure: the same for all tests."""
    port = free_port()
    async with AsyncExitStack() as stack:
        connection, authority = await stack.enter_async_context(test_lives.embedded())
        await test_lives.prepare(connection, port)
        await stack.enter_async_context(test_lives.running(connection, port))
        one = await stack.enter_async_context(life(connection, authority))
        await test_lives.webhooks_are_asked(one)
        yield one


class Place:
    """A namespace with a cluster of machines, which is as it should be but for what a test gets wrong."""

    def __init__(self, plane: Life, namespace: str) -> None:
        self.client, self.connection, self.namespace = plane.client, plane.connection, namespace

    def metadata(self, name: str, cluster: str) -> Manifest:
        return {"name": name, "namespace": self.namespace, "labels": {"cluster.x-k8s.io/cluster-name": cluster}}

    async def cluster(self, name: str, *, access: bytes | None = None) -> None:
        """``access`` is the kubeconfig."""
        endpoint = {"host": "127.0.0.1", "port": int(self.connection.server.rpartition(":")[2])}
        await self.client.create(TEST_CLUSTER, {"metadata": self.metadata(name, name), "spec": {"controlPlaneEndpoint": endpoint}})
        value = b64encode(kubeconfig(self.connection).encode() if access is None else access).decode()
        secret = {"metadata": self.metadata(f"{name}-kubeconfig", name), "type": "cluster.x-k8s.io/secret", "data": {"value": value}}
        await self.client.create(SECRET, secret)
        spec = {"infrastructureRef": infrastructure.reference(TEST_CLUSTER, name)}
        await self.client.create(CLUSTER, {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec})
        for kind in (TEST_CONFIG_TEMPLATE, TEST_MACHINE_TEMPLATE):
            await self.client.create(kind, infrastructure.template(kind, name, self.namespace))
        await self._control_plane(name)

    async def _control_plane(self, cluster: str) -> None:
        """One Machine that somebody made by hand."""
        # Nodes are not in namespaces.
        name = f"{cluster}-{self.namespace}"
        for kind in (TEST_CONFIG, TEST_MACHINE):
            await self.client.create(kind, {"metadata": self.metadata(name, cluster), "spec": {}})
        metadata = self.metadata(name, cluster)
        metadata["labels"]["cluster.x-k8s.io/control-plane"] = ""
        spec = {
            "clusterName": cluster,
            "version": "v1.35.4",
            "bootstrap": {"configRef": infrastructure.reference(TEST_CONFIG, name)},
            "infrastructureRef": infrastructure.reference(TEST_MACHINE, name),
        }
        await self.client.create(MACHINE, {"metadata": metadata, "spec": spec})

    async def workers(self, cluster: str, **changes: Any) -> Manifest:
        return await self.client.create(MACHINE_DEPLOYMENT, self.deployment(cluster, **changes))

    def deployment(self, cluster: str, **changes: Any) -> Manifest:
        machine = {
            "clusterName": cluster,
            "version": "v1.35.4",
            "bootstrap": {"configRef": infrastructure.reference(TEST_CONFIG_TEMPLATE, cluster)},
            "infrastructureRef": infrastructure.reference(TEST_MACHINE_TEMPLATE, cluster),
            **changes.pop("machine", {}),
        }
        labels = {"cluster.x-k8s.io/cluster-name": cluster, "of": cluster}
        spec = {
            "clusterName": cluster,
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": machine},
            **changes,
        }
        return {"metadata": self.metadata(f"{cluster}-md", cluster), "spec": spec}

    async def conditions(self, kind: Kind, name: str) -> dict[str, Manifest]:
        found = await self.client.get(kind, name, self.namespace)
        return {each["type"]: each for each in (found.get("status") or {}).get("conditions") or ()}

    async def says(self, kind: Kind, name: str, condition: str, sentence: str) -> str:
        """What a condition says, once that has a sentence in it."""
        said = ""

        async def told() -> bool:
            nonlocal said
            said = (await self.conditions(kind, name)).get(condition, {}).get("message", "")
            return sentence in said

        try:
            await eventually(told, f"the {condition} of the {kind.kind} says so", 10)
        except AssertionError as error:
            raise AssertionError(f"{error}, but: {said}") from None
        return said

    async def goes_on(self, name: str = "good") -> None:
        """Another cluster's machine comes up, whatever is wrong beside it."""
        await self.cluster(name)
        await self.workers(name)

        async def running() -> bool:
            machines = await self.client.list(MACHINE, self.namespace, labels=f"cluster.x-k8s.io/cluster-name={name}")
            return [(each.get("status") or {}).get("phase") for each in machines] == ["Running", "Running"]

        await eventually(running, "the machine of the other cluster runs", 20)


@pytest_asyncio.fixture(loop_scope="module")
async def place(plane: Life, request: pytest.FixtureRequest) -> Place:
    name = f"place-{next(_NUMBERS)}"
    await plane.client.create(NAMESPACE, {"metadata": {"name": name}})
    return Place(plane, name)


def _of(kind: str, group: str) -> Manifest:
    return {"apiGroup": group, "kind": kind, "name": "bad"}


async def test_a_template_that_does_not_exist(place: Place) -> None:
    await place.cluster("bad")
    await place.workers("bad", machine={"infrastructureRef": infrastructure.reference(TEST_MACHINE_TEMPLATE, "missing")})
    await place.goes_on()
    await place.says(
        MACHINE_DEPLOYMENT, "bad-md", "ScalingUp", "Scaling up from 0 to 1 replicas is blocked because TestMachineTemplate does not exist"
    )


@pytest.mark.parametrize(
    ("machine", "crd"),
    [
        pytest.param(
            {"bootstrap": {"configRef": _of("NoSuchConfigTemplate", TEST_CONFIG_TEMPLATE.group)}},
            f"nosuchconfigtemplates.{TEST_CONFIG_TEMPLATE.group}",
            id="bootstrap",
        ),
        pytest.param(
            {"infrastructureRef": _of("NoSuchMachineTemplate", infrastructure.GROUP)},
            f"nosuchmachinetemplates.{infrastructure.GROUP}",
            id="infrastructure",
        ),
    ],
)
async def test_a_kind_that_no_provider_has_brought(place: Place, machine: Manifest, crd: str) -> None:
    await place.cluster("bad")
    await place.workers("bad", machine=machine)
    await place.goes_on()
    said = await place.says(MACHINE_DEPLOYMENT, "bad-md", "ScalingUp", f"is blocked because there is no CustomResourceDefinition {crd} for")
    assert said.endswith("that is referred to: install the provider that brings it, or mend the reference")


async def test_a_kind_that_does_not_say_which_contract_it_keeps(place: Place) -> None:
    kind = TEST_MACHINE_TEMPLATE._replace(kind="UnlabelledMachineTemplate", plural="unlabelledmachinetemplates")
    crd = infrastructure.crd(kind)
    del crd["metadata"]["labels"]
    await place.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    await place.cluster("bad")
    await place.workers("bad", machine={"infrastructureRef": _of(kind.kind, kind.group)})
    await place.goes_on()
    await place.says(
        MACHINE_DEPLOYMENT,
        "bad-md",
        "ScalingUp",
        f"the CustomResourceDefinition {kind.plural}.{kind.group} says by no label which of its versions fulfil the contract",
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param({"replicas": -1}, "spec.replicas: Invalid value: -1: must be from 0 to 100000", id="negative"),
        pytest.param({"replicas": 2_000_000_000}, "spec.replicas: Invalid value: 2000000000: must be from 0 to 100000", id="huge"),
        pytest.param(
            {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}},
            'spec.rollout.strategy.rollingUpdate: Invalid value: "0": maxUnavailable and maxSurge cannot both be 0',
            id="a rollout that cannot move",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"nobody": "has"}}},
            'spec.template.metadata.labels: Forbidden: must match spec.selector "cluster.x-k8s.io/cluster-name=bad,nobody=has"',
            id="a selector that matches nothing",
        ),
    ],
)
async def test_a_machine_deployment_that_is_refused(place: Place, changes: Manifest, sentence: str) -> None:
    await place.cluster("bad")
    with pytest.raises(ApiError) as refusal:
        await place.workers("bad", **changes)
    assert sentence in refusal.value.message
    await place.goes_on()


async def test_a_scale_that_cannot_be_meant(place: Place) -> None:
    """Who judges MachineDeployments is not asked about their scale."""
    await place.cluster("bad")
    await place.workers("bad")
    scale = {"spec": {"replicas": 2_000_000_000}}
    await place.client.patch(MACHINE_DEPLOYMENT, "bad-md", place.namespace, scale, type=PatchType.MERGE, subresource="scale")
    await place.goes_on()
    await place.says(MACHINE_DEPLOYMENT, "bad-md", "ScalingUp", "the MachineDeployment has 2000000000 replicas: it must have 0 or more")


@pytest.mark.parametrize(
    ("replicas", "sentence"),
    [
        (2, "spec.replicas: Forbidden: cannot be an even number when etcd is stacked"),
        (-1, "spec.replicas: Forbidden: cannot be less than or equal to 0"),
        (2_000_000_001, "spec.replicas: Invalid value: 2000000001: a control plane has 99 replicas at most"),
    ],
)
async def test_a_control_plane_of_replicas_that_cannot_be(place: Place, replicas: int, sentence: str) -> None:
    await place.client.create(TEST_MACHINE_TEMPLATE, infrastructure.template(TEST_MACHINE_TEMPLATE, "bad", place.namespace))
    template = {"spec": {"infrastructureRef": infrastructure.reference(TEST_MACHINE_TEMPLATE, "bad")}}
    spec = {"replicas": replicas, "version": "v1.35.4", "machineTemplate": template, "kubeadmConfigSpec": {"verbosity": 1}}
    with pytest.raises(ApiError) as refusal:
        await place.client.create(KUBEADM_CONTROL_PLANE, {"metadata": place.metadata("bad", "bad"), "spec": spec})
    assert sentence in refusal.value.message
    await place.goes_on()


async def test_a_health_check_whose_selector_matches_nothing(place: Place) -> None:
    await place.cluster("bad")
    await place.workers("bad")
    spec = {
        "clusterName": "bad",
        "selector": {"matchLabels": {"nobody": "has"}},
        "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]},
    }
    await place.client.create(MACHINE_HEALTH_CHECK, {"metadata": place.metadata("bad", "bad"), "spec": spec})
    await place.goes_on()
    await place.says(MACHINE_HEALTH_CHECK, "bad", "RemediationAllowed", "The selector matches no Machine of the Cluster bad")


async def test_a_kubeconfig_that_is_garbage(place: Place) -> None:
    await place.cluster("bad", access=b"clusters: [")
    await place.workers("bad")
    await place.goes_on()
    where = f"the kubeconfig of Secret {place.namespace}/bad-kubeconfig"
    said = await place.says(CLUSTER, "bad", "RemoteConnectionProbe", f"Remote connection not established yet: {where} cannot be read: ")
    assert "this is not valid YAML" in said


async def test_an_api_server_with_the_certificate_of_another_cluster(place: Place) -> None:
    async with EmbeddedServer() as other:
        wrong = msgspec.structs.replace(other.connection(), server=place.connection.server)
        await place.cluster("bad", access=kubeconfig(wrong).encode())
        await place.workers("bad")
        await place.goes_on()
        sentence = f"{place.connection.server} cannot be trusted: its certificate is not signed by the CA of the cluster"
        await place.says(CLUSTER, "bad", "RemoteConnectionProbe", sentence)
