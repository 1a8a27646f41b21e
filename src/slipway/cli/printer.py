"""``-o``: an object as text, JSON, YAML or KYAML, in the bytes that kubeadm prints."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from slipway.cli.argv.parser import Invocation

_TEMPLATES = ("go-template", "go-template-file", "jsonpath", "jsonpath-as-json", "jsonpath-file", "template", "templatefile")


def output_format(call: Invocation) -> str:
    """The format that was asked for; an error if there is none such."""
    from slipway.api.machinery.errors import UsageError
    from slipway.node.config.version import acting_release

    chosen = call.text("output")
    formats = ("json", "text", "yaml", *(("kyaml",) if acting_release(call.host.environment).kyaml_output else ()))
    if chosen in formats:
        return chosen
    message = "could not construct output printer: "
    if chosen.partition("=")[0] in _TEMPLATES:
        raise UsageError(f'{message}the output format "{chosen}" needs templates, which are not supported: use json or yaml')
    allowed = ",".join(sorted((*formats, *_TEMPLATES)))
    raise UsageError(f'{message}unable to match a printer suitable for the output format "{chosen}", allowed formats are: {allowed}')


def print_object(fields: dict[str, Any], chosen: str, text: str) -> None:
    """Print ``fields``, or ``text`` where text was asked for."""
    if chosen == "json":
        sys.stdout.write(_go_json(fields, indent=4) + "\n")
    elif chosen == "yaml":
        from slipway.api.machinery.yaml import goyaml

        sys.stdout.write(goyaml.dump(fields))
    elif chosen == "kyaml":
        sys.stdout.write(f"---\n{_kyaml(fields, '')}\n")
    else:
        sys.stdout.write(text)


def _go_json(value: object, indent: int | None = None) -> str:
    """JSON as encoding/json writes it: HTML's characters escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _kyaml(value: object, margin: str) -> str:
    """A subset of YAML with braces, quoted strings and trailing commas; keys of API objects need no quotes."""
    inner = margin + "  "
    if isinstance(value, dict):
        rows = "".join(f"{inner}{key}: {_kyaml(item, inner)},\n" for key, item in value.items())
        return f"{{\n{rows}{margin}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(_kyaml(item, margin) for item in value)}]"
    if isinstance(value, list) and value:
        rows = "".join(f"{inner}{_kyaml(item, inner)},\n" for item in value)
        return f"[\n{rows}{margin}]"
    return json.dumps(value, ensure_ascii=False)
