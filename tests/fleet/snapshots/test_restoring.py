"""What an operator asks for when every control plane is lost, what is refused, and how the snapshot gets to a host."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleet.controlplane.estate import PLACE, estate
from fleet.snapshots.databases import database

from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import restoring, serving
from slipway.fleet.snapshots.hostscript import Download
from slipway.fleet.snapshots.record import Snapshot
from slipway.fleet.snapshots.request import Restore, restore_from
from slipway.fleet.snapshots.restoring import Wanted

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(namespace="n", cluster="c", taken=NOW, revision=7, size=544, sha256="ab" * 32, kubernetes_version="v1.34.10")
ASKED = Restore("s", "c-restore", NOW)


def plane(version: str = "v1.34.10", annotations: dict[str, str] | None = None, etcd: dict[str, Any] | None = None) -> dict[str, Any]:
    spec = {"version": version, "kubeadmConfigSpec": {"clusterConfiguration": {"etcd": etcd or {}}}}
    return {"metadata": {"name": "cp", "annotations": annotations or {}}, "spec": spec}


def machine(name: str, seconds: float, phase: str = "Running") -> dict[str, Any]:
    made = (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"metadata": {"name": name, "creationTimestamp": made}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("found", "answers", "said"),
    [
        pytest.param(plane(), False, "", id="nothing is against it"),
        pytest.param(plane("v1.35.4"), False, "", id="in the middle of an upgrade"),
        pytest.param(plane(), True, "its API server answers: .* say --force", id="it is not lost"),
        pytest.param(plane("v1.36.3"), False, "set its spec.version to v1.34.10 first", id="too new for the data"),
        pytest.param(plane("v1.33.13"), False, "set its spec.version to v1.34.10 first", id="too old for the data"),
        pytest.param(plane(annotations={"slipway.io/restore": ASKED.text()}), False, "a restore is on its way", id="twice"),
        pytest.param(plane(etcd={"external": {"endpoints": ["x"]}}), False, "etcd is external", id="another's etcd"),
    ],
)
def test_what_is_refused(found: dict[str, Any], answers: bool, said: str) -> None:
    import re

    why = restoring.refusal(Wanted("n", "c", found, ()), SNAPSHOT, answers=answers)
    assert re.search(said, why) if said else why == ""


@pytest.mark.parametrize(
    ("machines", "asked", "stage"),
    [
        ([machine("old", -60)], True, "giving-up"),
        ([machine("old", -60), machine("new", 9)], True, "giving-up"),
        ([], True, "starting"),
        ([machine("new", 9, "Provisioning")], True, "restoring"),
        ([machine("new", 9)], False, "done"),
    ],
)
def test_how_far_it_is(machines: list[dict[str, Any]], asked: bool, stage: str) -> None:
    found = plane(annotations={"slipway.io/restore": ASKED.text()} if asked else {})
    assert restoring.standing(found, machines, ASKED).stage == stage


@pytest.mark.asyncio
async def test_a_restore_is_a_secret_for_a_host_and_an_annotation_for_the_controller() -> None:
    async with estate() as world:
        await world.make(replicas=1)
        await world.rest()
        wanted = await restoring.look(world.client, PLACE, "c")
        assert [each["metadata"]["name"] for each in wanted.machines] == await world.names()
        download = Download("https://10.0.0.1:8765/token", "ab" * 32, b"CERTIFICATE")
        asked = await restoring.ask(world.client, wanted, SNAPSHOT.name, download, hosts_lost=True)
        secret = await world.client.get(SECRET, asked.secret, PLACE)
        # Machines are older or newer by the API server's clock, not by the operator's.
        assert asked.asked == datetime.fromisoformat(secret["metadata"]["creationTimestamp"])
        script = base64.b64decode(secret["data"]["script"]).decode()
        assert "url=https://10.0.0.1:8765/token\n" in script
        assert "\nCERTIFICATE\n" in script
        assert [owner["kind"] for owner in secret["metadata"]["ownerReferences"]] == ["KubeadmControlPlane"]
        found = await world.client.get(KUBEADM_CONTROL_PLANE, "cp", PLACE)
        assert restore_from(found["metadata"]["annotations"]) == asked
        # An operator who looked before the other one asked.
        with pytest.raises(OperatorError, match="a restore is on its way"):
            await restoring.ask(world.client, wanted, SNAPSHOT.name, download, hosts_lost=False)
        assert [each["metadata"]["name"] for each in await world.client.list(SECRET, PLACE) if each["type"] == "slipway.io/restore"] == [
            asked.secret
        ]
        assert restore_from((await world.client.get(KUBEADM_CONTROL_PLANE, "cp", PLACE))["metadata"]["annotations"]) == asked
        await world.client.delete(SECRET, "c-etcd", PLACE)
        with pytest.raises(OperatorError, match="the Secrets c-etcd are not there"):
            await restoring.look(world.client, PLACE, "c")


def test_a_host_fetches_the_snapshot_with_the_authority_it_was_given_and_nobody_without_the_path(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.db"
    file.write_bytes(database())
    seen: list[str] = []

    async def work() -> list[subprocess.CompletedProcess[bytes]]:
        async with serving.served(file, "ab" * 32, "127.0.0.1", 0, seen.append) as download:
            (tmp_path / "ca.crt").write_bytes(download.ca)
            trusted = ("--cacert", str(tmp_path / "ca.crt"))
            asked = [(*trusted, download.url), (download.url,), (*trusted, download.url.rpartition("/")[0] + "/")]
            return [await asyncio.to_thread(subprocess.run, ["curl", "-fsS", *words], capture_output=True) for words in asked]

    fetched, untrusting, guessing = asyncio.run(work())
    assert fetched.stdout == database()
    assert (untrusting.returncode, b"SSL certificate" in untrusting.stderr) == (60, True)
    assert (guessing.returncode, b"404" in guessing.stderr) == (22, True)
    assert seen == ["127.0.0.1"]


@pytest.mark.parametrize("text", [":8765", "host", "0"])
def test_an_address_to_serve_at_is_one_that_hosts_can_call(text: str) -> None:
    with pytest.raises(OperatorError, match="--serve"):
        serving.address(text)


def test_a_snapshot_of_unknown_version_is_taken_as_it_is() -> None:
    assert restoring.refusal(Wanted("n", "c", plane(), ()), msgspec.structs.replace(SNAPSHOT, kubernetes_version=""), answers=False) == ""
