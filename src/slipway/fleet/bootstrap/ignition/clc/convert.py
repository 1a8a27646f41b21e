"""A Container Linux Config as an Ignition config, the way the transpiler v0.9 translates it.

The sections of programs that Container Linux ran itself, docker, update and locksmith, become units and files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.fieldpath import quoted
from slipway.fleet.bootstrap.ignition.clc.types import IGNITION
from slipway.fleet.bootstrap.ignition.report import Report, error, placed
from slipway.fleet.bootstrap.ignition.urls import URLError, data_url, normal

if TYPE_CHECKING:
    from slipway.fleet.bootstrap.ignition.clc.yaml import Tree

Value = dict[str, Any]

_FILE_MODE, _DIRECTORY_MODE = 0o644, 0o755
_MEBIBYTE = 2**20
_TYPE_GUIDS = {
    "raid_containing_root": "be9067b9-ea49-4f15-b4f6-f36f8c9e1818",
    "linux_filesystem_data": "0fc63daf-8483-4772-8e79-3d69d8477de4",
    "swap_partition": "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
    "raid_partition": "a19d880f-05fc-4d3b-a006-743f0f84911e",
}
# What locksmith calls its settings, in the order of its type.
_LOCKSMITH = {
    "reboot_strategy": "REBOOT_STRATEGY",
    "window_start": "LOCKSMITHD_REBOOT_WINDOW_START",
    "window_length": "LOCKSMITHD_REBOOT_WINDOW_LENGTH",
    "group": "LOCKSMITHD_GROUP",
    "etcd_endpoints": "LOCKSMITHD_ENDPOINT",
    "etcd_cafile": "LOCKSMITHD_ETCD_CAFILE",
    "etcd_certfile": "LOCKSMITHD_ETCD_CERTFILE",
    "etcd_keyfile": "LOCKSMITHD_ETCD_KEYFILE",
}
_UPDATE = {
    "server": "SERVER",
    "pcr_policy_server": "PCR_POLICY_SERVER",
    "download_user": "DOWNLOAD_USER",
    "download_password": "DOWNLOAD_PASSWORD",
    "machine_alias": "MACHINE_ALIAS",
}
# The two families of units are not mixed within one size.
_BINARY_UNITS = {"B": 0, **{f"{letter}iB": 10 * power for power, letter in enumerate("KMGTPE", 1)}}
_OLD_UNITS = {"B": 0, **{f"{letter}B": 10 * power for power, letter in enumerate("KMGTPE", 1)}}
_SIZE_PART = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>[^0-9.]*)")
# From here on another digit might not fit into 64 bits.
_LAST_DIGITS = (2**63 - 10) // 10


def convert(source: Value, root: Tree | None) -> tuple[Value, Report]:
    """The Ignition config, and what could not be converted.  ``root`` is changed where the two forms of a file differ."""
    report: Report = []
    out = IGNITION["Config"].zero()
    out["ignition"]["version"] = "2.3.0"
    _ignition(source["ignition"], root, out["ignition"], report)
    out["storage"]["disks"] = _disks(source["storage"]["disks"], root, report)
    if source["docker"] is not None:
        _append(out["systemd"], "units", _docker_unit(source["docker"]))
    out["storage"]["files"] = _files(source["storage"]["files"], child(root, "storage", "files"), report)
    out["storage"]["directories"] = [_directory(directory) for directory in source["storage"]["directories"] or ()]
    out["storage"]["links"] = [_link(link) for link in source["storage"]["links"] or ()]
    out["storage"]["filesystems"] = [_filesystem(filesystem) for filesystem in source["storage"]["filesystems"] or ()]
    out["networkd"]["units"] = [_networkd_unit(unit) for unit in source["networkd"]["units"] or ()]
    out["passwd"]["users"] = [_user(user) for user in source["passwd"]["users"] or ()]
    out["passwd"]["groups"] = [_of("PasswdGroup", group, gid="gid") for group in source["passwd"]["groups"] or ()]
    out["storage"]["raid"] = [{**_of("Raid", raid), "devices": raid["devices"] or None} for raid in source["storage"]["raid"] or ()]
    for reference in source["ignition"]["security"]["tls"]["certificate_authorities"] or ():
        _append(out["ignition"]["security"]["tls"], "certificateAuthorities", _reference("CaReference", reference))
    for unit in source["systemd"]["units"] or ():
        _append(out["systemd"], "units", _systemd_unit(unit))
    _update_settings(source, out["storage"])
    return out, report


def child(node: Tree | None, *path: str | int) -> Tree | None:
    """The node at a path of keys and positions, if it is there."""
    for step in path:
        if node is None:
            return None
        if isinstance(step, int):
            node = node.items[step] if node.items is not None and step < len(node.items) else None
        else:
            # Of a key that stands twice the last one counts.
            node = {key_name(key.text): value for key, value in node.pairs or ()}.get(step)
    return node


def key_name(key: str) -> str:
    """A key of a Container Linux Config as Ignition writes it: ``ssh_authorized_keys`` is sshAuthorizedKeys."""
    first, *others = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def _append(section: Value, key: str, item: Value) -> None:
    if section[key] is None:
        section[key] = []
    section[key].append(item)


def _of(type_: str, source: Value, **renamed: str) -> Value:
    """An Ignition value with the fields that have the same name and form in the source."""
    struct = IGNITION[type_]
    value = struct.zero()
    for key, item in source.items():
        name = renamed.get(key, key_name(key))
        if name in value and struct.by_key[name].type.lstrip("*[]") not in IGNITION:
            value[name] = item
    return value


def _ignition(source: Value, root: Tree | None, out: Value, report: Report) -> None:
    timeouts = source["timeouts"]
    out["timeouts"] = {"httpResponseHeaders": timeouts["http_response_headers"], "httpTotal": timeouts["http_total"]}
    config = child(root, "ignition", "config")
    appended = child(config, "append")
    for index, reference in enumerate(source["config"]["append"] or ()):
        if _is_url(reference["source"], child(appended, index, "source"), report):
            _append(out["config"], "append", _reference("ConfigReference", reference))
    replacement = source["config"]["replace"]
    if replacement is not None and _is_url(replacement["source"], child(config, "replace", "source"), report):
        out["config"]["replace"] = _reference("ConfigReference", replacement)


def _is_url(text: str, node: Tree | None, report: Report) -> bool:
    try:
        normal(text)
    except URLError as problem:
        report += placed(error(str(problem)), node)
        return False
    return True


def _reference(type_: str, source: Value) -> Value:
    return {**_of(type_, source), "verification": _verification(source["verification"])}


def _verification(source: Value) -> Value:
    function, digits = source["hash"]["function"], source["hash"]["sum"]
    return {"hash": f"{function}-{digits}" if function and digits else None}


def _disks(disks: list[Value] | None, root: Tree | None, report: Report) -> list[Value]:
    converted = []
    nodes = child(root, "storage", "disks")
    for index, disk in enumerate(disks or ()):
        new = _of("Disk", disk)
        parts = child(nodes, index, "partitions")
        for number, partition in enumerate(disk["partitions"] or ()):
            sizes = _dimensions(partition, child(parts, number), report)
            if sizes is not None:
                _append(new, "partitions", {**_partition(partition), **sizes})
        converted.append(new)
    return converted


def _partition(source: Value) -> Value:
    value = {**IGNITION["Partition"].zero(), **{key: source[key] for key in ("label", "number", "guid")}}
    value["typeGuid"] = _TYPE_GUIDS.get(source["type_guid"], source["type_guid"])
    return value


def _dimensions(partition: Value, node: Tree | None, report: Report) -> Value | None:
    """Size and start in mebibytes, or None if one of them is no such number."""
    found = {}
    for key in ("size", "start"):
        try:
            found[f"{key}MiB"] = _mebibytes(partition[key])
        except ValueError as problem:
            report += placed(error(str(problem)), child(node, key))
            return None
    return found


def _mebibytes(text: str) -> int | None:
    if not text:
        return None
    size = _bytes(text)
    if size < 0:
        raise ValueError(f"invalid dimension (negative): {quoted(text)}")
    if size % _MEBIBYTE:
        raise ValueError("invalid dimension (finest granularity is 1MiB)")
    return size // _MEBIBYTE


def _bytes(text: str) -> int:
    """A size such as ``1GiB``, ``512MB`` or ``1GiB512MiB``; ValueError has the words of the transpiler's library."""
    try:
        return _bytes_in(text, _BINARY_UNITS)
    except ValueError:
        return _bytes_in(text, _OLD_UNITS)


