"""First boots of many hosts: each one has the container images of its OS image afterwards, without a second try.

``SLIPWAY_E2E_FIRST_BOOTS`` says how many hosts boot; as a fault of one boot in sixty is what this looks for, a proof takes 100.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from e2e.labcli import LabCommands

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.lab.images import archives

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="boots real hosts: run it with `make e2e`"),
]

VERSION = "v1.35.4"
BOOTS = int(os.environ.get("SLIPWAY_E2E_FIRST_BOOTS", "4"))
AT_A_TIME = 4


@pytest.fixture
def lab() -> Iterator[LabCommands]:
    commands = LabCommands(f"boots-{os.getpid() % 10000}")
    try:
        commands.run("image", "build", "--kubernetes-version", VERSION, patience=3600)
        yield commands
    finally:
        commands.run("down", check=False)


def test_every_first_boot_loads_every_image_at_once(lab: LabCommands) -> None:
    expected = set(archives.names(release_for(Version.parse(VERSION))).values())
    left = BOOTS
    while left > 0:
        lab.run("up", "--image", VERSION, "--hosts", str(min(left, AT_A_TIME)))
        for host in lab.hosts():
            lab.on(host, "systemctl start slipway-lab-images")  # joins the start that the boot began
            journal = lab.on(host, "journalctl --quiet --unit slipway-lab-images --output cat")
            assert "tar:" not in journal, journal
            assert "Failed with result" not in journal, journal
            assert expected <= set(lab.on(host, "ctr --namespace k8s.io images ls --quiet").split())
            lab.run("host", "delete", host)
            left -= 1
