"""Hosts that register at a manager on a real kube-apiserver, and what their credentials are good for there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from e2e.planes import connection_of, management_plane, real_server
from fleet.inventory import trying
from fleet.inventory.management import Elsewhere, Management

from slipway.credentials.tpm.software import SoftwareTPM
from slipway.fleet.inventory.seed import content, iso
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection

pytestmark = real_server


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with management_plane(tmp_path_factory.mktemp("management")) as plane:
        yield connection_of(plane.kubeconfig)


@pytest.mark.asyncio
async def test_a_host_reads_and_updates_its_own_secret_and_may_do_nothing_else(admin: Connection) -> None:
    tpm = SoftwareTPM.of_keys(*(rsa.generate_private_key(65537, 2048) for _ in range(2)))
    async with AsyncClient(admin) as client, Management(Elsewhere(admin), client) as management:
        assert await trying.attempted(management, tpm) > 300


@pytest.mark.asyncio
async def test_a_seed_is_an_iso_that_can_be_read_back(tmp_path: Path) -> None:
    if not shutil.which("xorriso"):
        subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", "xorriso"], check=True, capture_output=True, timeout=600)
    files = content.files({"elemental": {"registration": {"url": "https://192.0.2.1"}}}, {})
    (tmp_path / "seed.iso").write_bytes(await iso.build(files))
    read = ["xorriso", "-osirrox", "on", "-indev", str(tmp_path / "seed.iso"), "-extract", "/", str(tmp_path / "out")]
    told = subprocess.run(read, capture_output=True, text=True, check=True)
    assert {each.name: each.read_bytes() for each in (tmp_path / "out").iterdir()} == files
    assert "Volume id    : 'cidata'" in told.stderr
