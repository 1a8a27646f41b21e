"""Virtual hosts for real: systemd-nspawn machines on a bridge of this machine, and nothing left of them afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.host.interface import CommandResult
from slipway.host.progress import TextProgress
from slipway.lab import lab as setup
from slipway.lab import teardown
from slipway.lab.hosts import hosts
from slipway.lab.network import bridge, sysctl
from slipway.lab.osimage import base as osbase
from slipway.lab.osimage import image as osimage
from slipway.lab.record import Lab, port_name
from slipway.lab.registry import layers

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="boots real hosts: set SLIPWAY_E2E=1"),
    pytest.mark.skipif(os.geteuid() != 0, reason="virtual hosts need root"),
    pytest.mark.skipif(shutil.which("systemd-nspawn") is None, reason="systemd-nspawn is missing: install systemd-container"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is missing: install it"),
]

PROGRESS = TextProgress()
OLD, NEW = "v1.34.10", "v1.35.4"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, osimage.OSImage]]:
    """Two images over the real base, in a cache of their own; each has one file that tells which one it is."""
    base = osbase.ensure(PROGRESS)
    cache = tmp_path_factory.mktemp("cache")
    store = cache / "slipway" / "os"
    store.mkdir(parents=True)
    (store / base.name).symlink_to(base)
    for number, version in enumerate((OLD, NEW), start=1):
        folder = store / (f"{number}" * 64)
        (folder / "layer" / "etc").mkdir(parents=True)
        (folder / "layer" / "etc" / "image").write_text(f"{version}\n")
        (folder / "layer" / "etc" / "slipway-lab-image").write_text(f"KUBERNETES_VERSION={version}\n")
        (folder / "layer").chmod(0o755)
        known = osimage.Description(name=version, digest=f"{number}" * 64, version=version, node_tool="slipway", base=base.name)
        (folder / "image.json").write_bytes(msgspec.json.encode(known))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        found = {version: osimage.find(version) for version in (OLD, NEW)}
        for version, image in found.items():
            layers.share(image.layers[0], version)
        layers.share(found[NEW].layers[1], "base")
        yield found


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder for labs, and the promise that none of them changes anything on the machine but while it is up."""
    before, others = machine_state(), marks_of_other_labs()
    root = tmp_path / "labs"
    try:
        yield root
    finally:
        for name in ("one", "two"):
            teardown.down(Lab(name, root / name), PROGRESS)
    after = machine_state()
    others |= marks_of_other_labs()
    changed = {kind: sorted(before[kind] ^ after[kind]) for kind in after}
    assert {kind: [what for what in changes if not any(mark in what for mark in others)] for kind, changes in changed.items()} == {
        kind: [] for kind in after
    }
    assert not root.exists() or [entry.name for entry in root.iterdir()] == [".lock"]


def machine_state() -> dict[str, set[str]]:
    """What a lab could leave behind, or take away."""
    cgroups = Path("/sys/fs/cgroup")
    programs = map(command_line, Path("/proc").glob("[0-9]*"))
    return {
        "mounts": set(Path("/proc/self/mounts").read_text().splitlines()),
        "links": bridge.machine_links(),
        "routes": set(bridge.run("ip", "-4", "route", "show", "table", "all").splitlines()),
        "cgroups": {str(path) for pattern in ("slipway-*", "*/slipway-*") for path in cgroups.glob(pattern)},
        "processes": {
            program for program in programs if program.startswith("systemd-nspawn ") or " -m slipway.lab.hosts.launcher " in program
        },
        "settings": {f"{path} {path.read_text()}" for path in sysctl.SETTINGS},
        "run": {str(path) for folder in ("slipway", "systemd/nspawn") for path in Path("/run", folder).rglob("*")},
    }


def marks_of_other_labs() -> set[str]:
    """What tells the things of labs that the machine has beside those of the test: they may come and go meanwhile."""
    if not sysctl.RECORD.exists():
        return set()
    holders = msgspec.json.decode(sysctl.RECORD.read_bytes(), type=sysctl.Holders)
    marks = {*map(str, sysctl.SETTINGS), str(sysctl.RECORD.with_suffix(""))}
    for lab in (Lab(Path(folder).name, Path(folder)) for folder in holders.labs):
        marks |= {str(lab.folder), lab.record.tag, lab.record.bridge} if lab.exists else {str(lab.folder)}
    return marks


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def lab_with(root: Path, name: str, image: osimage.OSImage, *names: str) -> Lab:
    lab = setup.up(name, PROGRESS, root=root)
    for host in names:
        hosts.create(lab, host, image)
        hosts.begin(lab, host)
    for host in names:
        hosts.wait_running(lab, host)
    return lab


