"""Bootstrap data made fit for a host: its hostname, the kubelet's provider ID, the container runtime's socket, and files of ours.

A cloud-config may be a Jinja template that only cloud-init can render, on the host.  So the text is not read and written again, which would
quote anew: lines are put in and replaced where the parsed text says that they are, and all others stay byte by byte.
"""

from __future__ import annotations

import gzip
import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Sequence

CRI_SOCKET = "unix:///var/run/containerd/containerd.sock"
CLOUD_CONFIG = "cloud-config"

_JINJA_HEADER = re.compile(r"##\s*template\s*:\s*jinja\s*", re.IGNORECASE | re.ASCII)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
# What YAML would take for its own in an expression, as characters that mean nothing to it; one for one, so that lines and columns stay.
_SPECIAL = "{}[],&*#?|-<>=!%@`:'\"\\"
_MASK = str.maketrans({character: chr(0xE000 + position) for position, character in enumerate(_SPECIAL)})
_UNMASK = str.maketrans({chr(0xE000 + position): character for position, character in enumerate(_SPECIAL)})
_KUBEADM_GROUP = "kubeadm.k8s.io/"
_WITH_ARGUMENTS_AS_LIST = "kubeadm.k8s.io/v1beta4"
_NODE_KINDS = ("InitConfiguration", "JoinConfiguration")
_BASE64 = ("b64", "base64")
_GZIPPED = ("gz+b64", "gz+base64", "gzip+b64", "gzip+base64")


class BootstrapDataError(OperatorError):
    """The bootstrap data cannot be used for a host."""


class HostFile(NamedTuple):
    """A file that the host gets beside those of the bootstrap data."""

    path: str
    content: bytes
    mode: str = "0644"


class Resolved(NamedTuple):
    """User-data of one host, and the bootstrap token that it joins with; none where it creates the cluster."""

    user_data: bytes
    token: str = ""


def resolve(value: bytes, data_format: str, *, hostname: str, provider_id: str, files: Sequence[HostFile] = ()) -> Resolved:
    """The user-data for one host."""
    text = _text(value, data_format)
    jinja = bool(_JINJA_HEADER.fullmatch(text.partition("\n")[0]))
    document = _parsed(text, jinja=jinja)
    edit = _Edit(text.split("\n"))
    for name in ("hostname", "preserve_hostname"):
        if name in document.value:
            edit.replace(*_root_span(document, name, edit.count), [])
    mended = _edit_write_files(edit, document, provider_id, files, jinja=jinja)
    made = edit.text([f"hostname: {goyaml.dump(hostname).rstrip()}", "preserve_hostname: false"])
    _refuse_damage(document.value, made, mended, len(files), jinja=jinja)
    return Resolved(made.encode(), next((each.token for each in mended.values() if each.token), ""))


def _text(value: bytes, data_format: str) -> str:
    if data_format not in ("", CLOUD_CONFIG):
        raise BootstrapDataError(
            f'the bootstrap data is of the format "{data_format}", and hosts are set up by cloud-init: leave the format of the '
            f'KubeadmConfig out, or set it to "{CLOUD_CONFIG}"'
        )
    try:
        text = value.decode().replace("\r\n", "\n").rstrip("\n")
    except UnicodeDecodeError as error:
        raise BootstrapDataError(f"the bootstrap data is no text: byte {error.start} is not UTF-8") from None
    if "#cloud-config" not in [line.strip() for line in text.split("\n")[:2]]:
        raise BootstrapDataError('the bootstrap data is no cloud-config: neither its first nor its second line is "#cloud-config"')
    return text


def _parsed(text: str, *, jinja: bool) -> goyaml.Document:
    masked = _JINJA.sub(lambda found: found[0].translate(_MASK), text) if jinja else text
    try:
        documents = [document for document in goyaml.load(masked, "the bootstrap data") if document.value is not None]
    except ConfigurationError as error:
        also = "; Jinja must stand inside of values" if jinja and "{%" in text else ""
        raise BootstrapDataError(f"the bootstrap data cannot be read: {error.message}{also}") from None
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise BootstrapDataError("the bootstrap data cannot be read: it is not one YAML mapping")
    return documents[0]


