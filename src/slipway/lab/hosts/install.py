"""Another Kubernetes version on a host that runs: what a package manager and a registry are to a machine in production.

A host that boots another OS image is replaced; this is for upgrades in place, where the control plane's images come
first, the node tool works with them, and the kubelet is replaced last.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.lab.hosts import hosts
from slipway.lab.osimage import files

if TYPE_CHECKING:
    from slipway.host.progress import Progress
    from slipway.lab.osimage.image import OSImage
    from slipway.lab.record import Lab

_PROGRAMS = ("usr/bin/kubelet", "usr/bin/kubectl", "usr/bin/etcdctl", "usr/lib/slipway/kubeadm")


def install_images(lab: Lab, name: str, image: OSImage, progress: Progress) -> None:
    """Load the container images of an OS image into the containerd of a host."""
    archives = sorted((image.layers[0] / files.ARCHIVES).glob("*.tar"))
    if not archives:
        raise OperatorError(f"the OS image {image.name} has no container images: build it with `slipway lab image build`")
    command = hosts.entering(lab, name, ["ctr", "--namespace", "k8s.io", "images", "import", "-"])
    for archive in archives:
        with archive.open("rb") as content:
            done = subprocess.run(command, stdin=content, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OperatorError(f"{archive.name} could not be loaded on the host {name}: {done.stderr.strip()}")
    progress.say(f"[host] {name}: loaded {len(archives)} container images of {image.version}")


def install_programs(lab: Lab, name: str, image: OSImage, progress: Progress) -> None:
    """Put the programs of an OS image into a host; a kubelet that runs is the old one until it is restarted."""
    root = Path("/proc", str(hosts.leader(lab, name)), "root")
    for program in _PROGRAMS:
        source = image.layers[0] / program
        if not source.exists() or source.is_symlink():
            continue
        target = root / program
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.new")
        shutil.copyfile(source, partial)
        partial.chmod(0o755)
        partial.rename(target)
    progress.say(f"[host] {name}: installed the programs of {image.version}; restart the kubelet to run the new one")