def answers(lab: Lab, host: str, address: str) -> bool:
    """Whether an address answers a host.  The base has no ping, but Python."""
    knock = f"import socket; socket.create_connection(({address!r}, 9), timeout=1)"
    said = hosts.capture(lab, host, ["python3", "-c", knock]).stderr
    return "ConnectionRefusedError" in said  # nobody listens there, but somebody is at home


def output(lab: Lab, host: str, *command: str, stdin: str = "") -> str:
    done = hosts.capture(lab, host, command, stdin=stdin, patience=60)
    assert done.code == 0, done.stderr
    return done.stdout


def kill_launcher(lab: Lab, host: str) -> None:
    launcher = lab.status(host).launcher
    assert launcher is not None
    os.kill(launcher.pid, signal.SIGKILL)
    os.waitpid(launcher.pid, 0)


def state_of(lab: Lab, host: str) -> str:
    return next(info.state for info in hosts.list_hosts(lab) if info.name == host)


def test_three_hosts_on_one_bridge_reach_each_other_and_their_pods(root: Path, images: dict[str, osimage.OSImage]) -> None:
    began = time.monotonic()
    lab = lab_with(root, "one", images[OLD], "a", "b", "c")
    assert time.monotonic() - began < 20
    listed = {info.name: info for info in hosts.list_hosts(lab)}
    assert {info.state for info in listed.values()} == {"running"}
    for name, info in listed.items():
        assert output(lab, name, "hostname").strip() == name
        assert output(lab, name, "cat", "/etc/machine-id").strip() == info.uuid.replace("-", "")
        assert output(lab, name, "cat", "/sys/class/net/host0/address").strip() == info.mac
        assert output(lab, name, "cat", "/etc/slipway-lab/dmi/product_serial").strip() == info.serial
        assert all(answers(lab, name, other) for other in listed)  # by name
    pods = {name: pod_address(lab, name) for name in ("a", "b")}
    assert pods["a"] != pods["b"]
    reach = f"import socket; socket.create_connection(({pods['b']!r}, 9), timeout=2)"
    said = hosts.capture(lab, "a", ["ip", "netns", "exec", "pod", "python3", "-c", reach]).stderr
    assert "ConnectionRefusedError" in said


def pod_address(lab: Lab, host: str) -> str:
    """Do what containerd does for a Pod: give its network namespace to the plugins of the host's configuration."""
    conflist = json.loads(output(lab, host, "cat", "/etc/cni/net.d/10-slipway-lab.conflist"))
    configuration = json.dumps({"cniVersion": conflist["cniVersion"], "name": conflist["name"], **conflist["plugins"][0]})
    output(lab, host, "ip", "netns", "add", "pod")
    call = ["CNI_COMMAND=ADD", "CNI_CONTAINERID=pod", "CNI_NETNS=/run/netns/pod", "CNI_IFNAME=eth0", "CNI_PATH=/usr/lib/cni"]
    result = json.loads(output(lab, host, "env", *call, "/usr/lib/cni/bridge", stdin=configuration))
    return str(result["ips"][0]["address"].partition("/")[0])


