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

from slipway.api.elemental.plan import Instruction, Plan, PlanFile, encode
from slipway.api.machinery.yaml.goyaml import dump

STATE = "/var/lib/slipway/reprovision"
SEED = "/var/lib/cloud/seed/nocloud"
CLEANUP_MARKER = "/var/lib/slipway/clear-kubernetes-state"
"""What the initramfs obeys at the next boot: it clears the four folders of Kubernetes, and takes the marker away."""
RETIRED_MANIFESTS = "/var/lib/slipway/retired-manifests"
KUBELET_DISABLED = "/var/lib/slipway/kubelet-disabled"
"""Where the kubelet's unit could not be masked, and was disabled."""
MANIFESTS = "/etc/kubernetes/manifests"

_SHELL = "/bin/sh"
_ID_DIGITS = 16

_STRICT = "set -eu\nexec 2>&1\n"
# What comes before every step of a reprovision up to the one that decides it.
_UNLESS_DONE = (
    _STRICT
    + """\
if [ "$(cat "$SEED/reprovision" 2>/dev/null)" = "$ID" ]; then
    echo "reprovision $ID has ended on this host before: nothing to do"
    exit 0
fi
"""
)

# It takes away all of /var/lib/cloud/seed, which is why the new seed comes after it.
_CLEAN_CLOUD_INIT = (
    _UNLESS_DONE
    + """\
cloud-init clean --logs --seed
"""
)

# A second upgrade after a power cut would push the image that the host came from out of its place as fallback.
_UPGRADE_SYSTEM = (
    _UNLESS_DONE
    + """\
if [ -e "$STATE/upgraded" ]; then
    echo "$IMAGE is the system of the next boot already"
    exit 0
fi
code=0
elemental upgrade --reboot=false --system "$IMAGE" || code=$?
case $code in
    0) ;;
    18) echo "elemental upgrade ended with 18: the registry does not answer, or has no image $IMAGE that can be deployed" ;;
    84 | 85) echo "elemental upgrade ended with $code: the snapshots of the system could not be made; see the free space of the disk" ;;
    *) echo "elemental upgrade ended with $code" ;;
esac
if [ "$code" -ne 0 ]; then
    exit "$code"
fi
: > "$STATE/upgraded"
"""
)

# A distribution's own mark, as in v1.33.7-2, is not always in what the kubelet says of itself.
_CHECK_VERSION = (
    _UNLESS_DONE
    + """\
system=
if [ -d "$STAGED" ]; then
    system=$STAGED
else
    newest=-1
    for found in "$SNAPSHOTS"/*/snapshot; do
        number=${found%/snapshot}
        number=${number##*/}
        case $number in
            '' | *[!0-9]*) continue ;;
        esac
        if [ "$number" -gt "$newest" ]; then
            newest=$number
            system=$found
        fi
    done
fi
if [ -z "$system" ]; then
    echo "there is neither $STAGED nor a snapshot in $SNAPSHOTS: the version of the kubelet in $IMAGE is not checked before the boot"
    exit 0
fi
for place in usr/bin usr/local/bin opt/bin; do
    kubelet=$system/$place/kubelet
    if [ ! -x "$kubelet" ]; then
        continue
    fi
    told=$("$kubelet" --version) || told=$(chroot "$system" "/$place/kubelet" --version) || told=
    if [ -z "$told" ]; then
        echo "$kubelet does not say which version it has: it is not checked before the boot"
        exit 0
    fi
    version=${told##* }
    if [ "$version" = "$VERSION" ] || [ "$version" = "${VERSION%%[-+]*}" ]; then
        echo "the kubelet of $IMAGE is $version"
        exit 0
    fi
    echo "the kubelet of $IMAGE is $version, and the Machine is to be $VERSION: mend the entry $VERSION of the image catalog"
    exit 1
done
echo "there is no kubelet in $system: its version is not checked before the boot"
"""
)

_MARK_CLEANUP = (
    _UNLESS_DONE
    + """\
mkdir -p "${CLEANUP_MARKER%/*}"
echo "$ID" > "$CLEANUP_MARKER.new"
mv "$CLEANUP_MARKER.new" "$CLEANUP_MARKER"
sync
"""
)

