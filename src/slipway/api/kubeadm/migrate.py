"""A configuration file of any version as a file of v1beta4, in one step, without a host, a clock or a network.

The result is as sparse as the file was: no defaults are written into it.  A document that needs no change is kept as it
stands, comments and all.  What was moved, dropped or repaired is said in notes; what cannot be kept is an error, and
all errors of a file are told at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.kubeadm import conversion, v1beta4
from slipway.api.kubeadm.history import CURRENT, VERSIONS, Component, Journal, Note, components, kinds, repairs, to_current
from slipway.api.machinery import strict
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.objects import Object
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "kubeadm.k8s.io"

_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


class Migration(NamedTuple):
    """The new file, and what there is to say about the way to it."""

    text: str
    notes: list[Note]


class _Part(NamedTuple):
    """A document of the new file.

    ``text`` is what the user wrote, and holds as long as ``content`` is still printed as ``before``; a document of some
    other program has no content.
    """

    origin: str
    content: Object | None = None
    text: str = ""
    before: str = ""


def migrate(text: str, source: str = "") -> Migration:
    """Convert ``text``; ConfigurationError says everything that stands in the way."""
    journal = Journal()
    problems: list[strict.Problem] = []
    parts: list[_Part] = []
    any_of_kubeadm = False
    for document in goyaml.load(text, source):
        if document.value is None:
            continue
        api_version, kind = _identify(document, journal)
        group, _, version = api_version.rpartition("/")
        any_of_kubeadm |= group == GROUP
        if group == GROUP:
            parts += _read(document, version, kind, journal, problems)
        elif components.is_component(api_version, kind):
            # Its other rules are those of its own program.
            problems += strict.duplicates(document)
            component = Component(kind=kind, value=document.value)
            parts.append(_Part(kind, component, _own_text(document), _print(component)))
        else:
            read = components.API_VERSIONS.get(kind)
            why = f"kubeadm reads only {read} of this kind" if read else "it is of another program, and kubeadm refuses a file that has it"
            journal.kept(kind, f"it is of {api_version}; {why}")
            parts.append(_Part(kind, text=_own_text(document)))
    if problems:
        raise ConfigurationError(strict.report(problems, source))
    if not any_of_kubeadm:
        raise ConfigurationError(f"{source or 'the file'} has no document of {GROUP}: there is nothing to migrate")
    parts = _with_timeouts_joined(parts, journal)
    _refuse_twins(parts, journal)
    for part in parts:
        _repair(part.content, journal)
    _raise_refusals(journal, source)
    if not parts:
        raise ConfigurationError(f"{source or 'the file'} has nothing that {v1beta4.API_VERSION} could hold: {journal.notes[-1]}")
    return Migration("---\n".join(_write(part) for part in parts), journal.notes)


def _identify(document: goyaml.Document, journal: Journal) -> tuple[str, str]:
    """What a document says that it is or, where it says nothing and looks like v1alpha1, what it looks like."""
    value = document.value
    if not isinstance(value, dict):
        raise ConfigurationError(f"{_place(document)}: a document must be a mapping with apiVersion and kind in it")
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ConfigurationError(f"{_place(document)}: apiVersion and kind must be texts")
    if not api_version and not kind:
        from slipway.api.kubeadm.history.v1alpha1 import recognise

        recognised = recognise(value)
        if recognised is not None:
            journal.repaired(recognised, f"the document has no apiVersion and kind; by its fields it was taken for {GROUP}/v1alpha1")
            return f"{GROUP}/v1alpha1", recognised
    if not api_version or not kind:
        missing = " and no ".join(name for name, given in (("apiVersion", api_version), ("kind", kind)) if not given)
        raise ConfigurationError(
            f"{_place(document)}: the document has no {missing}: kind and apiVersion is mandatory information that must be specified, "
            f"such as apiVersion: {v1beta4.API_VERSION} and kind: ClusterConfiguration"
        )
    return api_version, kind


def _read(document: goyaml.Document, version: str, kind: str, journal: Journal, problems: list[strict.Problem]) -> list[_Part]:
    """The parts that stand for one document of kubeadm; what is wrong with it goes to ``problems``."""
    if version not in VERSIONS:
        raise ConfigurationError(f"{_place(document)}: {GROUP}/{version} is not a known version; known are {', '.join(VERSIONS)}")
    known = kinds(version)
    if kind not in known:
        raise ConfigurationError(f"{_place(document)}: {GROUP}/{version} has no kind {kind}; it has {', '.join(known)}")
    decoded, found = strict.decode(known[kind], document)
    found += _malformed(decoded, document)
    problems += found
    if found:
        return []
    if version == CURRENT:
        return [_Part(kind, decoded, _own_text(document), _print(decoded))]
    return [_Part(kind, content) for content in to_current(version, decoded, journal)]


def _malformed(decoded: Object, document: goyaml.Document) -> Iterator[strict.Problem]:
    """Texts with a form of their own, which Go checks while it decodes: bootstrap tokens and times."""
    for position, token in enumerate(getattr(decoded, "bootstrap_tokens", ())):
        path: goyaml.Path = ("bootstrapTokens", position)
        if token.token and _TOKEN.fullmatch(token.token) is None:
            yield _problem(document, (*path, "token"), f'the bootstrap token "{token.token}" was not of the form "{_TOKEN.pattern}"')
        yield from _bad_time(token.expires, document, (*path, "expires"))
    registration = getattr(decoded, "node_registration", None)
    for position, taint in enumerate(getattr(registration, "taints", None) or ()):
        yield from _bad_time(taint.time_added, document, ("nodeRegistration", "taints", position, "timeAdded"))


def _bad_time(text: str | None, document: goyaml.Document, path: goyaml.Path) -> Iterator[strict.Problem]:
    if text is None:
        return
    try:
        conversion.utc_time(text)
    except ValueError as error:
        yield _problem(document, path, str(error))


def _problem(document: goyaml.Document, path: goyaml.Path, message: str) -> strict.Problem:
    dotted = strict.field_path(path)
    return strict.Problem("type", dotted, document.line(path), f"{dotted}: {message}")


def _with_timeouts_joined(parts: list[_Part], journal: Journal) -> list[_Part]:
    """A ClusterConfiguration with a timeout leaves an InitConfiguration of only that, which belongs into the file's own."""
    own = next(
        (part.content for part in parts if part.origin != "ClusterConfiguration" and isinstance(part.content, v1beta4.InitConfiguration)),
        None,
    )
    if own is None:
        return parts
    joined = []
    for part in parts:
        stray = part.content
        if part.origin == "ClusterConfiguration" and isinstance(stray, v1beta4.InitConfiguration) and stray.timeouts is not None:
            own.timeouts = own.timeouts or v1beta4.Timeouts()
            if own.timeouts.control_plane_component_health_check is None:
                own.timeouts.control_plane_component_health_check = stray.timeouts.control_plane_component_health_check
            else:
                journal.kept(
                    "InitConfiguration.timeouts.controlPlaneComponentHealthCheck", "it comes before the ClusterConfiguration's timeout"
                )
        else:
            joined.append(part)
    return joined