def test_a_host_runs_programs_with_their_input_output_and_exit_code(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a")
    assert hosts.capture(lab, "a", ["sh", "-c", "cat; echo no >&2; exit 7"], stdin="yes") == CommandResult(7, "yes", "no\n")
    assert hosts.execute(lab, "a", ["sh", "-c", "exit 9"]) == 9
    assert hosts.execute(lab, "a", ["sh", "-c", "kill -9 $$"]) == 128 + 9


def test_a_reboot_applies_the_staged_image_and_clears_marked_state(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a")
    state = ("/var/lib/kubelet/x", "/var/lib/containerd/x", "/var/lib/etcd/x", "/etc/kubernetes/x")
    output(lab, "a", "sh", "-c", f"mkdir -p /etc/kubernetes; touch {' '.join(state)} /etc/kept /usr/of-the-old-system")

    hosts.restart(lab, "a", PROGRESS)
    assert output(lab, "a", "cat", "/etc/image").strip() == OLD
    output(lab, "a", "ls", *state)

    stage(lab, "a", NEW)
    output(lab, "a", "sh", "-c", "mkdir -p /var/lib/slipway && touch /var/lib/slipway/clear-kubernetes-state")
    assert hosts.list_hosts(lab)[0].staged_image == f"registry.example/os:{NEW}"
    info = hosts.restart(lab, "a", PROGRESS)
    assert (info.version, info.staged_image, info.boots) == (NEW, "", 3)
    assert output(lab, "a", "cat", "/etc/image").strip() == NEW
    assert output(lab, "a", "ls", "/var/lib/slipway-lab", "/var/lib/slipway") == "/var/lib/slipway:\n\n/var/lib/slipway-lab:\n"
    for path in (*state, "/usr/of-the-old-system"):
        assert hosts.capture(lab, "a", ["ls", path]).code == 2
    output(lab, "a", "ls", "/etc/kept")


def stage(lab: Lab, host: str, layer: str) -> None:
    """What ``elemental upgrade`` writes when an image is whole."""
    text = json.dumps({"reference": f"registry.example/os:{layer}", "digest": f"sha256:{layer}", "layers": ["base", layer]})
    output(lab, host, "sh", "-c", "cat > /var/lib/slipway-lab/staged.json", stdin=text)


def test_a_staged_image_that_is_gone_leaves_the_old_one_and_is_told(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a")
    stage(lab, "a", "v9.9.9")
    output(lab, "a", "sh", "-c", "touch /var/lib/etcd/x; systemctl reboot")
    info = hosts.wait_running(lab, "a", after_boot=1)
    assert info.version == OLD
    assert "registry.example/os:v9.9.9 was not applied" in info.message
    output(lab, "a", "ls", "/var/lib/etcd/x")


def test_an_image_that_does_not_boot_gives_way_to_the_one_before(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a")
    stage(lab, "a", "broken")
    broken = lab.host_folder("a").exchange / "layers" / "broken" / "usr" / "lib" / "systemd"
    broken.mkdir(parents=True)
    (broken / "systemd").write_text("#!/bin/sh\nexit 1\n")
    (broken / "systemd").chmod(0o755)
    info = hosts.restart(lab, "a", PROGRESS)
    assert info.version == OLD
    assert "the image sha256:broken did not boot" in info.message
    assert output(lab, "a", "cat", "/etc/image").strip() == OLD
    # The next image is tried as the first one was.
    stage(lab, "a", NEW)
    assert hosts.restart(lab, "a", PROGRESS).version == NEW
    assert lab.host("a").fallback is None


def test_a_host_keeps_the_name_that_it_was_given_later(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a")
    output(lab, "a", "hostnamectl", "set-hostname", "node-7")
    hosts.power_off(lab, "a")
    hosts.start(lab, "a", PROGRESS)
    assert output(lab, "a", "hostname").strip() == "node-7"


def test_a_link_that_is_cut_stays_cut_through_a_reboot_until_it_is_restored(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a", "b")
    assert answers(lab, "a", "b")
    hosts.cut(lab, "b")
    assert not answers(lab, "a", "b")
    hosts.restart(lab, "b", PROGRESS)
    assert not answers(lab, "a", "b")
    hosts.restore_link(lab, "b")
    assert answers(lab, "a", "b")


def test_stopping_starting_and_powering_off_can_be_repeated(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a")
    for end in (hosts.stop, hosts.power_off):
        for _ in range(2):
            end(lab, "a")
            assert state_of(lab, "a") == "off"
        with pytest.raises(OperatorError, match="the host a is off: start it"):
            hosts.execute(lab, "a", ["true"])
        for _ in range(2):
            assert hosts.start(lab, "a", PROGRESS).state == "running"
    assert hosts.list_hosts(lab)[0].boots == 3
    assert "Journal started" in subprocess.run(
        hosts.log_command(lab.folder, lab.host_folder("a").journal, console=False, follow=False, unit="", lines=0),
        capture_output=True,
        text=True,
        check=True,
    ).stdout  # fmt: skip


def test_a_host_without_its_launcher_is_noticed_and_can_be_started_again(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a")
    kill_launcher(lab, "a")
    assert state_of(lab, "a") == "unsupervised"
    with pytest.raises(OperatorError, match="its launcher died"):
        hosts.restart(lab, "a", PROGRESS)
    assert hosts.start(lab, "a", PROGRESS).boots == 2


def test_down_cleans_up_after_launchers_were_killed_and_runs_twice(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a", "b")
    hosts.create(lab, "never-started", images[OLD])
    for name in ("a", "b"):
        kill_launcher(lab, name)
    container = lab.status("b").container
    assert container is not None
    os.kill(container.pid, signal.SIGKILL)  # only PID 1 of b is left, and what that started
    teardown.down(lab, PROGRESS)
    assert not lab.folder.exists()
    teardown.down(lab, PROGRESS)


def test_down_cleans_up_after_a_host_that_was_killed_in_the_middle_of_its_start(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = setup.up("one", PROGRESS, root=root)
    for name in ("a", "b", "c"):
        hosts.create(lab, name, images[OLD])
    for name in ("b", "c", "a"):
        hosts.begin(lab, name)
    # One is killed before it did anything, one while it boots, one that may not know its host's PID 1 yet.
    kill_launcher(lab, "a")
    while lab.status("b").leader is None:
        assert hosts.list_hosts(lab)[1].state in {"starting", "booting"}
    kill_launcher(lab, "b")
    while lab.status("c").container is None:
        assert hosts.list_hosts(lab)[2].state == "starting"
    kill_launcher(lab, "c")
    teardown.down(lab, PROGRESS)
    assert not lab.folder.exists()


def test_two_labs_live_side_by_side_and_one_goes_without_the_other(root: Path, images: dict[str, osimage.OSImage]) -> None:
    one = lab_with(root, "one", images[OLD], "a", "b")
    two = lab_with(root, "two", images[NEW], "a", "b")
    assert not one.record.host_network.overlaps(two.record.host_network)
    assert not one.record.pod_network.overlaps(two.record.pod_network)
    teardown.down(one, PROGRESS)
    assert all(int(path.read_text()) >= least for path, least in sysctl.SETTINGS.items())
    assert [info.state for info in hosts.list_hosts(two)] == ["running", "running"]
    assert answers(two, "a", "b")


def test_a_deleted_host_leaves_its_lab_and_its_address_can_be_had_again(root: Path, images: dict[str, osimage.OSImage]) -> None:
    lab = lab_with(root, "one", images[OLD], "a", "b")
    first = lab.host("a")
    hosts.delete(lab, "a")
    assert not (Path("/sys/class/net") / port_name(lab.record, first)).exists()
    assert bridge.run("ip", "route", "show", first.pod_range) == ""
    again = hosts.create(lab, "a", images[NEW])
    assert (again.address, again.mac) == (first.address, first.mac)
    assert again.uuid != first.uuid
    with pytest.raises(OperatorError, match='no host named "x"; its hosts: a, b'):
        hosts.delete(lab, "x")


@contextmanager
def link(name: str, address: str) -> Iterator[None]:
    bridge.run("ip", "link", "add", "name", name, "type", "bridge")
    try:
        bridge.run("ip", "address", "add", address, "dev", name)
        yield
    finally:
        bridge.run("ip", "link", "delete", "dev", name)


def test_what_the_machine_uses_already_is_refused_and_never_chosen(root: Path, images: dict[str, osimage.OSImage]) -> None:
    with link("sw-one", "10.88.0.7/24"):
        with pytest.raises(OperatorError, match="bridge name sw-one is taken"):
            setup.up("one", PROGRESS, root=root, bridge="sw-one")
        with pytest.raises(OperatorError, match=r"10\.88\.0\.0/24 for the hosts is taken"):
            setup.up("one", PROGRESS, root=root, hosts="10.88.0.0/24")
        assert not (root / "one").exists()
        lab = setup.up("one", PROGRESS, root=root)
        assert lab.record.bridge != "sw-one"
        assert lab.record.hosts != "10.88.0.0/24"
        teardown.down(lab, PROGRESS)
        assert "sw-one" in bridge.machine_links()
