"""Bootstrap data in Ignition format, byte by byte as Cluster API v1.14 writes it.

A host is described in a Container Linux Config, which is then translated to Ignition 2.3; the user's own Container Linux Config is
translated too and appended.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import ConfigurationError
from slipway.fleet.bootstrap.ignition import checks as ignitionchecks
from slipway.fleet.bootstrap.ignition.clc import checks, template
from slipway.fleet.bootstrap.ignition.clc.convert import convert, key_name
from slipway.fleet.bootstrap.ignition.clc.types import CONTAINER_LINUX, IGNITION
from slipway.fleet.bootstrap.ignition.clc.yaml import Decoder, Tree, YAMLError, parse
from slipway.fleet.bootstrap.ignition.report import Report, Walk, error, is_fatal, text, warning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.fleet.bootstrap.data.cloudinit import HostSetup

_TO_DECODE = Walk(checks.CHECKS, unused=True)
_CONVERTED = Walk(ignitionchecks.CHECKS, key_name)
# Go's JSON is safe to embed in HTML and JavaScript, and has no bytes that are no text.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED = re.compile("[<>&\u2028\u2029\udc80-\udcff]")


def init_control_plane(
    setup: HostSetup, additions: Mapping[str, Any], cluster_configuration: str, init_configuration: str
) -> tuple[bytes, str]:
    """The data for the first control-plane node, and warnings about the user's additions."""
    return _render(setup, additions, "init", f"{cluster_configuration}\n---\n{init_configuration}")


def join(setup: HostSetup, additions: Mapping[str, Any], join_configuration: str) -> tuple[bytes, str]:
    """The same for a node that joins, as a worker or as a control plane."""
    return _render(setup, additions, "join", join_configuration)


def _render(setup: HostSetup, additions: Mapping[str, Any], subcommand: str, configuration: str) -> tuple[bytes, str]:
    document = template.render(setup, f"kubeadm {subcommand} --config /etc/kubeadm.yml {setup.verbosity}", configuration)
    config, _ = _translate(document, "generated", strict=True)
    warnings = ""
    if additions.get("additionalConfig"):
        more, warnings = _translate(additions["additionalConfig"], "additional", strict=bool(additions.get("strict")))
        config = _appended(config, more)
    return _json(config), warnings


def _translate(document: str, which: str, *, strict: bool) -> tuple[dict[str, Any], str]:
    """The Ignition config of a Container Linux Config, and what is odd about it; with ``strict`` nothing may be."""
    source, root, report = _decode(document)
    if is_fatal(report) or (report and strict):
        raise _refused(which, "error parsing Container Linux Config", report)
    config, converting = convert(source, root)
    if not is_fatal(converting):
        converting += _CONVERTED.validate(config, "Config", IGNITION, root)
    if is_fatal(converting) or (converting and strict):
        raise _refused(which, "error converting to Ignition", converting)
    return config, text(report + converting)


def _refused(which: str, what: str, report: Report) -> ConfigurationError:
    return ConfigurationError(f"building Ignition config: converting {which} CLC to Ignition: {what}: {text(report)}")


def _decode(document: str) -> tuple[dict[str, Any], Tree | None, Report]:
    try:
        root = parse(document)
        source = Decoder().document(root, CONTAINER_LINUX["Config"])
    except YAMLError as problem:
        return {}, None, error(str(problem))
    for section in ("etcd", "flannel"):
        if source[section] is not None:
            raise ConfigurationError(
                f"ignition.containerLinuxConfig.additionalConfig: the section {section!r} is for a service that Container Linux once ran"
                " itself and is not supported: describe the unit in the section 'systemd'"
            )
    report = warning("Configuration is empty") if root is None else []
    return source, root, report + _TO_DECODE.validate(source, "Config", CONTAINER_LINUX, root)


def _appended(config: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two configs as one: lists are joined, and references to other configs are those of the second."""
    ignition, added = config["ignition"], more["ignition"]
    authorities = _joined(ignition["security"]["tls"], added["security"]["tls"])
    timeouts = {name: ignition["timeouts"][name] if value is None else value for name, value in added["timeouts"].items()}
    return {
        **{section: _joined(config[section], more[section]) for section in ("networkd", "passwd", "storage", "systemd")},
        "ignition": {**ignition, "config": added["config"], "security": {"tls": authorities}, "timeouts": timeouts},
    }


def _joined(section: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {key: [*(items or ()), *(more[key] or ())] for key, items in section.items()}


def _json(config: dict[str, Any]) -> bytes:
    printed = json.dumps(IGNITION["Config"].printed(config), ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[0], "\\ufffd"), printed).encode()