def _refuse_twins(parts: list[_Part], journal: Journal) -> None:
    seen: set[str] = set()
    for part in parts:
        kind = part.content.kind if isinstance(part.content, Component) else type(part.content).__name__
        if part.content is not None and kind in seen:
            journal.refused(kind, f'kind "{kind}" is specified twice in YAML file, or once as a document and once inside another')
        seen.add(kind)


def _repair(content: Object | None, journal: Journal) -> None:
    if isinstance(content, Component):
        components.repair(content, journal)
    elif content is not None:
        repairs.repair(content, journal)


def _raise_refusals(journal: Journal, source: str) -> None:
    if journal.refusals:
        start = f"{source} cannot be migrated" if source else "the file cannot be migrated"
        raise ConfigurationError(start + "".join(f"\n  {refusal}" for refusal in journal.refusals))


def _write(part: _Part) -> str:
    if part.content is None:
        return part.text
    printed = _print(part.content)
    return part.text if part.text and printed == part.before else printed


def _print(content: Object) -> str:
    if isinstance(content, Component):
        return goyaml.dump(content.value)
    return goyaml.dump({"apiVersion": v1beta4.API_VERSION, "kind": type(content).__name__} | sparse(content))


def sparse(value: Object, *, in_list: bool = False) -> dict[str, Any]:
    """The object on the wire, with only what differs from an empty one; items of lists keep their required fields."""
    empty = type(value)()
    printed: dict[str, Any] = {}
    for name, wire in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        item, unset = getattr(value, name), getattr(empty, name)
        # An object that can be absent says something by being there, even with nothing in it.
        if item == unset and not (in_list and name in value.always_printed and item is not None):
            continue
        printed[wire] = _plain(item)
    return printed


def _plain(value: Any) -> Any:
    if isinstance(value, Object):
        return sparse(value)
    if isinstance(value, list):
        return [sparse(item, in_list=True) if isinstance(item, Object) else item for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Duration) else value


def _own_text(document: goyaml.Document) -> str:
    """The document as the user wrote it, without a separator before it."""
    return re.sub(r"^---.*\n", "", document.text)


def _place(document: goyaml.Document) -> str:
    return f"{document.source}:{document.line()}" if document.source else f"line {document.line()}"
