"""Where a template is to have all of its values, ``<no value>`` is an error that says where and what."""

from __future__ import annotations

import pytest

from slipway.api.machinery.gotemplate import Template
from slipway.api.machinery.gotemplate.errors import NoValueError

DATA = {"controlPlane": {"version": "v1.35.4", "none": None}, "list": [None, 1]}


@pytest.mark.parametrize(
    ("text", "expression", "line", "missing"),
    [
        ("{{ .x }}", ".x", 1, ': the data has no "x"'),
        ("a\nb {{ .x.y }}", ".x.y", 2, ': the data has no "x"'),
        ("{{ .controlPlane.name }}", ".controlPlane.name", 1, ': the data has no "name"'),
        ("{{ .controlPlane.none }}", ".controlPlane.none", 1, ""),
        ('{{ index .controlPlane "name" }}', 'index .controlPlane "name"', 1, ""),
        ("{{ range .list }}{{ . }}{{ end }}", ".", 1, ""),
        ("{{ if .x }}{{ end }}\n{{ .controlPlane.none }}", ".controlPlane.none", 2, ""),
        ('{{ printf "%s" .x }}', 'printf "%s" .x', 1, ': the data has no "x"'),
        ("{{ .x | print }}", "print", 1, ': the data has no "x"'),
        ("{{ html .x }}", "html .x", 1, ': the data has no "x"'),
        ("{{ $v := .x }}{{ $v }}", "$v", 1, ""),
    ],
)
def test_a_missing_value_is_refused(text: str, expression: str, line: int, missing: str) -> None:
    with pytest.raises(NoValueError) as caught:
        Template.parse("/etc/file", text).execute(DATA, refuse_no_value=True)
    assert (caught.value.expression, caught.value.line) == (expression, line)
    assert caught.value.message.startswith(f"template: /etc/file:{line}:")
    assert caught.value.message.endswith(f": no value for {expression}{missing}")


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("{{ .controlPlane.version }}", "v1.35.4"),
        ("{{ if .x }}{{ .x }}{{ else }}none{{ end }}", "none"),
        ("{{ with .x }}{{ . }}{{ end }}", ""),
        ("{{ range .x }}{{ . }}{{ end }}", ""),
        ('{{ or .x "default" }}', "default"),
        ("{{ if not .x }}no{{ end }}", "no"),
        ("{{ if eq .x nil }}nil{{ end }}", "nil"),
        ("{{ $v := .x }}", ""),
    ],
)
def test_asking_for_a_missing_value_is_allowed(text: str, output: str) -> None:
    assert Template.parse("t", text).execute(DATA, refuse_no_value=True) == output
