"""What hosts run for a plan, instruction by instruction: fixed texts for a POSIX shell.

Everything that differs from host to host, all paths too, is in the environment that :mod:`slipway.fleet.baremetal.plans.plan` gives them.
"""

from __future__ import annotations

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
CLEAN_CLOUD_INIT = (
    _UNLESS_DONE
    + """\
cloud-init clean --logs --seed
"""
)

# A second upgrade after a power cut would push the image that the host came from out of its place as fallback.  An image that was fetched
# ahead, of which there is a record once it is whole, is deployed from the disk; whatever is wrong with it, there is still the registry.
UPGRADE_SYSTEM = (
    _UNLESS_DONE
    + """\
if [ -e "$STATE/upgraded" ]; then
    echo "$IMAGE is the system of the next boot already"
    exit 0
fi
code=0
if [ -e "$AHEAD/image.json" ]; then
    echo "$IMAGE was fetched ahead"
    elemental upgrade --reboot=false --system "dir:$AHEAD/root" || code=$?
    if [ "$code" -eq 0 ]; then
        : > "$STATE/upgraded"
        exit 0
    fi
    echo "elemental upgrade ended with $code: what was fetched ahead is left alone, and the image is pulled"
    code=0
fi
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
CHECK_VERSION = (
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

MARK_CLEANUP = (
    _UNLESS_DONE
    + """\
mkdir -p "${CLEANUP_MARKER%/*}"
echo "$ID" > "$CLEANUP_MARKER.new"
mv "$CLEANUP_MARKER.new" "$CLEANUP_MARKER"
sync
"""
)

UNMASK_KUBELET = (
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
PLACE_SEED = (
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

TIDY_UP = (
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

# Delayed, so that the agent can tell first how it went.  A timer of systemd may be late by a minute where it is not told otherwise.
REBOOT = (
    _STRICT
    + """\
if [ ! -e "$REBOOT_PENDING" ]; then
    echo "the host has been booted since reprovision $ID: not once more"
    exit 0
fi
systemd-run --on-active=5 --timer-property=AccuracySec=100ms systemctl reboot
"""
)

# The kubelet starts keepalived again until it has noticed that the manifest is gone, so one signal may be too few; a killed one would
# leave the address behind (keepalived#672).
STOP_VIP = (
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
MASK_KUBELET = (
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
REMOVE_WORKLOAD = (
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

# A kubelet that is stopped may have asked for a container that containerd is still making, and that nobody saw when the others went.  Now
# that containerd is stopped there comes no other: where one is left, the agent runs the plan again from its beginning.  What containerd
# could not remove of one that has ended is no container.
STOP_CONTAINERD = (
    _STRICT
    + """\
if ! systemctl cat containerd.service >/dev/null; then
    echo "there is no containerd on this host"
    exit 0
fi
systemctl stop containerd.service
left=
for task in "$TASKS"/*; do
    if [ ! -e "$task" ]; then
        continue
    fi
    pid=$(cat "$task/init.pid" 2>/dev/null) || pid=
    case $pid in
        '' | *[!0-9]*) left="$left ${task##*/}" ;;
        *)
            if [ -e "$PROC/$pid" ]; then
                left="$left ${task##*/}"
            fi
            ;;
    esac
done
if [ -n "$left" ]; then
    echo "these containers were started while the others were ended:$left"
    exit 1
fi
"""
)

# What the cluster left on the disks, for hosts that change hands: the state of Kubernetes, the logs of its Pods, and the bootstrap data,
# which has keys.  The instance stays the same for cloud-init, and so does the network that the seed describes.
SCRUB = (
    _STRICT
    + """\
points=
while read -r device point rest; do
    for folder in $FOLDERS; do
        case "$point" in
            "$folder"/*) points="$point $points" ;;
        esac
    done
done < "$MOUNTS"
for point in $points; do
    umount "$point" || umount -l "$point"
done
for folder in $FOLDERS; do
    rm -rf "$folder"/* "$folder"/.[!.]*
    echo "$folder is empty"
done
if [ -e "$SEED/user-data" ]; then
    echo "#cloud-config" > "$SEED/user-data"
fi
for instance in "$INSTANCES"/*; do
    rm -rf "$instance/user-data.txt" "$instance/user-data.txt.i" "$instance/cloud-config.txt" "$instance/obj.pkl" "$instance/scripts"
done
if command -v fstrim >/dev/null; then
    fstrim --all || echo "not every disk can be told which blocks are free"
fi
"""
)