def _bytes_in(text: str, units: dict[str, int]) -> int:
    start = 1 if text[0] in "+-" else 0
    if text[start:] == "0":
        return 0
    total, position = 0.0, start
    while position < len(text) or position == start:
        part = _SIZE_PART.match(text, position)
        if part is None or any(map(_is_too_long, part["number"].split("."))):
            raise ValueError(f"units: invalid {text}")
        if part["unit"] not in units:
            raise ValueError(f"units: unknown unit {part['unit']} in {text}")
        total += float(part["number"]) * 2 ** units[part["unit"]]
        position = part.end()
    total = -total if text[0] == "-" else total
    if not -(2**63) <= total < 2**63:
        raise ValueError("units: overflow parsing unit")
    return int(total)


def _is_too_long(digits: str) -> bool:
    digits = digits.lstrip("0")
    return len(digits) > 19 or int(digits[:-1] or 0) >= _LAST_DIGITS


def _files(files: list[Value] | None, nodes: Tree | None, report: Report) -> list[Value]:
    converted = []
    for index, file in enumerate(files or ()):
        node = child(nodes, index)
        source = _source(file["contents"], node, report)
        if source is None:
            continue
        new = _node("File", file, _FILE_MODE)
        new["append"] = file["append"]
        remote = file["contents"]["remote"]
        new["contents"] = {"compression": remote["compression"], "source": source, "verification": _verification(remote["verification"])}
        converted.append(new)
    return converted


