"""Between the stored version v1beta2 and v1beta1, which is served beside it: what the conversions of all groups share.

As upstream's webhook does it: a v1beta1 object that was v1beta2 carries that form whole in an annotation.  Where nobody has
changed a part of it since, that form is the answer, so that nothing is lost on the way there and back; where somebody has,
what v1beta1 cannot say is taken from it, field by field.  Upstream does only the latter.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from slipway.api.cluster.meta import Type, manifest
from slipway.api.cluster.names import CONVERSION_DATA_ANNOTATION
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.strict import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest

    # The apiVersion that a kind has by the contract label of its CRD: group and kind in, group/version out.
    Lookup = Callable[[str, str], str]

OLD, HUB = "v1beta1", "v1beta2"
_MOST_SECONDS = 2**31 - 1
_SECOND = 1_000_000_000

Path = tuple[str, ...]


class ConversionError(OperatorError):
    """An object that has no form in the other version."""


class Part(NamedTuple):
    """How the spec or the status of a kind is converted.

    ``down`` gets what v1beta2 prints, and the object's namespace, and gives what v1beta1 reads; ``up`` gets what v1beta1 prints,
    and what the part was in v1beta2 when it was last converted, which is empty where that is not known.  Both may change
    what they get.  Fields of the same name and meaning need no word.  ``references`` are those to objects of providers:
    where they are in v1beta1, and where in v1beta2.
    """

    hub: type[Type]
    old: type[Type]
    down: Callable[[Manifest, str], Manifest]
    up: Callable[[Manifest, Manifest], Manifest]
    references: Sequence[tuple[Path, Path]] = ()


class Conversion(NamedTuple):
    """How a kind is converted.  ``data``: v1beta1 cannot say all of it, and carries the v1beta2 form in an annotation."""

    parts: Mapping[str, Part]
    data: bool = True


def convert(content: Manifest, api_version: str, conversions: Mapping[str, Conversion], lookup: Lookup | None) -> Manifest:
    """An object of a group in the wanted version, as a conversion webhook answers.  What is given stays as it is."""
    had, kind = str(content.get("apiVersion", "")), str(content.get("kind", ""))
    group, _, version = had.rpartition("/")
    if had == api_version:
        return deepcopy(content)
    if kind not in conversions or {version, api_version.removeprefix(f"{group}/")} != {OLD, HUB}:
        raise ConversionError(
            f"{kind} {had} cannot be converted to {api_version}: only {' and '.join(conversions)} can, "
            f"between {group}/{OLD} and {group}/{HUB}"
        )
    conversion, given = conversions[kind], without_nulls(content)
    return _up(given, api_version, conversion) if version == OLD else _down(given, api_version, conversion, lookup)


def _down(content: Manifest, api_version: str, conversion: Conversion, lookup: Lookup | None) -> Manifest:
    metadata = metadata_of(content)
    parts = {name: hub_form(content.get(name) or {}, part.hub) for name, part in conversion.parts.items()}
    if conversion.data:
        data = {"kind": content["kind"], "apiVersion": content["apiVersion"]} | {name: each for name, each in parts.items() if each}
        metadata["annotations"] = (metadata.get("annotations") or {}) | {CONVERSION_DATA_ANNOTATION: msgspec.json.encode(data).decode()}
    namespace = str(metadata.get("namespace") or "")
    out: Manifest = {"apiVersion": api_version, "kind": content["kind"], "metadata": metadata}
    for name, part in conversion.parts.items():
        out[name] = part_down(parts[name], part, namespace, _asked(lookup))
    return out


def _up(content: Manifest, api_version: str, conversion: Conversion) -> Manifest:
    metadata, restored = take_data(content) if conversion.data else (metadata_of(content), None)
    namespace = str(metadata.get("namespace") or "")
    out: Manifest = {"apiVersion": api_version, "kind": content["kind"], "metadata": metadata}
    for name, part in conversion.parts.items():
        made = part_up(content.get(name) or {}, None if restored is None else restored.get(name) or {}, part, namespace)
        if made:
            out[name] = made
    return out


def _asked(lookup: Lookup | None) -> Lookup:
    def ask(group: str, kind: str) -> str:
        if lookup is None:
            raise ConversionError(
                f"the reference to a {kind} of {group} cannot be converted: v1beta1 names a version, and nobody here knows which one "
                "the label of its CustomResourceDefinition says"
            )
        return lookup(group, kind)

    return ask


def _unknown_version(group: str, _: str) -> str:
    """Of a reference the group alone: which version a kind has, its CRD says, and it may say another one today."""
    return group


def part_down(hub: Manifest, part: Part, namespace: str = "", lookup: Lookup = _unknown_version) -> Manifest:
    """A part as v1beta1 prints it."""
    out = part.down(deepcopy(hub), namespace)
    for old_path, hub_path in part.references:
        reference = at(hub, *hub_path)
        holder = within(out, *old_path[:-1])
        holder.pop(old_path[-1], None)
        if reference:
            version = lookup(reference.get("apiGroup", ""), reference.get("kind", ""))
            made = {"apiVersion": version, "kind": reference.get("kind"), "namespace": namespace, "name": reference.get("name")}
            holder[old_path[-1]] = {key: value for key, value in made.items() if value}
    return old_form(out, part.old)


def part_up(content: Manifest, restored: Manifest | None, part: Part, namespace: str = "") -> Manifest:
    """A part as v1beta2 prints it; ``restored`` is what it was, None where there was no annotation."""
    given = old_form(content, part.old)
    before = hub_form(restored or {}, part.hub)
    if restored is not None and part_down(before, part, namespace) == _unversioned(given, part):
        return before
    out = part.up(deepcopy(given), before)
    for old_path, hub_path in part.references:
        reference = at(given, *old_path)
        holder = within(out, *hub_path[:-1])
        holder.pop(hub_path[-1], None)
        if reference:
            holder[hub_path[-1]] = {
                "apiGroup": _group(reference.get("apiVersion", "")),
                "kind": reference.get("kind", ""),
                "name": reference.get("name", ""),
            }
    return hub_form(out, part.hub)


def _unversioned(given: Manifest, part: Part) -> Manifest:
    """The part with the group alone in each reference."""
    out = deepcopy(given)
    for old_path, _ in part.references:
        reference = at(out, *old_path)
        if reference and "apiVersion" in reference:
            group = _group(reference.pop("apiVersion"))
            reference |= {"apiVersion": group} if group else {}
    return out


def _group(api_version: str) -> str:
    if api_version.count("/") > 1:
        raise ConversionError(f'a reference cannot be converted: its apiVersion "{api_version}" is not group/version')
    return api_version.rpartition("/")[0]


def without_nulls(value: Any) -> Any:
    """A copy without null, which Go reads as if it were not there."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def take_data(content: Manifest) -> tuple[Manifest, Manifest | None]:
    """The metadata without the annotation, and what the annotation holds."""
    metadata = metadata_of(content)
    annotations = metadata.get("annotations") or {}
    text = annotations.pop(CONVERSION_DATA_ANNOTATION, None)
    if not annotations:
        metadata.pop("annotations", None)
    if text is None:
        return metadata, None
    try:
        return metadata, without_nulls(msgspec.json.decode(msgspec.convert(text, str), type=dict[str, Any]))
    except msgspec.DecodeError as error:
        raise ConversionError(
            f"{_named(content)}: the annotation {CONVERSION_DATA_ANNOTATION} does not hold the object's v1beta2 form: {error}. "
            "Remove the annotation"
        ) from error


