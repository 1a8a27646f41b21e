"""How long every node of a rollout was out, from the begin of its drain until its successor was Ready, and what each step took.

Somebody looks at the management cluster twice a second while the rollout runs, and writes down when a thing was first so; what only hosts
and Nodes know is asked when it is over.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from datetime import datetime
from typing import Any, NamedTuple, Self

from e2e import planes
from e2e.baremetal import PLAN_TYPE, Baremetal, condition
from e2e.baremetalmanifests import NAMESPACE

from slipway.kube.client import Client
from slipway.kube.errors import ApiError, UnreachableError

Manifest = dict[str, Any]
_PERIOD = 0.5
_OWNER = "slipway.io/plan-owner"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
_UPGRADE = 2
"""The instruction of a reprovision that pulls the image."""
STEPS = ("drain", "hooks", "clean", "claim", "plan", "pull", "apply", "reboot", "join", "ready")


class Replacement(NamedTuple):
    """A node that went, the one that came in its place, and the seconds of each step between them."""

    old: str
    new: str
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class Replacements:
    """Watches while the block runs; ``rows`` is for when the new nodes are there."""

    def __init__(self, fleet: Baremetal) -> None:
        self._fleet = fleet
        self._client = Client(planes.connection_of(fleet.plane.kubeconfig))
        self._seen: dict[str, dict[str, float]] = {}
        """When each thing was first so, by the BaremetalMachine that it is of."""
        self._control_planes: set[str] = set()
        self._hosts: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._look(time.time())
        # Those that were there before are not new.
        for moments in self._seen.values():
            moments.pop("claimed", None)
            moments["before"] = 0.0
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def rows(self) -> list[Replacement]:
        """The k-th that went is replaced by the k-th that came, of the control plane and of the workers."""
        nodes = {node["spec"].get("providerID", ""): node for node in self._fleet.nodes() or ()}
        found = []
        for is_control_plane in (True, False):
            group = {name: moments for name, moments in self._seen.items() if (name in self._control_planes) == is_control_plane}
            old = sorted((name for name, moments in group.items() if "drain" in moments), key=lambda name: group[name]["drain"])
            new = sorted(
                (name for name, moments in group.items() if "before" not in moments and "claimed" in moments),
                key=lambda name: group[name]["claimed"],
            )
            for before, after in zip(old, new, strict=False):
                inventory = self._hosts[after]
                moments = {**group[after], **self._on_host(inventory, nodes[f"baremetal:///{inventory}"])}
                found.append(Replacement(self._node(before), self._node(after), _steps(group[before], moments)))
        return found

    def _node(self, machine: str) -> str:
        return self._fleet.hosts[self._hosts[machine]]

    def _on_host(self, inventory: str, node: Manifest) -> dict[str, float]:
        ready = next(row for row in node["status"]["conditions"] if row["type"] == "Ready")
        return {
            "booted": float(self._fleet.lab.on(self._fleet.hosts[inventory], "stat -c %Y /proc/1")),
            "joined": _moment(node["metadata"]["creationTimestamp"]),
            "ready": _moment(ready["lastTransitionTime"]),
        }

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            try:
                self._look(time.time())
            except (ApiError, UnreachableError):
                # A manager that converts the objects may be just starting; the next look says the same.
                continue

    def _look(self, now: float) -> None:
        machines = self._client.list("cluster.x-k8s.io/v1beta2", "Machine", NAMESPACE)
        bare = self._client.list("infrastructure.cluster.x-k8s.io/v1beta1", "BaremetalMachine", NAMESPACE)
        secrets = self._client.list("v1", "Secret", NAMESPACE, labels={"elemental.cattle.io/managed": "true"})
        owned = {each["metadata"]["name"]: each for each in bare}
        for machine in machines:
            name = machine["spec"]["infrastructureRef"]["name"]
            if _CONTROL_PLANE in machine["metadata"].get("labels", {}):
                self._control_planes.add(name)
            deletion = machine.get("status", {}).get("deletion") or {}
            self._note(name, now, drain="nodeDrainStartTime" in deletion, drained="waitForNodeVolumeDetachStartTime" in deletion)
        for name, each in owned.items():
            if inventory := (each.get("status", {}).get("machineInventoryRef") or {}).get("name"):
                self._hosts[name] = inventory
            claimed = condition(each, "InventoryAllocated") == "True"
            self._note(name, now, released="deletionTimestamp" in each["metadata"], claimed=claimed)
        for secret in secrets:
            self._look_at_plan(secret, now)

    def _look_at_plan(self, secret: Manifest, now: float) -> None:
        annotations, data = secret["metadata"].get("annotations") or {}, secret.get("data") or {}
        owner, kind = annotations.get(_OWNER, ""), annotations.get(PLAN_TYPE, "")
        if not owner:
            return
        checksum = hashlib.sha256(base64.b64decode(data.get("plan", ""))).hexdigest()
        applied = base64.b64decode(data.get("applied-checksum", "")).decode() == checksum
        if kind == "clean":
            self._note(owner, now, cleaned=applied)
            return
        progress = json.loads(base64.b64decode(data.get("slipway-progress", "")) or "{}")
        index = int(progress.get("index", 0))
        self._note(owner, now, planned=True, pulling=index >= _UPGRADE, pulled=index > _UPGRADE or applied, applied=applied)

    def _note(self, name: str, now: float, **facts: bool) -> None:
        moments = self._seen.setdefault(name, {})
        for fact, is_so in facts.items():
            if is_so:
                moments.setdefault(fact, now)


def table(rows: list[Replacement]) -> str:
    """The same for a person, in seconds."""
    lines: list[tuple[str, ...]] = [("replaced", "by", *STEPS, "out")]
    lines += [(row.old, row.new, *(f"{row.seconds[step]:.0f}" for step in STEPS), f"{row.total:.0f}") for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True)) for line in lines)


def _steps(old: dict[str, float], new: dict[str, float]) -> dict[str, float]:
    """The steps one after the other: one that was not seen, or was over before the last one, took no time of its own."""
    ends = (
        *(old.get("drained"), old.get("released"), old.get("cleaned"), new.get("claimed"), new.get("planned"), new.get("pulled")),
        *(new.get("applied"), new.get("booted"), new.get("joined"), new.get("ready")),
    )
    last, seconds = old["drain"], {}
    for step, end in zip(STEPS, ends, strict=True):
        seconds[step] = max((end or last) - last, 0.0)
        last = max(end or last, last)
    return seconds


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
