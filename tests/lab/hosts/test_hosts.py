"""Hosts: the command lines that boot and enter them, what a reboot changes, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from lab.lab_records import IMAGE, LAB, host, saved_lab

from slipway.api.machinery.errors import OperatorError
from slipway.lab import processes, requirements
from slipway.lab.hosts import hosts, launcher, nextboot, nspawn
from slipway.lab.hosts.files import File
from slipway.lab.processes import Process
from slipway.lab.record import HostFolder, ImageRecord, Lab, Status
from slipway.lab.registry import layers

OTHER = ImageRecord(digest="d2", version="v1.35.4", layers=("/os/d2/layer", "/os/base"))


def of(reference: str) -> nextboot.Staged:
    return nextboot.Staged(reference, "sha256:d2", ("base", "top"))


def find(staged: nextboot.Staged) -> ImageRecord:
    if staged.reference != "v1.35.4":
        raise OperatorError(f"there is no OS image {staged.reference}")
    return OTHER


def test_a_host_boots_with_the_arguments_that_kubernetes_needs_of_a_container() -> None:
    command = nspawn.boot_command(LAB, host(), HostFolder(Path("/labs/dev/hosts/a")))
    assert command[0] == "systemd-nspawn"
    # As measured: without these the machine's systemd is asked, containers are refused system calls, or kubelets fail.
    for argument in ("--register=no", "--keep-unit", "--capability=all", "--system-call-filter=@known", "--bind=/dev/kmsg", "--boot"):
        assert argument in command
    assert "--machine=0123abcd-1" in command
    assert "--network-bridge=sw-dev" in command
    assert "--bind=/labs/dev/hosts/a/persistent/etcd:/var/lib/etcd" in command


def test_the_layers_of_an_image_are_mounted_top_first_and_paths_may_hold_colons() -> None:
    command = nspawn.overlay_command(("/os/a:b/layer", "/os/base"), HostFolder(Path("/labs/dev/hosts/a")))
    options = command[command.index("-o") + 1].split(",")
    assert options[:3] == [r"lowerdir=/os/a\:b/layer:/os/base", "upperdir=/labs/dev/hosts/a/upper", "workdir=/labs/dev/hosts/a/work"]


def test_a_program_in_a_host_gets_a_clean_environment_but_the_operators_terminal() -> None:
    command = nspawn.enter_command(7, ["ls", "-l"], {"TERM": "xterm", "SECRET": "x"})
    assert command[:5] == ["nsenter", "--target", "7", "--all", "env"]
    assert command[-2:] == ["ls", "-l"]
    assert "TERM=xterm" in command
    assert not any("SECRET" in word for word in command)


@pytest.mark.parametrize(
    ("text", "pid"),
    [("STATUS=Container running.\nX_NSPAWN_LEADER_PID=4242", 4242), ("READY=1", None), ("", None)],
)
def test_the_first_process_of_a_host_is_learned_from_nspawns_notification(text: str, pid: int | None) -> None:
    assert nspawn.leader_in(text) == pid


def test_signals_reach_a_process_on_record_and_never_its_successor() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        recorded = nspawn.identify(child.pid)
        assert recorded is not None
        assert not nspawn.send(msgspec.structs.replace(recorded, started=recorded.started - 1), signal.SIGKILL)
        assert not nspawn.send(msgspec.structs.replace(recorded, boot="another"), signal.SIGKILL)
        assert not nspawn.ended(recorded, 0)
        assert processes.is_running(recorded)
        assert nspawn.send(recorded, signal.SIGKILL)
        assert nspawn.ended(recorded, 10)
    assert not nspawn.send(recorded, signal.SIGKILL)
    assert not nspawn.send(None, signal.SIGKILL)


@pytest.mark.parametrize(
    ("staged", "marked", "expected"),
    [
        (None, False, nextboot.NextBoot(image=IMAGE)),
        (None, True, nextboot.NextBoot(image=IMAGE, clear=True)),
        ("v1.35.4", False, nextboot.NextBoot(image=OTHER, switched=True)),
        ("v1.35.4", True, nextboot.NextBoot(image=OTHER, switched=True, clear=True)),
        ("v9", False, nextboot.NextBoot(image=IMAGE, message="the staged image v9 was not applied: there is no OS image v9")),
        # What was marked must not come back, whatever boots: the old system would join its old cluster.
        ("v9", True, nextboot.NextBoot(image=IMAGE, clear=True, message="the staged image v9 was not applied: there is no OS image v9")),
    ],
)
def test_the_next_boot_follows_from_what_is_staged_and_marked(staged: str | None, marked: bool, expected: nextboot.NextBoot) -> None:
    assert nextboot.decide(IMAGE, None if staged is None else of(staged), find, marked=marked) == expected


def test_an_image_that_is_booted_already_is_not_switched_to() -> None:
    assert not nextboot.decide(OTHER, of("v1.35.4"), find, marked=False).switched


def populated(folder: Path) -> HostFolder:
    made = HostFolder(folder)
    for path in ("persistent/kubelet/pods/x", "persistent/containerd/x", "persistent/etcd/member/x", "persistent/slipway-lab/x"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    for path in ("etc/kubernetes/pki/ca.crt", "etc/hostname", "var/lib/x", "usr/bin/x", "root/.bashrc"):
        (folder / "upper" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "upper" / path).touch()
    (folder / "upper" / "lib").symlink_to("usr/lib")
    return made


def left(folder: HostFolder) -> set[str]:
    return {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if not path.is_dir() or path.is_symlink()}


@pytest.mark.parametrize(
    ("boot", "gone"),
    [
        (nextboot.NextBoot(image=IMAGE), set()),
        (
            nextboot.NextBoot(image=IMAGE, clear=True),
            {"persistent/kubelet/pods/x", "persistent/containerd/x", "persistent/etcd/member/x", "upper/etc/kubernetes/pki/ca.crt"},
        ),
        (nextboot.NextBoot(image=OTHER, switched=True), {"upper/usr/bin/x", "upper/lib"}),
    ],
)
def test_a_reboot_clears_kubernetes_state_when_marked_and_the_old_system_when_switched(
    tmp_path: Path, boot: nextboot.NextBoot, gone: set[str]
) -> None:
    folder = populated(tmp_path)
    before = left(folder)
    for _ in range(2):  # a run that was killed is run again
        nextboot.apply(folder, boot)
        assert before - left(folder) == gone
    assert {path.name for path in folder.persistent.iterdir()} == {"kubelet", "containerd", "etcd", "slipway-lab"}


def test_a_request_is_forgotten_once_it_was_met(tmp_path: Path) -> None:
    folder = populated(tmp_path)
    (folder.exchange / "staged.json").write_bytes(msgspec.json.encode(of("v1.35.4")))
    marker = folder.upper / "var/lib/slipway/clear-kubernetes-state"
    marker.parent.mkdir(parents=True)
    marker.touch()
    assert (nextboot.staged_image(folder), nextboot.is_marked(folder)) == (of("v1.35.4"), True)
    for _ in range(2):
        nextboot.forget(folder)
        assert (nextboot.staged_image(folder), nextboot.is_marked(folder)) == (None, False)


def test_a_staged_image_is_booted_from_layers_that_the_host_pulled_and_from_those_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = tmp_path / "cache/slipway/os/base-1"
    base.mkdir(parents=True)
    layers.share(base, "base")
    folder = HostFolder(tmp_path / "host")
    own = folder.exchange / "layers/top"
    (own / "etc").mkdir(parents=True)
    (own / "etc/slipway-lab-image").write_text("NAME=x\nKUBERNETES_VERSION=v1.35.4\n")
    found = nextboot.image_of(folder, of("registry.example/os:x"))
    assert found == ImageRecord(digest="sha256:d2", version="v1.35.4", layers=(str(own), str(base)))
    base.rmdir()
    with pytest.raises(OperatorError, match="its layer base is gone: stage it again"):
        nextboot.image_of(folder, of("registry.example/os:x"))


def test_layers_that_a_host_pulled_go_when_it_boots_others(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path)
    for name in ("old", "new", ".half.partial"):
        (folder.exchange / "layers" / name).mkdir(parents=True)
    nextboot.drop_layers(folder, msgspec.structs.replace(IMAGE, layers=(str(folder.exchange / "layers/new"),)), None)
    assert [path.name for path in (folder.exchange / "layers").iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("phase", "supervised", "alive", "state"),
    [
        ("booting", True, False, "booting"),
        ("running", True, True, "running"),
        ("running", False, True, "unsupervised"),
        ("running", False, False, "off"),
        ("off", False, False, "off"),
    ],
)
def test_what_a_launcher_wrote_counts_only_as_long_as_it_runs(phase: str, supervised: bool, alive: bool, state: str) -> None:
    status = msgspec.convert({"phase": phase}, Status)
    assert hosts.observed(status, supervised=supervised, alive=alive) == state


def test_a_host_that_died_is_noticed_and_told_of(tmp_path: Path) -> None:
    made = host()
    lab = saved_lab(tmp_path, made)
    dead = Process(pid=os.getpid(), started=1, boot="the one before")
    lab.save_status("a", Status(phase="running", launcher=dead, leader=dead, boots=1))
    (info,) = hosts.list_hosts(lab)
    assert (info.state, info.pid, info.message) == ("off", 0, "it died, and its launcher too")
    with pytest.raises(OperatorError, match="the host a is off: start it with `slipway lab host start a`"):
        hosts.capture(lab, "a", ["true"])


@pytest.mark.parametrize(
    "action", [hosts.stop, hosts.power_off, hosts.delete, hosts.cut, hosts.restore_link, hosts.begin, hosts.wait_running]
)
def test_an_unknown_host_is_refused_before_anything_is_done(tmp_path: Path, action: Callable[[Lab, str], object]) -> None:
    lab = saved_lab(tmp_path)
    with pytest.raises(OperatorError):
        action(lab, "x")
    assert lab.host_names() == []


def test_logs_are_read_from_the_machines_own_files() -> None:
    console, journal = Path("/h/console.log"), Path("/h/upper/var/log/journal")
    assert hosts.log_command(console, journal, console=True, follow=False, unit="", lines=0) == ["tail", "--lines=+1", "/h/console.log"]
    assert hosts.log_command(console, journal, console=False, follow=True, unit="kubelet", lines=20) == [
        "journalctl",
        "--directory=/h/upper/var/log/journal",
        "--no-pager",
        "--follow",
        "--unit=kubelet",
        "--lines=20",
    ]


def test_who_is_not_root_is_told_to_use_sudo() -> None:
    with pytest.raises(OperatorError, match="virtual hosts need root: run the command again with sudo"):
        requirements.check_machine(user_id=1000)


def test_a_missing_program_is_named_with_the_package_that_has_it() -> None:
    missing = {"systemd-nspawn", "nsenter", "unshare"}
    with pytest.raises(OperatorError) as refused:
        requirements.check_machine(user_id=0, which=lambda program: None if program in missing else f"/bin/{program}")
    assert "systemd-nspawn, nsenter, unshare not found" in refused.value.message
    assert "apt install systemd-container util-linux" in refused.value.message


def test_a_disk_that_is_too_full_is_refused(tmp_path: Path) -> None:
    requirements.check_space(tmp_path / "not" / "there", 0)
    with pytest.raises(OperatorError, match=r"GiB are free at .* and a host needs 1e\+09 GiB: free some space"):
        requirements.check_space(tmp_path / "not" / "there", 1e9)


def test_a_file_of_a_host_replaces_a_link_of_the_image_instead_of_following_it(tmp_path: Path) -> None:
    outside = tmp_path / "stub-resolv.conf"
    outside.write_text("the machine's own")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "resolv.conf").symlink_to(outside)
    launcher.write_file(root, File("/etc/resolv.conf", "nameserver 192.0.2.53\n", 0o644))
    launcher.write_file(root, File("/etc/systemd/system/x.wants/y", target="/lib/y"))
    assert outside.read_text() == "the machine's own"
    assert (root / "etc" / "resolv.conf").read_text() == "nameserver 192.0.2.53\n"
    assert os.readlink(root / "etc/systemd/system/x.wants/y") == "/lib/y"


def test_the_launcher_lives_in_a_mount_namespace_of_its_own(tmp_path: Path) -> None:
    command = launcher.command(saved_lab(tmp_path), "a")
    assert command[command.index("unshare") :][:4] == ["unshare", "--mount", "--propagation", "slave"]
    assert command[-2:] == [str(tmp_path / "dev"), "a"]
