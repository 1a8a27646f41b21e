"""The files and users of a KubeadmConfig as a host gets them: references to Secrets followed, templates rendered.

There are two forms of template (pull request 13433): ``Template``, as merged, knows ``.controlPlane.version``; ``go-template``, the
draft's, knows ``.KubernetesVersion``.  Each gets its own data and no more, so that a file does the same under any
provider that has the form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import lru_cache
from time import monotonic
from typing import Any

from slipway.api.cluster.bootstrap.config import GO_TEMPLATE, TEMPLATE
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.fieldpath import quoted
from slipway.api.machinery.gotemplate import Template, TemplateError
from slipway.api.machinery.gotemplate.errors import NoValueError

ReadSecret = Callable[[str], Awaitable[Mapping[str, bytes] | None]]
"""The data of a Secret in the namespace of the KubeadmConfig, by its name; None where there is none."""

LIMIT = 1 << 20
"""The longest text that one template may make, in bytes, as in Cluster API 1.14."""

SECONDS = 5.0
"""The longest that the templates of one object may take together."""

# Characters of a template that is kept after it was parsed, when it takes up to a hundred times as much memory.
_LONGEST_KEPT = 4096
# Threads of their own: names are looked up and keys are made on the event loop's, and those must not wait for a stranger's template.
_renderers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="templates")


class VersionForm(Enum):
    """How a template asks for the version: ``contentFormat`` and the variable."""

    MERGED = (TEMPLATE, ".controlPlane.version")
    DRAFT = (GO_TEMPLATE, ".KubernetesVersion")

    @property
    def content_format(self) -> str:
        return self.value[0]

    @property
    def variable(self) -> str:
        return self.value[1]


_FORMS = {form.content_format: form for form in VersionForm}


def version_form(file: Mapping[str, Any]) -> VersionForm | None:
    """Which form of template a file is; None for one that is taken as it is."""
    return _FORMS.get(file.get("contentFormat") or "")


async def resolve_files(
    files: Iterable[Mapping[str, Any]], read_secret: ReadSecret, data: Mapping[str, Any], *, namespace: str = ""
) -> list[dict[str, Any]]:
    """``spec.files`` with content alone.  ``data`` has ``KubernetesVersion`` and, where it is known, ``controlPlane``."""
    resolved = []
    for file in files:
        found = {key: value for key, value in file.items() if key != "contentFrom"}
        if is_reference(file.get("contentFrom")):
            try:
                found["content"] = await _text(file["contentFrom"], read_secret, namespace)
            except OperatorError as error:
                raise OperatorError(f"failed to resolve file source: {error.message}") from error
        resolved.append(found)
    if all(version_form(file) is None for file in resolved):
        return resolved
    try:
        return await asyncio.get_running_loop().run_in_executor(_renderers, _all_rendered, resolved, data)
    except OperatorError as error:
        raise OperatorError(f"failed to render templates: {error.message}") from error


def _all_rendered(files: Iterable[Mapping[str, Any]], data: Mapping[str, Any]) -> list[dict[str, Any]]:
    deadline = monotonic() + SECONDS
    return [rendered(file, data, deadline) for file in files]


async def resolve_users(users: Iterable[Mapping[str, Any]], read_secret: ReadSecret, *, namespace: str = "") -> list[dict[str, Any]]:
    """``spec.users`` with passwords alone."""
    resolved = []
    for user in users:
        found = {key: value for key, value in user.items() if key != "passwdFrom"}
        if is_reference(user.get("passwdFrom")):
            try:
                found["passwd"] = await _text(user["passwdFrom"], read_secret, namespace)
            except OperatorError as error:
                raise OperatorError(f"failed to resolve passwd source: {error.message}") from error
        resolved.append(found)
    return resolved


def is_reference(source: Mapping[str, Any] | None) -> bool:
    """Whether a ``contentFrom`` or ``passwdFrom`` says anything at all, as Go's IsDefined has it."""
    secret = (source or {}).get("secret") or {}
    return bool(secret.get("name") or secret.get("key"))


def rendered(file: Mapping[str, Any], data: Mapping[str, Any], deadline: float | None = None) -> dict[str, Any]:
    """A file with the text that its template makes; one that is no template as it is."""
    form = version_form(file)
    if form is None:
        return dict(file)
    path = file.get("path") or ""
    try:
        template = _parsed(path, file.get("content") or "", deadline)
    except TemplateError as error:
        raise OperatorError(f"failed to parse template for file {quoted(path)}: {error.message}") from error
    try:
        content = template.execute(template_data(form, data), limit=LIMIT, refuse_no_value=True, deadline=deadline)
    except NoValueError as error:
        raise OperatorError(f"failed to execute template for file {quoted(path)}: {error.message}; {_advice(form, data)}") from error
    except TemplateError as error:
        raise OperatorError(f"failed to execute template for file {quoted(path)}: {error.message}") from error
    return {**{key: value for key, value in file.items() if key != "contentFormat"}, "content": content}


def _parsed(path: str, content: str, deadline: float | None) -> Template:
    if len(path) + len(content) > _LONGEST_KEPT:
        return Template.parse(path, content, deadline=deadline)
    return _kept(path, content)


@lru_cache(maxsize=64)
def _kept(path: str, content: str) -> Template:
    """All hosts of a MachineDeployment have the same files."""
    return Template.parse(path, content)


def template_data(form: VersionForm, data: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the data that a form of template knows."""
    key = "controlPlane" if form is VersionForm.MERGED else "KubernetesVersion"
    return {key: data[key]} if data.get(key) else {}


def _advice(form: VersionForm, data: Mapping[str, Any]) -> str:
    if template_data(form, data):
        return f"contentFormat {form.content_format} has {form.variable} alone"
    if form is VersionForm.MERGED:
        return (
            "the control plane's version is not known, as Cluster.spec.controlPlaneRef is unset or its object has no spec.version: "
            "set it, or guard the line with {{ if .controlPlane }}"
        )
    return "the version of the node to join is not known: set the version of the Machine or of its control plane"


async def _text(source: Mapping[str, Any], read_secret: ReadSecret, namespace: str) -> str:
    """What a reference leads to."""
    name, key = (source["secret"].get(part) or "" for part in ("name", "key"))
    place = f"{namespace}/{name}" if namespace else name
    try:
        content = await read_secret(name)
    except OperatorError as error:
        raise OperatorError(f"failed to retrieve Secret {quoted(place)}: {error.message}") from error
    if content is None:
        raise OperatorError(f"secret not found: {place}: secrets {quoted(name)} not found")
    if key not in content:
        raise OperatorError(f"secret references non-existent secret key: {quoted(key)}")
    try:
        return content[key].decode()
    except UnicodeDecodeError as error:
        what = "its bytes cannot be written into bootstrap data: store it as base64 and set encoding to base64"
        raise OperatorError(
            f"key {quoted(key)} of Secret {quoted(place)} is not UTF-8 ({error.reason} at byte {error.start}), and {what}"
        ) from None