class _Edit:
    """Lines of a text that are replaced; the numbers, from 1, are those of the lines as they were."""

    def __init__(self, lines: list[str]) -> None:
        self._lines: list[list[str]] = [[line] for line in lines]
        self.count = len(lines)

    def line(self, number: int) -> str:
        return "".join(self._lines[number - 1])

    def replace(self, first: int, end: int, lines: list[str]) -> None:
        """Put ``lines`` in the place of those from ``first`` up to ``end``, which stays."""
        self._lines[first - 1 : end - 1] = [lines, *([] for _ in range(end - first - 1))]

    def insert(self, before: int, lines: list[str]) -> None:
        if before > self.count:
            self._lines[-1] = [*self._lines[-1], *lines]
        else:
            self._lines[before - 1] = [*lines, *self._lines[before - 1]]

    def text(self, more: list[str]) -> str:
        return "\n".join([*(line for lines in self._lines for line in lines), *more]) + "\n"


def _edit_write_files(
    edit: _Edit, document: goyaml.Document, provider_id: str, files: Sequence[HostFile], *, jinja: bool
) -> dict[int, _Mended]:
    """Mend kubeadm's configuration and add the files; what was mended, by its place."""
    entries = document.value.get("write_files")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        entries = []
    done: dict[int, _Mended] = {}
    spans = [_item_span(edit, document, index, len(entries)) for index in range(len(entries))]
    for index, entry in enumerate(entries):
        content = _content(entry)
        mended = _mended(content.translate(_UNMASK) if jinja else content, provider_id) if content else None
        if mended is None:
            continue
        done[index] = mended
        _replace_content(edit, document, index, spans[index], _encoding(entry), mended.text)
    if not done:
        raise BootstrapDataError(
            "the bootstrap data has no kubeadm configuration among its write_files, so the Node could not be told its provider ID"
        )
    indent = _indentation(edit.line(spans[-1][0]))
    edit.insert(spans[-1][1], [line for file in files for line in _file(file, indent)])
    return done


def _refuse_damage(before: dict[str, Any], text: str, mended: dict[int, _Mended], more: int, *, jinja: bool) -> None:
    """What stands in the lines now must be what was meant, and all else as it was: data may be written in ways that lines do not tell."""
    unusual = BootstrapDataError(
        "the bootstrap data cannot be made fit for the host as it is written: put every item of write_files, and each of its keys, on a "
        "line of its own"
    )
    try:
        after = _parsed(text, jinja=jinja).value
    except BootstrapDataError:
        raise unusual from None
    files = after.get("write_files")
    if _without_ours(after) != _without_ours(before) or not isinstance(files, list) or len(files) != len(before["write_files"]) + more:
        raise unusual
    for index, (was, now) in enumerate(zip(before["write_files"], files, strict=False)):
        if index not in mended:
            intact = was == now
        else:
            content = _content(now).translate(_UNMASK) if jinja else _content(now)
            others = [{key: value for key, value in each.items() if key != "content"} for each in (was, now)]
            intact = content.rstrip() == mended[index].text.rstrip() and others[0] == others[1]
        if not intact:
            raise unusual


def _without_ours(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in ("hostname", "preserve_hostname", "write_files")}


def _root_span(document: goyaml.Document, name: str, last: int) -> tuple[int, int]:
    """The lines of a top-level key: the first one, and the one after the last."""
    first = document.line((name,))
    return first, min((line for other in document.value if (line := document.line((other,))) > first), default=last + 1)


def _item_span(edit: _Edit, document: goyaml.Document, index: int, count: int) -> tuple[int, int]:
    first = _dash(edit, document, index)
    if index + 1 < count:
        return first, _dash(edit, document, index + 1)
    return first, _root_span(document, "write_files", edit.count)[1]


def _dash(edit: _Edit, document: goyaml.Document, index: int) -> int:
    """The line on which an item of write_files begins."""
    line, start = document.line(("write_files", index)), document.line(("write_files",))
    while line > start and not edit.line(line).lstrip().startswith("-"):
        line -= 1
    if line == start:
        raise BootstrapDataError("the write_files of the bootstrap data are not a YAML list with an item a line")
    return line


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _encoding(entry: dict[str, Any]) -> str:
    return str(entry.get("encoding") or "").lower()


