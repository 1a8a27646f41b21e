"""A lab and a host on record, for tests that decide something about them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

from slipway.lab import record
from slipway.lab.record import HostRecord, ImageRecord, Lab, LabRecord

IMAGE = ImageRecord(digest="d1", version="v1.34.10", layers=("/os/d1/layer", "/os/base"))
LAB = LabRecord(
    name="dev", tag="0123abcd", bridge="sw-dev", hosts="10.88.3.0/24", pods="10.130.0.0/16", created=datetime(2026, 1, 2, tzinfo=UTC)
)


def host(name: str = "a", *others: HostRecord) -> HostRecord:
    return record.new_host(LAB, others, name, IMAGE, uuid.UUID("51235d84-183a-47d5-b67f-c04d8eef9ae1"))


def saved_lab(folder: Path, *hosts: HostRecord) -> Lab:
    lab = Lab("dev", folder / "dev")
    lab.save(LAB)
    for made in hosts:
        lab.save_host(made)
    return lab
