"""keepalived.conf: what it must say, and that keepalived itself takes it."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from slipway.workload import alive
from slipway.workload.alive import keepalived

HOSTS = ["192.0.2.11", "192.0.2.12", "192.0.2.13"]


def rendered(address: str = "192.0.2.11", hosts: list[str] | None = None, device: str = "eth0") -> str:
    return alive.configuration("192.0.2.100", device, address, hosts or HOSTS, 51)


def statements(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "statement",
    [
        "state BACKUP",
        "nopreempt",
        "virtual_router_id 51",
        "unicast_src_ip 192.0.2.11",
        "check_unicast_src",
        "unicast_fault_no_peer",
        "192.0.2.100/32 dev eth0",
    ],
)
def test_says_what_the_design_asks_for(statement: str) -> None:
    assert statement in statements(rendered())


def test_peers_are_all_hosts_but_this_one() -> None:
    found = re.search(r"unicast_peer \{([^}]*)\}", rendered())
    assert found is not None
    assert found[1].split() == ["192.0.2.12", "192.0.2.13"]


def test_a_host_without_a_ready_api_server_goes_to_fault() -> None:
    found = re.search(r"vrrp_script api_server \{([^}]*)\}", rendered())
    assert found is not None
    assert "https://192.0.2.11:6443/readyz" in found[1]
    assert "weight 0" in statements(found[1])


def test_no_two_hosts_have_the_same_priority() -> None:
    many = [f"192.0.2.{number}" for number in range(1, 51)]
    found = {re.search(r"priority (\d+)", rendered(address, many))[1] for address in many}  # type: ignore[index]
    assert len(found) == len(many)


def test_three_hosts_take_over_a_quarter_of_a_second_apart() -> None:
    skews = [
        (256 - keepalived.priority(alive.host_values(vip="192.0.2.100", interface="eth0", address=host, peers=HOSTS, vrid=1))) / 256
        for host in HOSTS
    ]
    assert min(later - earlier for earlier, later in pairwise(skews)) > 0.25
    assert skews[0] > 0.2


def test_keepalived_takes_the_file(tmp_path: Path) -> None:
    program = shutil.which("keepalived") or shutil.which("keepalived", path="/usr/sbin")
    if program is None:
        pytest.skip("keepalived is not on PATH: the end-to-end test has it in the host's image")
    devices = sorted(path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo" and (path / "address").exists())
    if not devices:
        pytest.skip("this machine has no network device, and keepalived wants the one of its configuration")
    path = tmp_path / "keepalived.conf"
    path.write_text(rendered(device=devices[0]).replace("/usr/bin/curl", "/bin/true"))
    done = subprocess.run([program, "--config-test", f"--use-file={path}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
