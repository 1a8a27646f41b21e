"""docs/upgrades.md, word for word: every manifest is taken by an API server that asks the manager, and so is every command, in their order.

kubectl is read as far as the page uses it, so that this needs no kubectl: ``get`` and ``patch``, of resources as discovery names them.
"""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio
import yaml
from fleet.privileges import Alone
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    NAMESPACE,
    SECRET,
    Kind,
    named,
)
from slipway.api.elemental import plan as plans
from slipway.cli.argv.parser import Invocation, check_arguments, find, parse
from slipway.cli.trees.root import build
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import registry
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import ApiError
from slipway.runtime.apply import install

pytestmark = pytest.mark.asyncio(loop_scope="module")

Manifest = dict[str, Any]
PAGE = (Path(__file__).parents[2] / "docs/upgrades.md").read_text()
SPACE = "cpaas-system"
HOSTS = [f"sn-000{number}" for number in range(1, 8)]
PATCHES = {"json": PatchType.JSON, "merge": PatchType.MERGE}


class Block(NamedTuple):
    """A piece of the page: ``yaml`` or ``bash``, and the section that has it."""

    section: str
    language: str
    text: str


def blocks() -> list[Block]:
    found, section = [], ""
    for heading, language, text in re.findall(r"^## ([^\n]*)$|^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        section = heading or section
        if language:
            found.append(Block(section, language, text))
    return found


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in text.replace("\\\n", " ").splitlines() if line.strip()]


