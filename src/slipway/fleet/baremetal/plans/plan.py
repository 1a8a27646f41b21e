"""The two plans that a host gets of this provider, as values: one makes a node of it, one takes the node away.

What differs from host to host comes to the scripts by their environment, all paths too; the scripts themselves are fixed texts, so there
is nothing to quote.  Their output is all on standard output: an agent keeps no other.

A plan may be run again from its beginning at any time, after a power cut or by an agent that starts: every instruction looks at what is
there.  The seed is put in its place last and in one step, with the id that follows from all of the plan: before it the host boots into
nothing, after it into the node, and no power cut makes a node twice.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from slipway.api.elemental import staging
from slipway.api.elemental.plan import Instruction, Plan, PlanFile, encode
from slipway.api.machinery.yaml.goyaml import dump
from slipway.fleet.baremetal.plans import scripts

STATE = "/var/lib/slipway/reprovision"
SEED = "/var/lib/cloud/seed/nocloud"
CLEANUP_MARKER = "/var/lib/slipway/clear-kubernetes-state"
"""What the initramfs obeys at the next boot: it clears the four folders of Kubernetes, and takes the marker away."""
RETIRED_MANIFESTS = "/var/lib/slipway/retired-manifests"
KUBELET_DISABLED = "/var/lib/slipway/kubelet-disabled"
"""Where the kubelet's unit could not be masked, and was disabled."""
MANIFESTS = "/etc/kubernetes/manifests"
TASKS = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
"""Where containerd has a folder for each container that runs."""

SCRUBBED = (
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/etc/kubernetes",
    "/var/log/pods",
    "/var/log/containers",
    RETIRED_MANIFESTS,
)
"""The folders that a scrub empties."""
INSTANCES = "/var/lib/cloud/instances"

_SHELL = "/bin/sh"
_ID_DIGITS = 16

# Longer than a kubelet needs to notice that a manifest is gone.
_PATIENCE = 40


class Reprovision(NamedTuple):
    """What makes a node of a host."""

    claim: str
    """Who has the host, by uid: the same data for another Machine is another plan, and runs again."""
    image: str
    version: str
    hostname: str
    user_data: bytes
    network_config: str = ""
    """Empty where nothing is known of the host's network: cloud-init falls back to DHCP."""


def reprovision(wanted: Reprovision) -> Plan:
    return _reprovision(wanted, identity(wanted))


def identity(wanted: Reprovision) -> str:
    """The id of a reprovision: its mark on the host, and the instance-id for cloud-init, which runs again for a new one alone."""
    return hashlib.sha256(encode(_reprovision(wanted, ""))).hexdigest()[:_ID_DIGITS]


def clean(claim: str, vip: str = "", *, scrub: bool = False) -> Plan:
    """``vip`` is the virtual address that the host may have; empty where no host of the cluster has one."""
    vip_environment = (f"VIP={vip}", f"PATIENCE={_PATIENCE}", f"MANIFESTS={MANIFESTS}")
    steps: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("stop-vip", scripts.STOP_VIP, (*vip_environment, "PROC=/proc")),
        ("mask-kubelet", scripts.MASK_KUBELET, (f"DISABLED={KUBELET_DISABLED}",)),
        ("remove-workload", scripts.REMOVE_WORKLOAD, (*vip_environment, f"RETIRED_MANIFESTS={RETIRED_MANIFESTS}")),
        ("stop-containerd", scripts.STOP_CONTAINERD, (f"TASKS={TASKS}", "PROC=/proc")),
    )
    if scrub:
        places = (f"FOLDERS={' '.join(SCRUBBED)}", f"SEED={SEED}", f"INSTANCES={INSTANCES}", "MOUNTS=/proc/mounts")
        steps = (*steps, ("scrub", scripts.SCRUB, places))
    # The release makes the plan one of its own: an agent that remembers the last one of the host runs this one all the same.
    return Plan(instructions=tuple(_instruction(name, script, (*environment, f"RELEASE={claim}")) for name, script, environment in steps))


def same_version(machine: str, kubelet: str) -> bool:
    """Whether a kubelet is what a Machine asks for; a distribution's own mark, as in v1.33.7-2, need not be in what it says of itself."""
    wanted, told = (version if version.startswith("v") else f"v{version}" for version in (machine, kubelet))
    return told in (wanted, wanted.partition("+")[0].partition("-")[0])


def _reprovision(wanted: Reprovision, id_: str) -> Plan:
    folder = f"{STATE}/{id_}"
    seed = {"user-data": wanted.user_data, "meta-data": _meta_data(wanted, id_).encode()}
    if wanted.network_config:
        seed["network-config"] = wanted.network_config.encode()
    names = f"SEED_FILES={' '.join(seed)}"
    image, version = f"IMAGE={wanted.image}", f"VERSION={wanted.version}"
    pending = f"REBOOT_PENDING=/run/slipway/reboot-for-{id_}"
    steps: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("clean-cloud-init", scripts.CLEAN_CLOUD_INIT, ()),
        ("upgrade-system", scripts.UPGRADE_SYSTEM, (image, f"AHEAD={staging.place(wanted.image)}")),
        ("check-version", scripts.CHECK_VERSION, (image, version, "STAGED=/run/elemental/staged", "SNAPSHOTS=/.snapshots")),
        ("mark-cleanup", scripts.MARK_CLEANUP, (f"CLEANUP_MARKER={CLEANUP_MARKER}",)),
        ("unmask-kubelet", scripts.UNMASK_KUBELET, (f"DISABLED={KUBELET_DISABLED}",)),
        ("place-seed", scripts.PLACE_SEED, (pending, names)),
        ("tidy-up", scripts.TIDY_UP, (names,)),
        ("reboot", scripts.REBOOT, (pending,)),
    )
    return Plan(
        files=tuple(PlanFile(path=f"{folder}/{name}", content=content, permissions="0600") for name, content in seed.items()),
        instructions=tuple(
            _instruction(name, script, (f"ID={id_}", f"STATE={folder}", f"SEED={SEED}", *environment))
            for name, script, environment in steps
        ),
    )


def _instruction(name: str, script: str, environment: tuple[str, ...]) -> Instruction:
    return Instruction(name=name, command=_SHELL, args=("-c", script), env=environment, save_output=True)


def _meta_data(wanted: Reprovision, id_: str) -> str:
    return dump({"instance-id": id_, "local-hostname": wanted.hostname, "slipway-claim": wanted.claim})
