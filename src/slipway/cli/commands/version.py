"""``version``: the kubeadm that is acted as, in kubeadm's shapes, and Slipway's own version beside it."""

from __future__ import annotations

import os
import sys

from slipway import NEWEST_KUBERNETES, __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation

# What a build without a commit and a date prints, as kubeadm does.
_NO_COMMIT = "$Format:%H$"
_NO_DATE = "1970-01-01T00:00:00Z"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


def run(call: Invocation) -> None:
    output = call.text("output")
    version = acted_as()
    if output == "short":
        sys.stdout.write(f"{version}\n")
        return
    fields = _fields(version)
    if output == "":
        sys.stdout.write(f"kubeadm version: {_go_literal(fields)}\n")
    elif output == "json":
        import json

        sys.stdout.write(json.dumps(_document(fields), indent=2) + "\n")
    elif output == "yaml":
        from slipway.api.machinery.yaml import goyaml

        sys.stdout.write(goyaml.dump(_document(fields)) + "\n")
    else:
        from slipway.api.machinery.errors import UsageError

        raise UsageError(f"invalid output format: {output}")


def acted_as() -> str:
    """The version of the kubeadm that is acted as where no configuration names one."""
    chosen = os.environ.get("SLIPWAY_AS_KUBEADM", "")
    if not chosen:
        return NEWEST_KUBERNETES
    from slipway.api.machinery.errors import UsageError
    from slipway.api.machinery.version import Version
    from slipway.api.releases import release_for

    try:
        version = Version.parse(chosen)
    except ValueError as error:
        raise UsageError(f"SLIPWAY_AS_KUBEADM: {error}") from None
    return f"v{release_for(version).version}"


def _fields(version: str) -> dict[str, str]:
    major, minor = version.removeprefix("v").split(".")[:2]
    machine = os.uname().machine
    release = ".".join(map(str, sys.version_info[:3]))
    return {
        "major": major,
        "minor": minor,
        "gitVersion": version,
        "gitCommit": _NO_COMMIT,
        "gitTreeState": "clean",
        "buildDate": _NO_DATE,
        "goVersion": f"python{release}",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
    }


def _go_literal(fields: dict[str, str]) -> str:
    """Go's ``%#v`` of a version.Info, which scripts take apart; four fields are for components, and empty in kubeadm."""
    empty = dict.fromkeys(("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"), "")
    all_fields = {"major": fields["major"], "minor": fields["minor"], **empty, **fields, "slipwayVersion": __version__}
    shown = ", ".join(f'{name[0].upper()}{name[1:]}:"{value}"' for name, value in all_fields.items())
    return f"&version.Info{{{shown}}}"


def _document(fields: dict[str, str]) -> dict[str, dict[str, str]]:
    return {"clientVersion": fields, "slipwayVersion": {"version": __version__}}