def metadata_of(content: Manifest) -> Manifest:
    """A copy of the metadata, of which the annotations are an object, too."""
    at(content, "metadata", "annotations")
    return deepcopy(content.get("metadata") or {})


def _named(content: Manifest) -> str:
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return f"{content.get('kind')} {metadata.get('namespace', '')}/{metadata.get('name', '')}"


def hub_form(content: Manifest, into: type[Type]) -> Manifest:
    """The content as a type of v1beta2 prints it: unknown and empty fields are gone."""
    try:
        return manifest(msgspec.convert(content, into))
    except msgspec.ValidationError as error:
        raise ConversionError(f"not a valid {into.__name__} of {HUB}: {error}") from error


def old_form(content: Manifest, into: type[Type]) -> Manifest:
    """The content as a type of v1beta1 prints it."""
    try:
        return encode(msgspec.convert(content, into))
    except msgspec.ValidationError as error:
        raise ConversionError(f"not a valid {into.__name__} of {OLD}: {error}") from error


def at(content: Manifest, *path: str) -> Manifest | None:
    """The object at a path, or None where the path ends before."""
    here: Manifest = content
    for depth, key in enumerate(path, 1):
        found = here.get(key)
        if not found:
            return found if isinstance(found, dict) and depth == len(path) else None
        if not isinstance(found, dict):
            raise ConversionError(f"{_named(content)}: {'.'.join(path[:depth])} is no object")
        here = found
    return here


def within(content: Manifest, *path: str) -> Manifest:
    """What is at a path, which is made where it ends."""
    for key in path:
        if content.get(key) is None:
            content[key] = {}
        content = content[key]
    return content


def duration(seconds: int) -> str:
    return str(Duration.of(seconds=seconds))


def seconds_of(text: str) -> int:
    """Whole seconds, towards zero, as many as 32 bits hold."""
    try:
        found = Duration.parse(text)
    except ValueError as error:
        raise ConversionError(f"a duration of {OLD} cannot be read: {error}") from error
    whole = abs(found) // _SECOND
    return min(whole, _MOST_SECONDS) if found >= 0 else -whole


def meant(value: Any, was: Any) -> Any:
    """v1beta1 has no word for "not said": a false or a 0 is only one in v1beta2 where it was one before."""
    return value or (was if was is not None and not was else None)
