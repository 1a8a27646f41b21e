"""What Ignition 2.3 itself refuses or warns about in a config."""

from __future__ import annotations

import re
from itertools import permutations
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from slipway.api.machinery.fieldpath import quoted
from slipway.fleet.bootstrap.ignition import urls
from slipway.fleet.bootstrap.ignition.report import DEPRECATED, Check, Entry, Report, error, warning
from slipway.fleet.bootstrap.ignition.units import UnitError, sections

if TYPE_CHECKING:
    from collections.abc import Callable

Value = dict[str, Any]

_UNIT_TYPES = (
    ".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".snapshot", ".slice", ".scope",
)  # fmt: skip
_GUID = re.compile(r"(|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\Z")
_LABEL_LIMITS = {"ext4": 16, "btrfs": 256, "xfs": 12, "swap": 15, "vfat": 11}
_RAID_WITHOUT_SPARES = ("linear", "raid0", "0", "stripe")
_RAID_WITH_SPARES = ("raid1", "1", "mirror", "raid4", "4", "raid5", "5", "raid6", "6", "raid10", "10")
_SHA512_DIGITS = 128
# What a user may not have beside the old create object.
_CREATE_EXCLUDES = (
    "gecos", "groups", "homeDir", "noCreateHome", "noLogInit", "noUserGroup", "primaryGroup", "shell", "system", "uid",
)  # fmt: skip


def extension(path: str) -> str:
    """The name's ending with its dot, as Go's ``path.Ext`` gives it."""
    name = path.rpartition("/")[2]
    return name[name.rindex(".") :] if "." in name else ""


def _config(config: Value) -> Report:
    storage = config["storage"]
    filesystems = storage["filesystems"] or []
    known = {"root", *(filesystem["name"] for filesystem in filesystems)}
    report: Report = []
    for word, nodes in (("File", "files"), ("Link", "links"), ("Directory", "directories")):
        for node in storage[nodes] or ():
            if node["filesystem"] and node["filesystem"] not in known:
                report += warning(
                    f"{word} {quoted(node['path'])} references nonexistent filesystem {quoted(node['filesystem'])}."
                    " (This is ok if it is defined in a referenced config)"
                )
    seen = {"root"}
    for filesystem in filesystems:
        if filesystem["name"] in seen:
            report += warning(f"Filesystem {quoted(filesystem['name'])} shadows exising filesystem definition")
        seen.add(filesystem["name"])
    return report


def _path(path: str) -> Report:
    return [] if path.startswith("/") else error("path not absolute")


def _mode(node: Value) -> Report:
    if node["mode"] is None:
        return warning("permissions unset, defaulting to 0000")
    return [] if 0 <= node["mode"] <= 0o7777 else error("illegal file mode")


def _owner(owner: Value) -> Report:
    return error("cannot set both id and name") if owner["id"] is not None and owner["name"] else []


def _file(file: Value) -> Report:
    return error("cannot set both append and overwrite to true") if file["overwrite"] and file["append"] else []


def _compression(contents: Value) -> Report:
    return [] if contents["compression"] in ("", "gzip") else error("invalid compression method")


def _contents_source(contents: Value) -> Report:
    problem = _url_problem(contents["source"])
    return error(f"invalid url {quoted(contents['source'])}: {problem}") if problem else []


def _source(reference: Value) -> Report:
    problem = _url_problem(reference["source"])
    return error(problem) if problem else []


def _url_problem(url: str) -> str:
    if not url:
        return ""
    try:
        scheme, query = urls.split(url)
    except urls.URLError:
        return "unable to parse url"
    if scheme in ("http", "https", "oem", "tftp"):
        return ""
    if scheme == "s3":
        versions = parse_qs(query, keep_blank_values=True).get("versionId")
        return "invalid S3 object VersionId" if versions is not None and not versions[0] else ""
    return _data_url_problem(url) if scheme == "data" else "invalid url scheme"


def _data_url_problem(url: str) -> str:
    try:
        urls.check_data_url(url)
    except urls.DataURLError as problem:
        return str(problem)
    return ""


