"""A user's patches for what is generated: files of a folder, named ``target[suffix][+type].yaml`` or ``.json``.

Targets are the static Pods, the kubelet's configuration and the CoreDNS Deployment; types are JSON patches, merge patches and
strategic merge patches.  Files apply in the order of their names, and the documents of a file in their order.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from slipway.api.machinery import gotypes
from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.patches import jsonpatch, strategicmerge
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.context import NodeContext

KUBELET_CONFIGURATION = "kubeletconfiguration"
COREDNS_DEPLOYMENT = "corednsdeployment"

_KINDS = {
    "etcd": "Pod",
    "kube-apiserver": "Pod",
    "kube-controller-manager": "Pod",
    "kube-scheduler": "Pod",
    KUBELET_CONFIGURATION: "KubeletConfiguration",
    COREDNS_DEPLOYMENT: "Deployment",
}
TARGETS = tuple(_KINDS)
"""What can be patched."""

JSON, MERGE, STRATEGIC = "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"
_TYPES = {"json": JSON, "merge": MERGE, "strategic": STRATEGIC}
_EXTENSIONS = ("json", "yaml")
_EXTENSION = re.compile(r".+\.(json|yaml)\Z")
# kubeadm trims a document before it reads it, which makes an indented separator at its start one that counts.
_INDENTED_SEPARATOR = re.compile(r"(\A|^---[^\n]*\n)[ \t]+(?=---)", re.MULTILINE)


class Patch(msgspec.Struct, frozen=True):
    """One patch of a file: a document of it."""

    target: str
    type: str
    content: Any
    file: str


class PatchSet(msgspec.Struct, frozen=True):
    """The patches of a folder, in the order in which they apply."""

    patches: tuple[Patch, ...]
    files: tuple[str, ...]
    ignored: tuple[str, ...]


# kubeadm reads a folder once in a run, and says so once.
_read: WeakKeyDictionary[Host, dict[str, PatchSet]] = WeakKeyDictionary()


def patch(ctx: NodeContext, target: str, manifest: Manifest) -> Manifest:
    """The manifest with the user's patches for a target; the one that came in where there are no patches.

    A static Pod goes through its Go type, as kubeadm's does, so that it comes out as it is to be written.  A patched
    kubelet configuration does not: what a patch sets stays as it is.
    """
    directory = ctx.config.patches.directory if ctx.config.patches is not None else ""
    if not directory:
        return manifest
    folders = _read.setdefault(ctx.host, {})
    if directory not in folders:
        folders[directory] = load(directory, TARGETS, ctx.host, ctx.progress)
    patched = apply(folders[directory].patches, target, manifest, ctx.release.minor, ctx.progress)
    return _through_go_type(patched, _KINDS[target], ctx.release.minor)


def patch_from_file(ctx: NodeContext, target: str, manifest: Manifest, path: str) -> Manifest:
    """The manifest with the strategic merge patches of one file, whatever its name."""
    try:
        text = ctx.host.read(path).decode()
    except OSError as error:
        raise OperatorError(f'could not read patch file "{path}": {error.strerror}') from error
    return apply(parse(text, target, STRATEGIC, path), target, manifest, ctx.release.minor, ctx.progress)


def load(directory: str, targets: tuple[str, ...], host: Host, progress: Progress) -> PatchSet:
    """Read the patches of a folder and of the folders in it; files that are no patches are named and left alone."""
    progress.say(f'[patches] Reading patches from path "{directory}"')
    complaint = f'could not list patch files for path "{directory}"'
    if not host.exists(directory):
        raise OperatorError(f"{complaint}: no such file or directory")
    if not host.is_dir(directory):
        raise OperatorError(f"{complaint}: not a directory")
    patches: list[Patch] = []
    files: list[str] = []
    ignored: list[str] = []
    for path in _files(host, directory.rstrip("/") or "/"):
        name = path.rpartition("/")[2]
        try:
            target, patch_type, warning = parse_name(name, targets)
            text = "" if warning else _read_text(host, path)
            patches += parse(text, target, patch_type, path)
        except OperatorError as error:
            raise OperatorError(f"{complaint}: {error.message}") from error
        if text:
            files.append(name)
            continue
        progress.say(f'[patches] Ignoring file "{name}": {warning}' if warning else f'[patches] Ignoring empty file: "{name}"')
        ignored.append(name)
    if files:
        progress.say(f"[patches] Found the following patch files: [{' '.join(files)}]")
    if ignored:
        progress.say(f"[patches] Ignored the following files: [{' '.join(ignored)}]")
    return PatchSet(tuple(patches), tuple(files), tuple(ignored))


def parse_name(name: str, targets: tuple[str, ...] = TARGETS) -> tuple[str, str, str]:
    """The target and the type that a file name says, or why the file is not a patch; OperatorError for an unknown type."""
    if not _EXTENSION.match(name):
        return "", "", f"the file extension must be one of [{' '.join(_EXTENSIONS)}]"
    match = re.match(rf"({'|'.join(targets)})([^.+\n]*)?(\+)?({'|'.join(_TYPES)})?", name)
    if match is None:
        return "", "", f"unknown target, must be one of [{' '.join(targets)}]"
    target, _, plus, patch_type = match.groups()
    if plus and not patch_type:
        raise OperatorError(f"file \"{name}\": unknown or missing patch type after '+', must be one of [{' '.join(_TYPES)}]")
    return target, _TYPES[patch_type or "strategic"], ""


def parse(text: str, target: str, patch_type: str, path: str) -> list[Patch]:
    """The patches in a file's text; documents with nothing in them are none."""
    documents = goyaml.load(_INDENTED_SEPARATOR.sub(r"\1", text), path)
    return [Patch(target, patch_type, document.value, path) for document in documents if document.text.strip()]


