"""Every golden case, run with our program: files, objects and exit codes are those of the real kubeadm of that release."""

from __future__ import annotations

import errno
import ipaddress
from pathlib import Path

import pytest
from cases.golden import Case, HostFacts, all_cases, described_files, normalised_stdout, printed_blocks, read_golden

from slipway.cli.main import main
from slipway.host.interface import CommandResult
from slipway.host.real import RealHost

pytestmark = pytest.mark.recorded

RUNS = [pytest.param(case, version, id=f"{case.name}-{version}") for case in all_cases() for version in case.releases]


class GoldenHost(RealHost):
    """A machine with the facts of a case and nothing else: its root is a folder, its commands are what the case says."""

    def __init__(self, root: Path, facts: HostFacts, dry: Path, version: str) -> None:
        folders = {f"KUBEADM_{command}_DRYRUN_DIR": str(dry) for command in ("INIT", "JOIN", "UPGRADE")}
        super().__init__(str(root), {"PATH": "/bin", "SLIPWAY_AS_KUBEADM": version, **folders, **facts.environment})
        self._facts = facts

    def hostname(self) -> str:
        return self._facts.hostname

    def user_id(self) -> int:
        return 0

    def addresses(self, interface: str) -> list[str]:
        return [address.partition("/")[0] for address in self._facts.addresses] if interface == "eth0" else []

    def which(self, program: str) -> str | None:
        return "/bin/systemctl" if program == "systemctl" and self._facts.active_services else None

    def fetch(self, url: str, *, ca: str = "", identity: tuple[str, str] | None = None, timeout: float = 10.0) -> bytes:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    def run(self, *command: str) -> CommandResult:
        active = command[-1].removesuffix(".service") in self._facts.active_services
        return CommandResult(0, "active\n", "") if active else CommandResult(3, "", "")


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[GoldenHost, Path]:
    case, version = request.node.callspec.params["case"], request.node.callspec.params["version"]
    root, dry = tmp_path / "root", tmp_path / "dry"
    dry.mkdir()
    for folder in ("/proc/net", "/tmp", "/case", "/etc", "/var/lib", *case.host.folders):
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    files = {**case.host.files, "/proc/net/route": _ipv4_routes(case.host), "/proc/net/ipv6_route": _ipv6_routes(case.host)}
    if case.config:
        files["/case/config.yaml"] = case.config
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace("${VERSION}", version))
    return GoldenHost(root, case.host, dry, version), dry


@pytest.mark.parametrize(("case", "version"), RUNS)
def test_outcome_is_that_of_the_real_kubeadm(
    case: Case, version: str, machine: tuple[GoldenHost, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, dry = machine
    expected = read_golden(case, version)
    monkeypatch.setattr("sys.argv", ["kubeadm"])
    code = main(case.argv(version), host)
    output = capsys.readouterr()

    assert code == expected["exit"], output.err
    if code:
        assert output.err.strip(), "a failure without a sentence"
        assert set(described_files(dry, "")) <= set(expected["files"]), "a failure that leaves more behind than the real one"
        return
    stdout = normalised_stdout(output.out, str(dry), case)
    assert printed_blocks(stdout) == printed_blocks(expected["stdout"])
    assert lines_of_a_run(stdout) == lines_of_a_run(expected["stdout"])
    assert described_files(dry, output.out) == expected["files"]


def lines_of_a_run(text: str) -> list[str]:
    """The lines that tell what was done, in order; what the recorder's kernel was found to lack is not part of it."""
    # A slip of the real one that docs/compatibility.md names.
    lines = [line.replace("to run run as", "to run as") for line in text.splitlines() if line.startswith("[")]
    lines = [line for line in lines if not line.startswith("[preflight] The system verification failed")]
    # A join of the real one makes certificates in the order of a Go map, which is that of chance.
    made = iter(sorted(line for line in lines if line.startswith("[certs] ")))
    return [next(made) if line.startswith("[certs] ") else line for line in lines]


def _ipv4_routes(facts: HostFacts) -> str:
    """The kernel's table: a network and a default route for each address, as /proc/net/route shows them."""
    lines = ["Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT"]
    for interface in (ipaddress.ip_interface(address) for address in facts.addresses):
        if interface.version == 4:
            lines.append("eth0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0")
            network, mask = (
                int.from_bytes(part.packed, "little") for part in (interface.network.network_address, interface.network.netmask)
            )
            lines.append(f"eth0\t{network:08X}\t00000000\t0001\t0\t0\t0\t{mask:08X}\t0\t0\t0")
    return "\n".join(lines) + "\n"


def _ipv6_routes(facts: HostFacts) -> str:
    lines = []
    for interface in (ipaddress.ip_interface(address) for address in facts.addresses):
        if interface.version == 6:
            network = interface.network.network_address.packed.hex()
            prefix = interface.network.prefixlen
            lines.append(f"{network} {prefix:02x} {'0' * 32} 00 {'0' * 32} 00000100 00000001 00000000 00000001     eth0")
            lines.append(f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} 00000400 00000001 00000000 00000001     eth0")
    return "".join(f"{line}\n" for line in lines)


def test_the_cases_are_many_and_all_recorded() -> None:
    recorded = [(case.name, version) for case in all_cases() for version in case.releases if read_golden(case, version)]
    assert len(recorded) >= 60 * 4