def _verification(verification: Value) -> Report:
    if verification["hash"] is None:
        return []
    function, dash, digits = verification["hash"].partition("-")
    if not dash:
        return error("malformed hash specifier")
    if function != "sha512":
        return error("unrecognized hash function")
    return [] if len(digits.encode()) == _SHA512_DIGITS else error("incorrect size for hash sum")


def _unit_sections(contents: str) -> tuple[list[str], Report]:
    try:
        return sections(contents), []
    except UnitError as problem:
        return [], error(f"invalid unit content: {problem}")


def _unit_contents(unit: Value) -> Report:
    found, problem = _unit_sections(unit["contents"])
    if problem:
        return problem
    if not (unit["enable"] or unit["enabled"]) or not found or "Install" in found:
        return []
    return warning(f"unit {quoted(unit['name'])} is enabled, but has no install section so enable does nothing")


def _named(endings: tuple[str, ...], what: str) -> Callable[[Value], Report]:
    return lambda unit: [] if extension(unit["name"]) in endings else error(f"invalid {what} extension")


def _unit_file(endings: tuple[str, ...], what: str) -> Check:
    name = _named(endings, what)
    return lambda unit: _unit_sections(unit["contents"])[1] + name(unit)


def _disk_device(disk: Value) -> Report:
    return _path(disk["device"]) if disk["device"] else error("disk device is required")


def _disk_partitions(disk: Value) -> Report:
    partitions = disk["partitions"] or []
    numbers = [partition["number"] for partition in partitions if partition["number"]]
    problems = {
        "partition numbers collide": len(set(numbers)) < len(numbers),
        "partitions overlap": any(_overlap(one, other) for one, other in permutations(filter(_is_placed, partitions), 2) if one != other),
        "partitions misaligned": any((partition["start"] or 0) % 2048 for partition in partitions),
        "shouldExist is false for a partition and other partition(s) has start or size 0": any(
            partition["shouldExist"] is False for partition in partitions
        )
        and len(numbers) < len(partitions),
        "cannot mix MBs and sectors within a disk": any(map(_in_sectors, partitions)) and any(map(_in_megabytes, partitions)),
    }
    return [entry for message, is_so in problems.items() if is_so for entry in error(message)]


def _in_sectors(partition: Value) -> bool:
    return partition["size"] is not None or partition["start"] is not None


def _in_megabytes(partition: Value) -> bool:
    return partition["sizeMiB"] is not None or partition["startMiB"] is not None


def _is_placed(partition: Value) -> bool:
    """Whether it says in sectors where it is; few do, and no Container Linux Config."""
    return partition["size"] is not None and bool(partition["start"])


def _overlap(one: Value, other: Value) -> bool:
    (start, end), (begin, stop) = ((part["start"], part["start"] + max(part["size"] - 1, 0)) for part in (one, other))
    return bool(begin <= start <= stop or begin <= end <= stop or (start < begin and end > stop))


def _partition(partition: Value) -> Report:
    report: Report = []
    if _in_sectors(partition) and _in_megabytes(partition):
        report += error("cannot mix MBs and sectors within a disk")
    others = partition["label"] is not None or partition["typeGuid"] or partition["guid"] or _in_sectors(partition)
    if partition["shouldExist"] is False and others:
        report += error("shouldExist specified false with other options also specified")
    return report


def _partition_label(partition: Value) -> Report:
    label = partition["label"]
    if label is None:
        return []
    report = error("partition labels may not exceed 36 characters") if len(label.encode()) > 36 else []
    return report + (warning("partition label will be truncated to text before the colon") if ":" in label else [])


def _guid(key: str) -> Check:
    form = error('doesn\'t match the form "01234567-89AB-CDEF-EDCB-A98765432101"')
    return lambda partition: [] if _GUID.match(partition[key]) else form


def _deprecated(key: str, message: str) -> Check:
    return lambda partition: [] if partition[key] is None else [Entry(DEPRECATED, message)]


