"""The script with which a host that becomes the first control plane gets etcd's data out of a snapshot, before kubeadm makes the cluster.

It takes kubeadm's configuration away first and gives it back last: a host on which anything fails makes no cluster, rather than an empty
one.  Who the member is, where its data lies and which image etcd has, is read off the static Pod that kubeadm itself would write.  It can
be run again, also after a power cut at any line.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

BUMP = 1_000_000_000
"""By so much revisions go up, so that nobody who has seen later ones than the snapshot's waits for them: kubelets, controllers."""


class Download(NamedTuple):
    """Where hosts get a snapshot, and what it is; ``ca`` is the authority of the server where it is not a public one."""

    url: str
    sha256: str
    ca: bytes = b""


def script(download: Download) -> str:
    authority = download.ca.decode().strip()
    trusted = ' --cacert "$work/ca.crt"' if authority else ""
    return f"""#!/bin/sh
# Written by `slipway fleet restore`: etcd gets the data of a snapshot before kubeadm makes the cluster.
set -eu
config=/run/kubeadm/kubeadm.yaml
held=/run/kubeadm/kubeadm.yaml.held
work=/var/lib/slipway-restore
pod=/etc/kubernetes/manifests/etcd.yaml
url={shlex.quote(download.url)}
sha256={shlex.quote(download.sha256)}

say() {{ echo "[restore] $*"; }}
flag() {{ sed -n "s/^ *- --$1=//p" "$work/etcd.yaml"; }}

# Without its configuration kubeadm makes no cluster: an empty one would be taken for the restored one.
if [ -e "$config" ]; then mv "$config" "$held"; fi
mkdir -p "$work"
chmod 0700 "$work"

rm -f "$pod"
kubeadm init phase etcd local --config "$held"
mv "$pod" "$work/etcd.yaml"
data=$(flag data-dir)
if [ "$(cat "$work/done" 2>/dev/null)" = "$sha256" ] && [ -d "$data/member" ]; then
    say "$data has the data of the snapshot already"
    mv "$held" "$config"
    exit 0
fi
if [ -d "$data/member" ]; then
    say "$data has data of something else: move it away, and run $0 again"
    exit 1
fi

cat > "$work/ca.crt" <<'AUTHORITY'
{authority}
AUTHORITY
if ! echo "$sha256  $work/snapshot.db" | sha256sum -c --status 2>/dev/null; then
    say "Fetching the snapshot"
    curl -fsS --retry 60 --retry-delay 5 --retry-connrefused --connect-timeout 10{trusted} -o "$work/snapshot.db" "$url"
    echo "$sha256  $work/snapshot.db" | sha256sum -c
fi

if command -v etcdutl > /dev/null; then
    tool=etcdutl
else
    # The image of etcd has it.
    image=$(sed -n 's/^ *image: //p' "$work/etcd.yaml")
    ctr -n k8s.io images ls -q | grep -Fqx "$image" || crictl pull "$image" || ctr -n k8s.io images pull "$image"
    mkdir -p "$work/image"
    if ! mountpoint -q "$work/image"; then
        # What a power cut has left.
        ctr -n k8s.io snapshots rm "$work/image" 2> /dev/null || true
        ctr -n k8s.io images mount "$image" "$work/image"
    fi
    tool="$work/image/usr/local/bin/etcdutl"
fi
bump=""
if "$tool" snapshot restore --help 2>&1 | grep -q -- --bump-revision; then bump="--bump-revision {BUMP} --mark-compacted"; fi
rm -rf "$data.restored"
# shellcheck disable=SC2086 # two flags, or none
"$tool" snapshot restore "$work/snapshot.db" --data-dir "$data.restored" --name "$(flag name)" \\
    --initial-cluster "$(flag initial-cluster)" --initial-advertise-peer-urls "$(flag initial-advertise-peer-urls)" $bump
mkdir -p "$data"
chmod 0700 "$data"
# Whole are only both together: a power cut in between has it restored again.
echo "$sha256" > "$work/done"
sync
mv "$data.restored/member" "$data/member"
rmdir "$data.restored"
sync
if mountpoint -q "$work/image" 2>/dev/null; then ctr -n k8s.io images unmount --rm "$work/image"; fi
# It holds every Secret of the cluster.
rm -f "$work/snapshot.db"
mv "$held" "$config"
say "$data has the data of the snapshot"
"""
