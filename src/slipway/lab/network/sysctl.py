"""Settings of the machine's kernel that labs need: held while any lab is up, and afterwards as they were before.

They belong to the machine and not to one lab, so the labs that need them are on record in one place that does not outlive
the machine's start, as the settings do not.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from slipway.host.real import RealHost
from slipway.lab.record import RUN_FOLDER, locked

SETTINGS = {
    # Between the networks of hosts, of Pods, and of the machine.
    Path("/proc/sys/net/ipv4/ip_forward"): 1,
    # A control plane host takes about 35 instances: systemd, containerd, the kubelet, kube-proxy and what they run.
    Path("/proc/sys/fs/inotify/max_user_instances"): 1024,
}
"""The least that each setting has to be."""
RECORD = RUN_FOLDER / "kernelsettings.json"


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings were, and the folders of the labs that need them."""

    before: dict[str, int]
    labs: tuple[str, ...]


def with_lab(holders: Holders | None, current: dict[str, int], lab: str) -> Holders:
    """The record once a lab needs the settings; the first one remembers what was set before."""
    if holders is None:
        return Holders(before=current, labs=(lab,))
    return holders if lab in holders.labs else Holders(before=holders.before, labs=(*holders.labs, lab))


def without_labs(holders: Holders, gone: set[str]) -> Holders | None:
    """The record once some labs need the settings no more; None when nobody does."""
    left = tuple(lab for lab in holders.labs if lab not in gone)
    return Holders(before=holders.before, labs=left) if left else None


def hold(lab: Path, *, settings: dict[Path, int] = SETTINGS, record: Path = RECORD) -> None:
    """Bring the settings to what a lab needs, and remember what they were."""
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(record.with_suffix(".lock")):
        current = {str(path): int(path.read_text()) for path in settings}
        _save(record, with_lab(_load(record), current, str(lab)))
        for path, least in settings.items():
            if current[str(path)] < least:
                path.write_text(f"{least}\n")


def release(lab: Path, *, record: Path = RECORD) -> None:
    """The lab needs the settings no more: with the last one, what was set before comes back."""
    lock = record.with_suffix(".lock")
    if not record.exists():
        return
    with locked(lock):
        holders = _load(record)
        if holders is None:
            return
        # A lab whose folder was removed by hand will never say that it is gone.
        gone = {str(lab), *(held for held in holders.labs if not Path(held).exists())}
        left = without_labs(holders, gone)
        if left is not None:
            _save(record, left)
            return
        for name, value in holders.before.items():
            if int(Path(name).read_text()) != value:
                Path(name).write_text(f"{value}\n")
        record.unlink()
        lock.unlink()


def _load(record: Path) -> Holders | None:
    return msgspec.json.decode(record.read_bytes(), type=Holders) if record.exists() else None


def _save(record: Path, holders: Holders) -> None:
    RealHost().write(str(record), msgspec.json.encode(holders), 0o600)
