"""The management plane without its programs: what they would be started with, what is on record, what is refused."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from lab.recorded_progress import RecordedProgress

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.host.progress import Progress
from slipway.lab import processes
from slipway.lab.management import plan, plane, ports, status
from slipway.lab.management import state as managementstate
from slipway.lab.management.state import State

PORTS = {"etcd": 23001, "kube-apiserver": 23002, "kube-controller-manager": 23003, "etcd-peer": 23004}
VERSION = "v1.35.4"


@pytest.fixture
def progress() -> RecordedProgress:
    return RecordedProgress()


def scripts(folder: Path, **bodies: str) -> dict[str, Path]:
    """Programs that are shell scripts; without a body they end at once."""
    made = {}
    for name in plan.PROGRAMS:
        made[name] = folder / name
        made[name].write_text(f"#!/bin/sh\n{bodies.get(name, 'exit 1')}\n")
        made[name].chmod(0o755)
    return made


def flags(command: list[str]) -> dict[str, str]:
    return dict(word.removeprefix("--").split("=", 1) for word in command[1:])


def command(folder: Path, name: str, progress: Progress, version: str = VERSION) -> list[str]:
    ctx = plan.context(folder, Version.parse(version), PORTS, progress)
    return plan.command(ctx, name, Path("/bin") / name)


@pytest.mark.parametrize("version", ["v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3"])
def test_the_api_server_authorizes_with_rbac_and_stays_on_the_loopback_address(
    version: str, tmp_path: Path, progress: RecordedProgress
) -> None:
    given = flags(command(tmp_path, "kube-apiserver", progress, version))
    assert given["authorization-mode"] == "Node,RBAC"
    assert given["enable-admission-plugins"] == "NodeRestriction"
    assert given["bind-address"] == given["advertise-address"] == "127.0.0.1"
    assert given["secure-port"] == "23002"
    assert given["etcd-servers"] == "https://127.0.0.1:23001"
    assert given["allow-privileged"] == "true"
    assert "anonymous-auth" not in given
    assert progress.warnings == []


def test_an_api_server_that_hosts_reach_is_on_the_bridge_and_the_others_stay_on_loopback(
    tmp_path: Path, progress: RecordedProgress
) -> None:
    ctx = plan.context(tmp_path, Version.parse(VERSION), PORTS, progress, "10.88.3.1")
    given = {name: flags(plan.command(ctx, name, Path(name))) for name in plan.PROGRAMS}
    assert given["kube-apiserver"]["bind-address"] == given["kube-apiserver"]["advertise-address"] == "10.88.3.1"
    assert given["kube-apiserver"]["etcd-servers"] == given["etcd"]["listen-client-urls"] == "https://127.0.0.1:23001"
    assert given["kube-controller-manager"]["bind-address"] == "127.0.0.1"
    plan.make_etcd_credentials(ctx)
    plan.make_other_credentials(ctx)
    assert "server: https://10.88.3.1:23002\n" in (tmp_path / "kubeconfig").read_text()
    served = x509.load_pem_x509_certificate((tmp_path / "etc/kubernetes/pki/apiserver.crt").read_bytes())
    names = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"10.88.3.1", "127.0.0.1"} <= {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert plan.server(PORTS, "10.88.3.1") == "https://10.88.3.1:23002"


def test_a_plane_is_not_moved_to_another_address() -> None:
    there = State(version=VERSION, address="10.88.3.1")
    for same in (None, "10.88.3.1"):
        plane.check_address(there, same)
    with pytest.raises(OperatorError, match=r"listens on 10\.88\.3\.1 and not on 127\.0\.0\.1: begin anew"):
        plane.check_address(there, "127.0.0.1")


def test_etcd_wants_client_certificates_on_the_loopback_address(tmp_path: Path, progress: RecordedProgress) -> None:
    given = flags(command(tmp_path, "etcd", progress))
    assert given["client-cert-auth"] == given["peer-client-cert-auth"] == "true"
    assert given["listen-client-urls"] == given["advertise-client-urls"] == "https://127.0.0.1:23001"
    assert given["listen-peer-urls"] == given["initial-advertise-peer-urls"] == "https://127.0.0.1:23004"
    assert given["initial-cluster"] == "management=https://127.0.0.1:23004"
    assert given["data-dir"] == f"{tmp_path}/etcd"


def test_the_controller_manager_leads_at_once_on_its_own_port(tmp_path: Path, progress: RecordedProgress) -> None:
    given = flags(command(tmp_path, "kube-controller-manager", progress))
    assert given["leader-elect"] == "false"
    assert given["bind-address"] == "127.0.0.1"
    assert given["secure-port"] == "23003"
    assert given["use-service-account-credentials"] == "true"


@pytest.mark.parametrize("name", plan.PROGRAMS)
def test_no_program_uses_a_file_outside_of_the_folder(name: str, tmp_path: Path, progress: RecordedProgress) -> None:
    files = [value for value in flags(command(tmp_path, name, progress)).values() if value.startswith("/")]
    assert files
    assert all(value.startswith(f"{tmp_path}/") for value in files)


@pytest.mark.parametrize("name", plan.PROGRAMS)
def test_every_file_that_a_program_is_given_was_made(name: str, tmp_path: Path, progress: RecordedProgress) -> None:
    ctx = plan.context(tmp_path, Version.parse(VERSION), PORTS, progress)
    plan.make_etcd_credentials(ctx)
    plan.make_other_credentials(ctx)
    files = [value for value in flags(plan.command(ctx, name, Path("x"))).values() if value.startswith("/")]
    assert [value for value in files if not Path(value).exists()] == []


def test_the_kubeconfig_is_for_its_owner_only_and_follows_the_port(tmp_path: Path, progress: RecordedProgress) -> None:
    def made(port: int) -> str:
        ctx = plan.context(tmp_path, Version.parse(VERSION), {**PORTS, "kube-apiserver": port}, progress)
        plan.make_other_credentials(ctx)
        return (tmp_path / "kubeconfig").read_text()

    plan.make_etcd_credentials(plan.context(tmp_path, Version.parse(VERSION), PORTS, progress))
    first = made(23002)
    assert "server: https://127.0.0.1:23002\n" in first
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600
    assert made(23002) == first
    assert "server: https://127.0.0.1:23005\n" in made(23005)


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    process = processes.Process(pid=4711, started=17, boot="b")
    state = State(version=VERSION, ports=PORTS, processes={"etcd": process})
    managementstate.save(tmp_path, state)
    assert managementstate.load(tmp_path) == state


@pytest.mark.parametrize("content", ["", "{", '{"ports": {}}', '{"version": "v1.35.4", "ports": {"etcd": "x"}}'])
def test_a_record_that_cannot_be_read_is_refused_by_name(content: str, tmp_path: Path) -> None:
    (tmp_path / "management.json").write_text(content)
    with pytest.raises(OperatorError, match=r"management\.json is not the record of a management plane"):
        status.status(tmp_path)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [("v1.12.3", "v1.12.3 is not supported"), ("newest", '"newest" is not a Kubernetes version'), ("", '"" is not a Kubernetes version')],
)
def test_an_unknown_version_is_refused_before_anything_is_made(
    version: str, sentence: str, tmp_path: Path, progress: RecordedProgress
) -> None:
    with pytest.raises(OperatorError, match=sentence):
        plane.up(tmp_path / "plane", version, scripts(tmp_path), progress)
    assert not (tmp_path / "plane").exists()


def test_a_missing_program_is_named_before_anything_is_made(tmp_path: Path, progress: RecordedProgress) -> None:
    programs = scripts(tmp_path)
    programs["kube-apiserver"].unlink()
    with pytest.raises(OperatorError, match=r"kube-apiserver is missing: .*; `slipway lab components v1\.35\.4` gets it"):
        plane.up(tmp_path / "plane", VERSION, programs, progress)
    del programs["etcd"]
    with pytest.raises(OperatorError, match="the program etcd is missing"):
        plane.up(tmp_path / "plane", VERSION, programs, progress)
    assert not (tmp_path / "plane").exists()


def test_a_program_that_is_not_executable_is_refused(tmp_path: Path, progress: RecordedProgress) -> None:
    programs = scripts(tmp_path)
    programs["etcd"].chmod(0o644)
    with pytest.raises(OperatorError, match=r"etcd cannot be run: .* is not executable"):
        plane.up(tmp_path / "plane", VERSION, programs, progress)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, progress: RecordedProgress) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match=r"cannot make the folder .*/file/plane: Not a directory"):
        plane.up(tmp_path / "file" / "plane", VERSION, scripts(tmp_path), progress)


def test_without_a_free_port_no_folder_is_left(tmp_path: Path, progress: RecordedProgress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(OperatorError, match="no port for etcd is free"):
        plane.up(tmp_path / "labs" / "plane", VERSION, scripts(tmp_path), progress)
    assert not (tmp_path / "labs").exists()


def test_a_program_that_ends_is_told_with_its_last_lines_and_the_cause(tmp_path: Path, progress: RecordedProgress) -> None:
    programs = scripts(tmp_path, etcd="echo 'listen tcp 127.0.0.1:1: bind: address already in use' >&2; exit 1")
    with pytest.raises(OperatorError) as caught:
        plane.up(tmp_path / "plane", VERSION, programs, progress)
    text = caught.value.message
    assert text.startswith("etcd ended while it was starting. Most likely another program took its port")
    assert text.endswith("\n    listen tcp 127.0.0.1:1: bind: address already in use")
    state = managementstate.load(tmp_path / "plane")
    assert state is not None
    assert state.processes == {}


def test_a_file_in_the_way_is_named(tmp_path: Path, progress: RecordedProgress) -> None:
    (tmp_path / "plane").mkdir()
    (tmp_path / "plane" / "logs").write_text("")
    with pytest.raises(OperatorError, match=rf"cannot use {tmp_path}/plane/logs: File exists"):
        plane.up(tmp_path / "plane", VERSION, scripts(tmp_path), progress)


def test_certificates_that_do_not_belong_together_are_told_with_the_folder(tmp_path: Path, progress: RecordedProgress) -> None:
    ctx = plan.context(tmp_path, Version.parse(VERSION), PORTS, progress)
    plan.make_etcd_credentials(ctx)
    plan.make_other_credentials(ctx)
    pki = tmp_path / "etc" / "kubernetes" / "pki"
    (pki / "etcd" / "ca.crt").write_bytes((pki / "ca.crt").read_bytes())
    with pytest.raises(OperatorError, match=rf"below {tmp_path}/ cannot be used: .* does not match the certificate"):
        plan.make_etcd_credentials(ctx)


def test_a_process_of_another_start_of_the_machine_is_gone(tmp_path: Path, progress: RecordedProgress) -> None:
    stranger = processes.Process(pid=os.getpid(), started=1, boot="1c2fd2c6-0000-4000-8000-a6a9b8c7d6e5")
    managementstate.save(tmp_path, State(version=VERSION, ports=PORTS, processes={"etcd": stranger}))
    assert [program.running for program in status.status(tmp_path).programs] == [False, False, False]
    plane.down(tmp_path, progress)
    assert progress.warnings == [
        f"[management] etcd has ended before, and another program has its process number {os.getpid()}: it is left alone"
    ]
    assert managementstate.load(tmp_path) == State(version=VERSION, ports=PORTS)


def test_purge_removes_what_is_ours_and_keeps_the_rest(tmp_path: Path, progress: RecordedProgress) -> None:
    for name in ("etcd", "etc", "logs", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "kubeconfig").write_text("")
    managementstate.save(tmp_path, State(version=VERSION))
    plane.down(tmp_path, progress, purge=True)
    assert os.listdir(tmp_path) == ["other"]
    assert "has other things in it: other" in progress.warnings[0]


def test_down_where_nothing_is_says_so_and_removes_nothing(tmp_path: Path, progress: RecordedProgress) -> None:
    (tmp_path / "etcd").mkdir()
    plane.down(tmp_path, progress, purge=True)
    plane.down(tmp_path / "absent", progress, purge=True)
    assert [line.split(" in ")[0] for line in progress.lines] == ["[management] There is no management plane"] * 2
    assert (tmp_path / "etcd").is_dir()


def test_another_run_is_kept_away(tmp_path: Path, progress: RecordedProgress) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(OperatorError, match="another run works on the management plane"):
            plane.up(tmp_path, VERSION, scripts(tmp_path), progress)
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    ("has", "wanted", "running", "has_data", "sentence"),
    [
        ("v1.35.4", "v1.35.4", True, True, ""),
        ("v1.34.10", "v1.35.4", False, True, ""),
        ("v1.35.4", "v1.35.3", False, True, ""),
        ("v1.35.4", "v1.34.10", False, False, ""),
        ("v1.34.10", "v1.35.4", True, True, "runs v1.34.10: end it with `down` before it is started as v1.35.4"),
        ("v1.35.4", "v1.34.10", False, True, "is that of v1.35.4, and v1.34.10 cannot read it"),
    ],
)
def test_which_version_a_plane_can_become(has: str, wanted: str, running: bool, has_data: bool, sentence: str) -> None:
    def check() -> None:
        plane.check_version(State(version=has), Version.parse(wanted), {"etcd"} if running else set(), has_data=has_data)

    if sentence:
        with pytest.raises(OperatorError, match=sentence):
            check()
    else:
        check()


def test_the_status_is_data_for_json(tmp_path: Path) -> None:
    managementstate.save(tmp_path, State(version=VERSION, ports=PORTS))
    shown = msgspec.to_builtins(status.status(tmp_path))
    assert shown["server"] == "https://127.0.0.1:23002"
    assert shown["exists"]
    assert not shown["healthy"]
    assert [program["name"] for program in shown["programs"]] == ["etcd", "kube-apiserver", "kube-controller-manager"]
    assert msgspec.to_builtins(status.status(tmp_path / "absent"))["exists"] is False