def _filesystem(filesystem: Value) -> Report:
    mount, path = filesystem["mount"], filesystem["path"]
    if mount is None:
        return error("filesystem is missing mount or path") if path is None else []
    report = error("filesystem has both mount and path defined") if path is not None else []
    if mount["create"] is not None:
        if mount["wipeFilesystem"]:
            report += error("cannot use both create object and wipeFilesystem field")
        if mount["options"]:
            report += error("cannot use both create object and mount-level options field")
        report += warning("the create object has been deprecated in favor of mount-level options")
    return report


def _filesystem_path(filesystem: Value) -> Report:
    bad = filesystem["path"] is not None and _path(filesystem["path"])
    return error(f"filesystem {quoted(filesystem['name'])}: path not absolute") if bad else []


def _mount(mount: Value) -> Report:
    return [] if mount["format"] in _LABEL_LIMITS else error("invalid filesystem format")


def _mount_label(mount: Value) -> Report:
    limit = _LABEL_LIMITS.get(mount["format"])
    if mount["label"] is None or limit is None or len(mount["label"].encode()) <= limit:
        return []
    return error(f"filesystem labels cannot be longer than {limit} characters when using {mount['format']}")


def _raid_level(raid: Value) -> Report:
    if raid["level"] in _RAID_WITHOUT_SPARES:
        return error("spares unsupported for arrays with a level greater than 0") if raid["spares"] else []
    return [] if raid["level"] in _RAID_WITH_SPARES else error("unrecognized raid level")


def _user(user: Value) -> Report:
    if user["create"] is None:
        return []
    report = warning("the create object has been deprecated in favor of user-level options")
    for key in _CREATE_EXCLUDES:
        if user[key] is not None if key == "uid" else user[key]:
            report += error(f"cannot use both the create object and the user-level {key} field")
    return report


_NODE_CHECKS: dict[str, Check] = {
    "Filesystem": lambda node: [] if node["filesystem"] else error("no filesystem specified"),
    "Path": lambda node: _path(node["path"]),
}

CHECKS: dict[tuple[str, str], Check] = {
    ("Config", ""): _config,
    ("ConfigReference", "Source"): _source,
    ("CaReference", "Source"): _source,
    ("Verification", ""): _verification,
    **{(node, field): check for node in ("File", "Directory", "Link") for field, check in _NODE_CHECKS.items()},
    ("NodeUser", ""): _owner,
    ("NodeGroup", ""): _owner,
    ("File", ""): _file,
    ("File", "Mode"): _mode,
    ("Directory", "Mode"): _mode,
    ("FileContents", "Compression"): _compression,
    ("FileContents", "Source"): _contents_source,
    ("Unit", "Contents"): _unit_contents,
    ("Unit", "Name"): _named(_UNIT_TYPES, "systemd unit"),
    ("SystemdDropin", ""): _unit_file((".conf",), "systemd drop-in"),
    ("Networkdunit", ""): _unit_file((".link", ".netdev", ".network"), "networkd unit"),
    ("NetworkdDropin", ""): _unit_file((".conf",), "networkd drop-in"),
    ("Disk", "Device"): _disk_device,
    ("Disk", "Partitions"): _disk_partitions,
    ("Partition", ""): _partition,
    ("Partition", "Size"): _deprecated("size", "size is deprecated; use sizeMB instead"),
    ("Partition", "Start"): _deprecated("start", "start is deprecated; use startMB instead"),
    ("Partition", "Label"): _partition_label,
    ("Partition", "TypeGUID"): _guid("typeGuid"),
    ("Partition", "GUID"): _guid("guid"),
    ("Filesystem", ""): _filesystem,
    ("Filesystem", "Path"): _filesystem_path,
    ("Mount", ""): _mount,
    ("Mount", "Device"): lambda mount: _path(mount["device"]),
    ("Mount", "Label"): _mount_label,
    ("Raid", "Level"): _raid_level,
    ("Raid", "Devices"): lambda raid: [entry for device in raid["devices"] or () for entry in _path(device)],
    ("PasswdUser", ""): _user,
}
