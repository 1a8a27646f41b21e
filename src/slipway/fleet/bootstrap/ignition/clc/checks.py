"""What the transpiler itself refuses or warns about in a Container Linux Config, before Ignition has its say."""

from __future__ import annotations

import re
from typing import Any

from slipway.api.machinery.duration import Duration
from slipway.fleet.bootstrap.ignition.report import INFO, Check, Entry, Report, error, warning
from slipway.fleet.bootstrap.ignition.urls import URLError, split

Value = dict[str, Any]

_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9]\Z")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def _file_mode(file: Value) -> Report:
    if file["mode"] is not None:
        return []
    if file["append"]:
        return [Entry(INFO, "mode unspecified for file, defaulting to 0644 if the file does not exist")]
    return warning("mode unspecified for file, defaulting to 0644")


def _directory_mode(directory: Value) -> Report:
    return [] if directory["mode"] is not None else warning("mode unspecified for directory, defaulting to 0755")


def _file_contents(contents: Value) -> Report:
    sources = (contents["remote"]["url"], contents["inline"], contents["local"])
    return error("only one of the following can be set: local, inline, remote.url") if sum(map(bool, sources)) > 1 else []


def _update(update: Value) -> Report:
    known = update["group"].lower() in ("stable", "beta", "alpha")
    return [] if known or update["server"] else warning("unknown update group")


def _update_server(update: Value) -> Report:
    try:
        split(update["server"])
    except URLError as problem:
        return error(str(problem))
    return []


def _locksmith(locksmith: Value) -> Report:
    if bool(locksmith["window_start"]) != bool(locksmith["window_length"]):
        return error("window-start and window-length must both be specified")
    return []


def _reboot_strategy(locksmith: Value) -> Report:
    strategy = locksmith["reboot_strategy"]
    return [] if not strategy or strategy.lower() in ("reboot", "etcd-lock", "off") else error("unknown reboot strategy")


def _window_start(locksmith: Value) -> Report:
    if not locksmith["window_start"]:
        return []
    words = locksmith["window_start"].split()
    if len(words) >= 2 and words[0].lower() not in _DAYS:
        return error("unknown day in window start")
    time = words[1] if len(words) >= 2 else locksmith["window_start"]
    return [] if _TIME_OF_DAY.match(time) else error("couldn't parse window start")


def _window_length(locksmith: Value) -> Report:
    try:
        Duration.parse(locksmith["window_length"] or "0")
    except ValueError:
        return error("couldn't parse window length")
    return []


CHECKS: dict[tuple[str, str], Check] = {
    ("Config", "Version"): lambda config: error("Invalid version. Only version 0 is supported") if config["version"] else [],
    ("File", "Mode"): _file_mode,
    ("Directory", "Mode"): _directory_mode,
    ("FileContents", ""): _file_contents,
    ("Update", ""): _update,
    ("Update", "Server"): _update_server,
    ("Locksmith", ""): _locksmith,
    ("Locksmith", "RebootStrategy"): _reboot_strategy,
    ("Locksmith", "WindowStart"): _window_start,
    ("Locksmith", "WindowLength"): _window_length,
}