class Guide:
    """A management cluster that somebody works on by the page."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self._resources: dict[str, Kind] = {}

    async def learn(self) -> None:
        """What there is, by every name that kubectl takes, in the version that a server prefers."""
        served = msgspec.json.decode(await self.client.raw("/apis"))["groups"]
        groups = [("", "v1"), *((group["name"], group["preferredVersion"]["version"]) for group in served)]
        for group, version in groups:
            place = f"/apis/{group}/{version}" if group else f"/api/{version}"
            for found in msgspec.json.decode(await self.client.raw(place))["resources"]:
                if "/" in found["name"]:
                    continue
                kind = Kind(group, version, found["kind"], found["name"], namespaced=found["namespaced"])
                for name in (found["name"], found.get("singularName") or found["kind"].lower(), *(found.get("shortNames") or ())):
                    self._resources.setdefault(name, kind)
                    self._resources[f"{name}.{group}"] = kind

    async def follow(self, *sections: str) -> None:
        """Do what some sections say."""
        for block in blocks():
            if not block.section.startswith(sections):
                continue
            if block.language == "yaml":
                for manifest in yaml.safe_load_all(block.text):
                    await self.client.create(named(manifest["apiVersion"], manifest["kind"]), manifest)
                await eventually(self._counted, "the pools have counted their hosts")
            else:
                for words in commands(block.text):
                    await self.command(words)

    async def _counted(self) -> bool:
        pools = [each.get("status") or {} for each in await self.client.list(MACHINE_INVENTORY_POOL, SPACE)]
        return all(pool.get("total") and not pool.get("unavailable") for pool in pools)

    async def command(self, words: list[str]) -> None:
        if words[0] == "slipway":
            _parses(words[1:])
            return
        # Without a namespace it is the workload cluster's.
        if words[:3] != ["kubectl", "-n", SPACE]:
            assert words == ["kubectl", "get", "nodes", "-o", "wide"]
            return
        flags = dict(re.findall(r"^--?([a-z]+)=(.*)$", "\n".join(words), re.MULTILINE))
        verb, resource, *rest = words[3:]
        kind, name = self._resources[resource], next(iter(rest), "-")
        name = "" if name.startswith("-") else name
        if verb == "patch":
            await self.client.patch(kind, name, SPACE, msgspec.json.decode(flags["p"]), type=PATCHES[flags["type"]])
        elif name:
            await self.client.get(kind, name, SPACE)
        else:
            labels = rest[rest.index("-l") + 1] if "-l" in rest else ""
            await self.client.list(kind, SPACE, labels=labels)


async def _register(client: AsyncClient, name: str) -> None:
    """A host that is there, and whose agent has applied the empty plan."""
    await client.create(MACHINE_INVENTORY, {"metadata": {"name": name, "namespace": SPACE}, "spec": {"tpmHash": name}})

    async def given() -> bool:
        return await client.find(SECRET, name, SPACE) is not None

    await eventually(given, f"{name} has its plan Secret")
    applied = {plans.APPLIED_CHECKSUM: b64encode(plans.checksum(plans.EMPTY).encode()).decode()}
    await client.patch(SECRET, name, SPACE, {"data": applied}, type=PatchType.MERGE)


def _parses(argv: list[str]) -> None:
    command, rest = find(build("slipway"), argv)
    invocation = Invocation("slipway", command)
    parse(invocation, rest)
    check_arguments(invocation)
    assert command.run


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guide() -> AsyncIterator[Guide]:
    """Everything of the manager is there: its kinds in both versions, its webhooks, its controllers; and what the page makes first."""
    alone = Alone(registry.chosen(("all",)), free_port())
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        await install(client, alone.manifests(), lambda line: None)
        await client.create(NAMESPACE, {"metadata": {"name": SPACE}})
        async with alone.running(server.connection(alone.user, ())):
            for name in HOSTS:
                await _register(client, name)
            made = Guide(client)
            await made.learn()
            await made.follow("1.", "2.", "3.")
            yield made


async def test_a_rollout_that_cannot_end_is_refused_as_the_page_says(guide: Guide) -> None:
    async def refused(kind: Kind, name: str, spec: Manifest) -> str:
        with pytest.raises(ApiError) as answer:
            await guide.client.patch(kind, name, SPACE, {"spec": spec}, type=PatchType.MERGE)
        return str(answer.value)

    surge, elsewhere = {"strategy": {"rollingUpdate": {"maxSurge": 1}}}, {"template": {"spec": {"infrastructureRef": {"name": "nowhere"}}}}
    assert 'has no key "v1.34.99"' in await refused(KUBEADM_CONTROL_PLANE, "prod-control-plane", {"version": "v1.34.99"})
    assert "v1.36.3" in await refused(KUBEADM_CONTROL_PLANE, "prod-control-plane", {"version": "v1.36.3"})
    assert "maxSurge" in await refused(KUBEADM_CONTROL_PLANE, "prod-control-plane", {"rollout": surge})
    assert "maxUnavailable" in await refused(MACHINE_DEPLOYMENT, "prod-workers", {"rollout": surge})
    assert "nowhere" in await refused(MACHINE_DEPLOYMENT, "prod-workers", elsewhere)


async def test_the_page_can_be_followed_to_its_end(guide: Guide) -> None:
    await guide.follow("4.", "5.", "6.", "7.", "Another pool")
    plane = await guide.client.get(KUBEADM_CONTROL_PLANE, "prod-control-plane", SPACE)
    configuration = plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]
    assert (plane["spec"]["version"], configuration["dns"]["imageTag"], configuration["etcd"]["local"]["imageTag"]) == (
        "v1.35.4",
        "v1.13.1",
        "3.6.6-0",
    )
    assert plane["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxSurge"] == 0
    workers = (await guide.client.get(MACHINE_DEPLOYMENT, "prod-workers", SPACE))["spec"]["template"]["spec"]
    assert workers["version"] == "v1.35.4"
    assert (workers["infrastructureRef"]["name"], workers["bootstrap"]["configRef"]["name"]) == ("prod-workers-2", "prod-workers-2")
    catalog = await guide.client.get(CONFIG_MAP, "elemental-image-catalog", SPACE)
    assert catalog["data"].keys() == {"v1.34.10", "v1.35.4"}
    pools = await guide.client.list(MACHINE_INVENTORY_POOL, SPACE)
    assert {entry["name"] for pool in pools for entry in pool["spec"]["machineInventories"]} == set(HOSTS)


async def test_every_section_with_something_to_do_is_followed() -> None:
    assert {block.section.split()[0] for block in blocks()} == {"1.", "2.", "3.", "4.", "5.", "6.", "7.", "Another"}
