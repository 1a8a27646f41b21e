"""Files and users as a host gets them; rows of Cluster API's own tests of resolveFiles, resolveUsers and renderTemplates among others."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.gotemplate import limits
from slipway.fleet.bootstrap.data import files
from slipway.fleet.bootstrap.data.files import VersionForm, rendered, resolve_files, resolve_users, version_form

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = {"KubernetesVersion": "v1.29.0", "controlPlane": {"version": "v1.29.0"}}
REFERENCE = {"secret": {"name": "source", "key": "key"}}


async def read(name: str) -> Mapping[str, bytes] | None:
    return {"key": b"foo", "template": b"v={{ .controlPlane.version }}", "binary": b"ok\xff"} if name == "source" else None


async def unreadable(name: str) -> Mapping[str, bytes] | None:
    raise OperatorError(f'secrets "{name}" is forbidden')


def template(content: str, path: str = "/b", content_format: str = "Template") -> dict[str, Any]:
    return {"path": path, "contentFormat": content_format, "content": content}


@pytest.mark.asyncio
async def test_content_passes_through() -> None:
    file = {"content": "foo", "path": "/path", "owner": "root:root", "permissions": "0600"}
    assert await resolve_files([file], read, {}) == [file]


@pytest.mark.asyncio
async def test_content_comes_from_a_secret_and_the_spec_stays_as_it_is() -> None:
    rest = {"path": "/path", "owner": "root:root", "permissions": "0600"}
    given: list[dict[str, Any]] = [{"content": "bar", "path": "/bar"}, {**rest, "contentFrom": REFERENCE}]
    assert await resolve_files(given, read, {}) == [{"content": "bar", "path": "/bar"}, {**rest, "content": "foo"}]
    assert given[1] == {**rest, "contentFrom": REFERENCE}


@pytest.mark.asyncio
async def test_content_of_a_secret_is_rendered_too() -> None:
    source = {"secret": {"name": "source", "key": "template"}}
    [file] = await resolve_files([{"path": "/a", "contentFrom": source, "contentFormat": "Template"}], read, DATA)
    assert file == {"path": "/a", "content": "v=v1.29.0"}


@pytest.mark.asyncio
async def test_passwords_come_from_secrets() -> None:
    given: list[dict[str, Any]] = [{"name": "foo", "passwd": "bar"}, {"name": "bar", "passwdFrom": REFERENCE}]
    assert await resolve_users(given, read) == [{"name": "foo", "passwd": "bar"}, {"name": "bar", "passwd": "foo"}]
    assert given[1] == {"name": "bar", "passwdFrom": REFERENCE}


SECRET_ERRORS = [
    ({"name": "gone", "key": "key"}, read, 'secret not found: ns/gone: secrets "gone" not found'),
    ({"name": "source", "key": "gone"}, read, 'secret references non-existent secret key: "gone"'),
    ({"name": "source"}, read, 'secret references non-existent secret key: ""'),
    ({"name": "source", "key": "key"}, unreadable, 'failed to retrieve Secret "ns/source": secrets "source" is forbidden'),
    (
        {"name": "source", "key": "binary"},
        read,
        'key "binary" of Secret "ns/source" is not UTF-8 (invalid start byte at byte 2), and its bytes cannot be written into bootstrap '
        "data: store it as base64 and set encoding to base64",
    ),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("secret", "reader", "message"), SECRET_ERRORS)
async def test_secrets_that_cannot_be_used(secret: dict[str, str], reader: files.ReadSecret, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        await resolve_files([{"path": "/a", "contentFrom": {"secret": secret}}], reader, {}, namespace="ns")
    assert caught.value.message == f"failed to resolve file source: {message}"
    with pytest.raises(OperatorError) as caught:
        await resolve_users([{"name": "a", "passwdFrom": {"secret": secret}}], reader, namespace="ns")
    assert caught.value.message == f"failed to resolve passwd source: {message}"


@pytest.mark.asyncio
@pytest.mark.parametrize("empty", [None, {}, {"secret": {}}, {"secret": {"name": ""}}])
async def test_an_empty_reference_is_none(empty: dict[str, Any] | None) -> None:
    assert await resolve_files([{"path": "/a", "content": "x", "contentFrom": empty}], read, {}) == [{"path": "/a", "content": "x"}]


@pytest.mark.parametrize("content_format", [None, "", "Raw"])
def test_what_is_no_template_stays_as_it_is(content_format: str | None) -> None:
    file = {"path": "/a", "content": "hello {{ .controlPlane.version }}", "contentFormat": content_format}
    assert rendered(file, DATA) == file


@pytest.mark.parametrize(
    ("content_format", "content"), [("Template", "v={{ .controlPlane.version }}"), ("go-template", "v={{ .KubernetesVersion }}")]
)
def test_both_forms_of_template_are_rendered_and_their_format_cleared(content_format: str, content: str) -> None:
    assert rendered({**template(content, content_format=content_format), "owner": "root"}, DATA) == {
        "path": "/b",
        "content": "v=v1.29.0",
        "owner": "root",
    }


def test_a_template_can_ask_whether_there_is_a_control_plane() -> None:
    content = "{{ if .controlPlane }}v={{ .controlPlane.version }}{{ end }}done"
    assert rendered(template(content), {"KubernetesVersion": "v1.29.0"})["content"] == "done"
    assert rendered(template(content), DATA)["content"] == "v=v1.29.0done"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("file", "message"),
    [
        (template("{{ .controlPlane.version ", "/c"), 'failed to parse template for file "/c": template: /c:1: unclosed action'),
        (
            template("{{ range .controlPlane.version }}{{ end }}", "/d"),
            'failed to execute template for file "/d": template: /d:1:22: executing "/d" at <.controlPlane.version>: '
            "range can't iterate over v1.29.0",
        ),
        (
            template('{{printf "%999999s" ""}}' * 3, "/big"),
            'failed to execute template for file "/big": rendered output exceeds the 1048576 byte limit',
        ),
    ],
)
async def test_errors_of_templates_are_nested_as_upstream_nests_them(file: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        await resolve_files([file], read, DATA)
    assert caught.value.message == f"failed to render templates: {message}"


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        (
            template("#!/bin/sh\nV={{ .controlPlane.version }}"),
            {"KubernetesVersion": "v1.29.0"},
            'failed to execute template for file "/b": template: /b:2:18: executing "/b" at <.controlPlane.version>: '
            'no value for .controlPlane.version: the data has no "controlPlane"; the control plane\'s version is not known, as '
            "Cluster.spec.controlPlaneRef is unset or its object has no spec.version: set it, or guard the line with "
            "{{ if .controlPlane }}",
        ),
        (
            template("{{ .KubernetesVersion }}"),
            DATA,
            'failed to execute template for file "/b": template: /b:1:3: executing "/b" at <.KubernetesVersion>: '
            'no value for .KubernetesVersion: the data has no "KubernetesVersion"; contentFormat Template has .controlPlane.version alone',
        ),
        (
            template("{{ .controlPlane.version }}", content_format="go-template"),
            DATA,
            'failed to execute template for file "/b": template: /b:1:16: executing "/b" at <.controlPlane.version>: '
            'no value for .controlPlane.version: the data has no "controlPlane"; contentFormat go-template has .KubernetesVersion alone',
        ),
    ],
)
def test_no_value_is_refused_with_what_to_do(file: dict[str, Any], data: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        rendered(file, data)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("content_format", "form"), [("Template", VersionForm.MERGED), ("go-template", VersionForm.DRAFT), ("Raw", None), (None, None)]
)
def test_a_file_says_which_form_of_the_version_contract_it_uses(content_format: str | None, form: VersionForm | None) -> None:
    assert version_form({"contentFormat": content_format}) is form


@pytest.mark.asyncio
async def test_the_event_loop_goes_on_while_a_template_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STEPS", 200_000)
    rendering = asyncio.create_task(resolve_files([template("{{range 99000}}{{$x := and" + " 1" * 5_000 + "}}{{end}}")], read, DATA))
    turns = 0
    while not rendering.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 5
    with pytest.raises(OperatorError, match="exceeded the limit of 200000 steps"):
        await rendering


@pytest.mark.asyncio
async def test_the_templates_of_one_object_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SECONDS", 0.0)
    with pytest.raises(OperatorError, match=r'file "/b": .*: the time to render it in is over'):
        await resolve_files([template("{{ .controlPlane.version }}")], read, DATA)


def test_parsed_templates_are_kept_within_bounds() -> None:
    tracemalloc.start()
    try:
        for number in range(8):
            rendered(template("{{1}}" * 3_000, f"/large-{number}"), DATA)
        assert tracemalloc.get_traced_memory()[0] < 2 << 20
    finally:
        tracemalloc.stop()