def apply(patches: Iterable[Patch], target: str, manifest: Manifest, minor: int, progress: Progress) -> Manifest:
    """The manifest with those of the patches that are for the target."""
    for item in patches:
        if item.target != target:
            continue
        try:
            manifest = _applied(item, manifest, minor)
        except OperatorError as error:
            raise OperatorError(
                f'could not apply the following patch of type "{item.type}" to target "{target}", from the file "{item.file}": '
                f"{error.message}:\n{json.dumps(item.content)}"
            ) from error
        progress.say(f'[patches] Applied patch of type "{item.type}" to target "{target}"')
    return manifest


def _applied(item: Patch, manifest: Manifest, minor: int) -> Manifest:
    if item.type == STRATEGIC:
        return strategicmerge.apply(manifest, item.content, _KINDS[item.target], minor)
    result = jsonpatch.apply(manifest, item.content) if item.type == JSON else jsonpatch.merge(manifest, item.content)
    if not isinstance(result, dict):
        raise ConfigurationError("the patched manifest is not an object")
    return result


def _through_go_type(manifest: Manifest, kind: str, minor: int) -> Manifest:
    if kind == "KubeletConfiguration":
        return manifest
    if manifest.get("kind") != kind:
        raise OperatorError(f"patched manifest is not a valid {kind} object: its kind is {manifest.get('kind')}")
    decoded, findings = gotypes.decode(manifest, kind, minor)
    wrong = [finding.message for finding in findings if finding.kind == "type"]
    if wrong:
        raise OperatorError(f"failed to unmarshal patched manifest: {'; '.join(wrong)}")
    # A Deployment gets its zero values where it is sent.
    return gotypes.encode(decoded, kind, minor) if kind == "Pod" else decoded


def _files(host: Host, folder: str) -> list[str]:
    """All files below a folder, in the order of their names, level by level."""
    found: list[str] = []
    for name in host.list_dir(folder):
        path = f"{folder.rstrip('/')}/{name}"
        if not host.is_dir(path):
            found.append(path)
        # The bookkeeping of a mounted ConfigMap starts with two dots; its files show up beside it as well.
        elif not name.startswith(".."):
            found += _files(host, path)
    return found


def _read_text(host: Host, path: str) -> str:
    try:
        return host.read(path).decode()
    except OSError as error:
        raise OperatorError(f'could not read the file "{path}": {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise OperatorError(f'the patch file "{path}" is not UTF-8 text: {error}') from error