_UNMASK_KUBELET = (
    _UNLESS_DONE
    + """\
systemctl unmask kubelet.service
if [ -e "$DISABLED" ]; then
    systemctl enable kubelet.service
    rm -f "$DISABLED"
fi
"""
)

# The step that decides: a boot after it makes a node of the host.  What is under /run a boot empties: whoever finds the mark there knows
# that the host has not been booted since.
_PLACE_SEED = (
    _UNLESS_DONE
    + """\
umask 077
parent=${SEED%/*}
new=$parent/.nocloud.new
mkdir -p "$parent" "${REBOOT_PENDING%/*}"
rm -rf "$new"
mkdir "$new"
for name in $SEED_FILES; do
    cp "$STATE/$name" "$new/$name"
done
echo "$ID" > "$new/reprovision"
: > "$REBOOT_PENDING"
rm -rf "$SEED"
sync
mv "$new" "$SEED"
sync
"""
)

_TIDY_UP = (
    _STRICT
    + """\
for name in $SEED_FILES; do
    rm -f "$STATE/$name"
done
for other in "${STATE%/*}"/*; do
    if [ "$other" != "$STATE" ]; then
        rm -rf "$other"
    fi
done
"""
)

# Delayed, so that the agent can tell first how it went.
_REBOOT = (
    _STRICT
    + """\
if [ ! -e "$REBOOT_PENDING" ]; then
    echo "the host has been booted since reprovision $ID: not once more"
    exit 0
fi
systemd-run --on-active=5 systemctl reboot
"""
)

# The kubelet starts keepalived again until it has noticed that the manifest is gone, so one signal may be too few; a killed one would
# leave the address behind (keepalived#672).
_STOP_VIP = (
    _STRICT
    + """\
rm -f "$MANIFESTS/alive.yaml"
holds() {
    [ -n "$VIP" ] && ip -o addr show to "$VIP" | grep -q .
}
quiet=0
for second in $(seq "$PATIENCE"); do
    running=
    for comm in "$PROC"/[0-9]*/comm; do
        if [ "$(cat "$comm" 2>/dev/null)" = keepalived ]; then
            running=${comm%/comm}
            kill -TERM "${running##*/}" 2>/dev/null || :
        fi
    done
    if [ -z "$running" ] && ! holds; then
        quiet=$((quiet + 1))
        if [ "$quiet" -ge 2 ]; then
            echo "the virtual address is not on this host"
            exit 0
        fi
    else
        quiet=0
    fi
    sleep 1
done
if holds; then
    ip -o addr show to "$VIP" | while read -r _ device _ address _; do
        ip addr del "$address" dev "$device"
    done
fi
if holds; then
    echo "the virtual address $VIP is still on this host after $PATIENCE seconds"
    exit 1
fi
echo "keepalived did not end within $PATIENCE seconds; its address is gone, and its container goes with the others"
"""
)

# A unit that is a file of its own in /etc/systemd/system cannot be masked.
_MASK_KUBELET = (
    _STRICT
    + """\
if ! systemctl mask kubelet.service; then
    mkdir -p "${DISABLED%/*}"
    : > "$DISABLED"
    systemctl disable kubelet.service
fi
systemctl stop kubelet.service
"""
)