def _source(contents: Value, node: Tree | None, report: Report) -> str | None:
    """The URL of a file's contents, or None if there can be none."""
    if contents["local"]:
        message = "local files require setting the --files-dir flag to the directory that contains the file"
        report += placed(error(message), child(node, "contents", "local"))
        return None
    url = contents["remote"]["url"]
    if not url:
        return data_url(contents["inline"])
    try:
        source = normal(url)
    except URLError as problem:
        report += placed(error(str(problem)), child(node, "contents", "remote", "url"))
        return None
    _move_remote(node)
    return source or "data:,"


def _move_remote(file: Tree | None) -> None:
    """Make the document look like Ignition's, which has no remote section but its fields, with another name for the URL."""
    remote = child(file, "contents", "remote")
    if file is None or file.pairs is None or remote is None:
        return
    for key, _ in remote.pairs or ():
        if key.text == "url":
            key.text = "source"
    file.pairs = [(key, remote if key.text == "contents" else value) for key, value in file.pairs]


def _node(type_: str, source: Value, mode: int | None = None) -> Value:
    """What files, directories and links have in common."""
    value = IGNITION[type_].zero()
    value["filesystem"] = source["filesystem"] or "root"
    for key in ("path", "overwrite", "user", "group"):
        value[key] = source[key]
    if mode is not None:
        value["mode"] = mode if source["mode"] is None else source["mode"]
    return value


def _directory(source: Value) -> Value:
    return _node("Directory", source, _DIRECTORY_MODE)


def _link(source: Value) -> Value:
    return {**_node("Link", source), "hard": source["hard"], "target": source["target"]}


def _filesystem(source: Value) -> Value:
    mount = source["mount"]
    value = {**IGNITION["Filesystem"].zero(), "name": source["name"], "path": source["path"]}
    if mount is not None:
        value["mount"] = {**_of("Mount", mount), "create": mount["create"]}
    return value


def _user(source: Value) -> Value:
    create = source["create"]
    return {**_of("PasswdUser", source), "create": None if create is None else _of("Usercreate", create)}


def _systemd_unit(source: Value) -> Value:
    return {**_of("Unit", source), "dropins": [_of("SystemdDropin", dropin) for dropin in source["dropins"] or ()]}


def _networkd_unit(source: Value) -> Value:
    return {**_of("Networkdunit", source), "dropins": [_of("NetworkdDropin", dropin) for dropin in source["dropins"] or ()]}


def _docker_unit(source: Value) -> Value:
    contents = f'[Service]\nEnvironment="DOCKER_OPTS={" ".join(source["flags"] or ())}"'
    dropin = {**IGNITION["SystemdDropin"].zero(), "name": "20-clct-docker.conf", "contents": contents}
    return {**IGNITION["Unit"].zero(), "name": "docker.service", "enable": True, "dropins": [dropin]}


def _update_settings(source: Value, storage: Value) -> None:
    contents = ""
    update, locksmith = source["update"], source["locksmith"]
    if update is not None:
        contents = f"GROUP={update['group'].lower()}" if update["group"] else ""
        contents += "".join(f"\n{name}={update[key]}" for key, name in _UPDATE.items() if update[key])
    if locksmith is not None:
        contents += "".join(f"\n{name}={quoted(locksmith[key])}" for key, name in _LOCKSMITH.items() if locksmith[key] is not None)
    if contents:
        value = IGNITION["File"].zero()
        value |= {"filesystem": "root", "path": "/etc/coreos/update.conf", "mode": _FILE_MODE}
        value["contents"]["source"] = data_url(contents)
        _append(storage, "files", value)
