"""Go templates as a stranger may write them: text or a TemplateError, whatever the bytes are."""

from __future__ import annotations

from typing import Any, cast

from slipway.api.machinery.gotemplate import Template, TemplateError
from slipway.api.machinery.gotemplate.template import MissingKey

DATA: dict[str, Any] = {
    "controlPlane": {"version": "v1.35.4", "none": None},
    "KubernetesVersion": "v1.35.4",
    "text": "<a> \u00e9\u200b\U0001f600 %d",
    "list": [1, "two", 3.5, None, True, [], {"k": "v"}],
    "number": 3,
}
LIMIT = 1 << 20
_MISSING_KEYS = ("default", "zero", "error")

SEEDS = [
    b"{{ .controlPlane.version }}",
    b"{{ range $i, $e := .list }}{{ if $i }}, {{ end }}{{ $e }}{{ else }}none{{ end }}",
    b'{{ define "t" }}{{ . }}{{ end }}{{ template "t" .text }}{{ block "b" .number }}{{ . }}{{ end }}',
    b'{{ with $x := printf "%[2]*.[1]*f|%-08q|% #x|%+v|%T" 2 8 1.5 "a" "b" .list 1i }}{{ $x | html | js | urlquery }}{{ end }}',
    b'{{- /* c */ -}} {{ if and (eq 1 2 3) (lt "a" "b") | not }}{{ else if or .x nil }}{{ end }}{{ 0x1p-2 }}{{ \'a\' }}{{ 1_000 }}',
    b'{{ range 9 }}{{ if eq . 3 }}{{ break }}{{ end }}{{ continue }}{{ end }}{{ slice (index .list 1) 1 2 }}{{ len "\\xff\\u00e9" }}',
]


def fuzz(data: bytes) -> None:
    """Anything but TemplateError is a finding, and so is text beyond the limit.  The first byte chooses how it is executed."""
    way = data[0] if data else 0
    text = data[1:].decode("utf-8", "replace")
    try:
        made = Template.parse("fuzz", text).execute(
            DATA, missing_key=cast("MissingKey", _MISSING_KEYS[way % 3]), limit=LIMIT, refuse_no_value=bool(way & 0x80)
        )
    except TemplateError:
        return
    assert len(made.encode()) <= LIMIT