# Stopping containerd leaves containers running, so they go first; a network that cannot be taken down (its plug-in may want the API
# server of a cluster that is gone) holds nothing up, as the host is booted before it is used again.
_REMOVE_WORKLOAD = (
    _STRICT
    + """\
if [ -d "$MANIFESTS" ]; then
    mkdir -p "$RETIRED_MANIFESTS"
    for manifest in "$MANIFESTS"/*; do
        if [ -e "$manifest" ]; then
            rm -rf "$RETIRED_MANIFESTS/${manifest##*/}"
            mv "$manifest" "$RETIRED_MANIFESTS/"
        fi
    done
fi
if ! systemctl cat containerd.service >/dev/null; then
    echo "there is no containerd on this host, and so no container"
    exit 0
fi
systemctl start containerd.service
socket=unix:///run/containerd/containerd.sock
if command -v crictl >/dev/null; then
    crictl --runtime-endpoint "$socket" rmp --all --force || :
    crictl --runtime-endpoint "$socket" rm --all --force || :
fi
for attempt in $(seq "$PATIENCE"); do
    tasks=$(ctr --namespace k8s.io tasks list --quiet)
    if [ -z "$tasks" ]; then
        break
    fi
    signal=SIGTERM
    if [ "$attempt" -gt 5 ]; then
        signal=SIGKILL
    fi
    for task in $tasks; do
        ctr --namespace k8s.io tasks kill --all --signal "$signal" "$task" || :
    done
    sleep 1
    for task in $tasks; do
        ctr --namespace k8s.io tasks delete "$task" >/dev/null || :
    done
done
for container in $(ctr --namespace k8s.io containers list --quiet); do
    ctr --namespace k8s.io containers delete "$container" || :
done
tasks=$(ctr --namespace k8s.io tasks list --quiet)
if [ -n "$tasks" ]; then
    echo "these containers do not end:" $tasks
    exit 1
fi
if [ -n "$VIP" ] && ip -o addr show to "$VIP" | grep -q .; then
    echo "the virtual address $VIP came back to this host"
    exit 1
fi
echo "no container runs on this host"
"""
)

_STOP_CONTAINERD = (
    _STRICT
    + """\
if ! systemctl cat containerd.service >/dev/null; then
    echo "there is no containerd on this host"
    exit 0
fi
systemctl stop containerd.service
"""
)

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


def clean(claim: str, vip: str = "") -> Plan:
    """``vip`` is the virtual address that the host may have; empty where no host of the cluster has one."""
    vip_environment = (f"VIP={vip}", f"PATIENCE={_PATIENCE}", f"MANIFESTS={MANIFESTS}")
    scripts = (
        ("stop-vip", _STOP_VIP, (*vip_environment, "PROC=/proc")),
        ("mask-kubelet", _MASK_KUBELET, (f"DISABLED={KUBELET_DISABLED}",)),
        ("remove-workload", _REMOVE_WORKLOAD, (*vip_environment, f"RETIRED_MANIFESTS={RETIRED_MANIFESTS}")),
        ("stop-containerd", _STOP_CONTAINERD, ()),
    )
    # The release makes the plan one of its own: an agent that remembers the last one of the host runs this one all the same.
    return Plan(instructions=tuple(_instruction(name, script, (*environment, f"RELEASE={claim}")) for name, script, environment in scripts))


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
    scripts: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("clean-cloud-init", _CLEAN_CLOUD_INIT, ()),
        ("upgrade-system", _UPGRADE_SYSTEM, (image,)),
        ("check-version", _CHECK_VERSION, (image, version, "STAGED=/run/elemental/staged", "SNAPSHOTS=/.snapshots")),
        ("mark-cleanup", _MARK_CLEANUP, (f"CLEANUP_MARKER={CLEANUP_MARKER}",)),
        ("unmask-kubelet", _UNMASK_KUBELET, (f"DISABLED={KUBELET_DISABLED}",)),
        ("place-seed", _PLACE_SEED, (pending, names)),
        ("tidy-up", _TIDY_UP, (names,)),
        ("reboot", _REBOOT, (pending,)),
    )
    return Plan(
        files=tuple(PlanFile(path=f"{folder}/{name}", content=content, permissions="0600") for name, content in seed.items()),
        instructions=tuple(
            _instruction(name, script, (f"ID={id_}", f"STATE={folder}", f"SEED={SEED}", *environment))
            for name, script, environment in scripts
        ),
    )


def _instruction(name: str, script: str, environment: tuple[str, ...]) -> Instruction:
    return Instruction(name=name, command=_SHELL, args=("-c", script), env=environment, save_output=True)


def _meta_data(wanted: Reprovision, id_: str) -> str:
    return dump({"instance-id": id_, "local-hostname": wanted.hostname, "slipway-claim": wanted.claim})