def _content(entry: dict[str, Any]) -> str:
    """The text of a file; empty where it is none, or somebody else's affair."""
    content, encoding = entry.get("content"), _encoding(entry)
    if not isinstance(content, str):
        return ""
    if encoding not in (*_BASE64, *_GZIPPED):
        return content
    try:
        decoded = b64decode("".join(content.split()), validate=True)
        return (gzip.decompress(decoded) if encoding in _GZIPPED else decoded).decode()
    except (ValueError, OSError, EOFError):
        return ""


class _Mended(NamedTuple):
    text: str
    token: str


def _mended(content: str, provider_id: str) -> _Mended | None:
    """kubeadm's configuration with what a host needs; None where it is none."""
    if _KUBEADM_GROUP not in content:
        return None
    try:
        documents = [document for document in goyaml.load(content, "kubeadm's configuration in the bootstrap data") if document.value]
    except ConfigurationError as error:
        if any(kind in content for kind in _NODE_KINDS):
            raise BootstrapDataError(f"the bootstrap data cannot be used: {error.message}") from None
        return None
    values = [document.value for document in documents if isinstance(document.value, dict)]
    if not any(value.get("kind") in _NODE_KINDS for value in values):
        return None
    token = ""
    for value in values:
        if value.get("kind") in _NODE_KINDS:
            value["nodeRegistration"] = _registration(value, provider_id)
            token = token or _token(value)
    text = "".join(f"---\n{goyaml.dump(value)}" for value in values)
    if sorted(_JINJA.findall(text)) != sorted(_JINJA.findall(content)):
        raise BootstrapDataError(
            "the Jinja in kubeadm's configuration would not survive being written: quote it with double quotes, and use none inside"
        )
    return _Mended(text, token)


def _registration(configuration: dict[str, Any], provider_id: str) -> dict[str, Any]:
    registration = configuration.get("nodeRegistration") or {}
    arguments: Any = registration.get("kubeletExtraArgs") if isinstance(registration, dict) else None
    as_list = configuration.get("apiVersion") == _WITH_ARGUMENTS_AS_LIST
    fits = all(isinstance(each, dict) for each in arguments or ()) if as_list else isinstance(arguments or {}, dict)
    if not isinstance(registration, dict) or not fits:
        raise BootstrapDataError(
            f"nodeRegistration of the {configuration.get('kind')} in the bootstrap data is not what {configuration.get('apiVersion')} has"
        )
    if as_list:
        arguments = [
            *(each for each in arguments or [] if each.get("name") != "provider-id"),
            {"name": "provider-id", "value": provider_id},
        ]
    else:
        arguments = {**(arguments or {}), "provider-id": provider_id}
    return {**registration, "criSocket": registration.get("criSocket") or CRI_SOCKET, "kubeletExtraArgs": arguments}


def _token(configuration: dict[str, Any]) -> str:
    here: Any = configuration
    for name in ("discovery", "bootstrapToken", "token"):
        here = here.get(name) if isinstance(here, dict) else None
    return str(here or "")


def _replace_content(edit: _Edit, document: goyaml.Document, index: int, span: tuple[int, int], encoding: str, text: str) -> None:
    path: goyaml.Path = ("write_files", index)
    first = document.line((*path, "content"))
    keys = document.value["write_files"][index]
    end = min((place for key in keys if (place := document.line((*path, key))) > first), default=span[1])
    line = edit.line(first)
    margin = line[: line.index("content")]
    if encoding in (*_BASE64, *_GZIPPED):
        packed = gzip.compress(text.encode(), mtime=0) if encoding in _GZIPPED else text.encode()
        edit.replace(first, end, [f"{margin}content: {b64encode(packed).decode()}"])
        return
    inner = " " * (len(margin) + 2)
    edit.replace(first, end, [f"{margin}content: |", *(inner + each for each in text.rstrip("\n").split("\n"))])


def _file(file: HostFile, indent: str) -> list[str]:
    """In base64, where nothing can be taken for Jinja."""
    return [
        f"{indent}-   path: {goyaml.dump(file.path).rstrip()}",
        f"{indent}    owner: root:root",
        f"{indent}    permissions: '{file.mode}'",
        f"{indent}    encoding: b64",
        f"{indent}    content: {b64encode(file.content).decode()}",
    ]
