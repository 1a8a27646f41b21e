"""Forwarding between the machine's networks: on while any lab is up, and afterwards as it was before.

The setting belongs to the machine and not to one lab, so the labs that need it are on record in one place that does not
outlive the machine's start, as the setting does not.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from slipway.lab import locks
from slipway.lab.state import RUN_FOLDER
from slipway.node.host import RealHost

SETTING = Path("/proc/sys/net/ipv4/ip_forward")
RECORD = RUN_FOLDER / "forwarding.json"


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """What the setting was, and the folders of the labs that need it on."""

    before: str
    labs: tuple[str, ...]


def with_lab(holders: Holders | None, current: str, lab: str) -> Holders:
    """The record once a lab needs forwarding; the first one remembers what was set before."""
    if holders is None:
        return Holders(before=current, labs=(lab,))
    return holders if lab in holders.labs else Holders(before=holders.before, labs=(*holders.labs, lab))


def without_labs(holders: Holders, gone: set[str]) -> Holders | None:
    """The record once some labs need forwarding no more; None when nobody does."""
    left = tuple(lab for lab in holders.labs if lab not in gone)
    return Holders(before=holders.before, labs=left) if left else None


def hold(lab: Path, *, setting: Path = SETTING, record: Path = RECORD) -> None:
    """Switch forwarding on for a lab, and remember what it was."""
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locks.locked(record.with_suffix(".lock")):
        _save(record, with_lab(_load(record), setting.read_text().strip(), str(lab)))
        if setting.read_text().strip() != "1":
            setting.write_text("1\n")


def release(lab: Path, *, setting: Path = SETTING, record: Path = RECORD) -> None:
    """The lab needs forwarding no more: with the last one, what was set before comes back."""
    lock = record.with_suffix(".lock")
    if not record.exists():
        return
    with locks.locked(lock):
        holders = _load(record)
        if holders is None:
            return
        # A lab whose folder was removed by hand will never say that it is gone.
        gone = {str(lab), *(held for held in holders.labs if not Path(held).exists())}
        left = without_labs(holders, gone)
        if left is not None:
            _save(record, left)
            return
        if setting.read_text().strip() != holders.before:
            setting.write_text(f"{holders.before}\n")
        record.unlink()
        lock.unlink()


def _load(record: Path) -> Holders | None:
    return msgspec.json.decode(record.read_bytes(), type=Holders) if record.exists() else None


def _save(record: Path, holders: Holders) -> None:
    RealHost().write(str(record), msgspec.json.encode(holders), 0o600)
