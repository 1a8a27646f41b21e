"""The rules for a KubeadmConfigSpec that no schema can express, wherever one is: in a KubeadmConfig, in a control plane, or in a template.

The rules and their texts are those of Cluster API 1.14, whose gate for Ignition is always open here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster.bootstrap.config import IGNITION
from slipway.api.cluster.meta import manifest
from slipway.api.machinery.fieldpath import FieldError, Fields, Path, forbidden, invalid, quoted, required
from slipway.credentials import tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.cluster.bootstrap.config import File, FileSource, KubeadmConfigSpec, PasswdSource
    from slipway.api.cluster.meta import Type
    from slipway.api.machinery.objects import Manifest

_NOT_WITH_IGNITION = f"not supported when spec.format is set to: {quoted(IGNITION)}"
_WHOLE = 100


def validate_spec(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    """The rules of Cluster API for a KubeadmConfigSpec, wherever it is."""
    return [
        *_file_errors(spec, path.child("files")),
        *_user_errors(spec, path.child("users")),
        *_ignition_errors(spec, path),
        *_token_errors(spec, path.child("initConfiguration", "bootstrapTokens")),
        *_disk_errors(spec, path.child("diskSetup", "partitions")),
        *_discovery_errors(spec, path.child("joinConfiguration", "discovery", "file", "kubeconfig", "user")),
    ]


def with_former_defaults(spec: Manifest) -> Manifest:
    """A KubeadmConfigSpec with what Cluster API filled in before it stopped doing so.

    For comparisons with objects from that time, in which a difference would mean a change that nobody made.
    """
    out = dict(spec)
    out["format"] = out.get("format") or "cloud-config"
    for section in ("initConfiguration", "joinConfiguration"):
        configuration = dict(out.get(section) or {})
        registration = dict(configuration.get("nodeRegistration") or {})
        registration["imagePullPolicy"] = registration.get("imagePullPolicy") or "IfNotPresent"
        out[section] = {**configuration, "nodeRegistration": registration}
    out["joinConfiguration"] = _with_exec_version(out["joinConfiguration"])
    return out


def _with_exec_version(join: Mapping[str, Any]) -> dict[str, Any]:
    """The joinConfiguration, with the API version of the command that gives credentials, if it has one."""
    way = ("discovery", "file", "kubeConfig", "user", "exec")
    levels = [join]
    for key in way:
        levels.append(levels[-1].get(key) or {})
    if not levels[-1] or levels[-1].get("apiVersion"):
        return dict(join)
    value: dict[str, Any] = {**levels[-1], "apiVersion": "client.authentication.k8s.io/v1"}
    for level, key in zip(reversed(levels[:-1]), reversed(way), strict=True):
        value = {**level, key: value}
    return value


def _file_errors(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    paths: set[str] = set()
    for position, file in enumerate(spec.files):
        place = path.index(position)
        if file.content and file.content_from:
            found.append(_conflict(place, file, "only one of content or contentFrom may be specified for a single file"))
        found += _source_errors(file.content_from, place.child("contentFrom", "secret"))
        if file.path in paths:
            found.append(_conflict(place.child("path"), file, "path property must be unique among all files"))
        paths.add(file.path)
    return found


def _user_errors(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for position, user in enumerate(spec.users):
        place = path.index(position)
        if user.passwd and user.passwd_from:
            found.append(_conflict(place, user, "only one of passwd or passwdFrom may be specified for a single user"))
        found += _source_errors(user.passwd_from, place.child("passwdFrom", "secret"))
    return found


def _source_errors(source: FileSource | PasswdSource, path: Path) -> list[FieldError]:
    if not source:
        return []
    parts = {"name": source.secret.name, "key": source.secret.key}
    return [
        required(path.child(part), f"secret file source must specify non-empty secret {part}") for part, value in parts.items() if not value
    ]


def _conflict(path: Path, value: Type, detail: str) -> FieldError:
    return invalid(path, Fields(manifest(value)), detail)


def _ignition_errors(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    if spec.format != IGNITION:
        needed = f"must be set to {quoted(IGNITION)} if spec.ignition is set"
        return [invalid(path.child("format"), spec.format, needed)] if spec.ignition else []
    found = [
        forbidden(path.child("users").index(position).child("inactive"), _NOT_WITH_IGNITION)
        for position, user in enumerate(spec.users)
        if user.inactive
    ]
    found += [
        forbidden(path.child("files").index(position).child("encoding"), _NOT_WITH_IGNITION)
        for position, file in enumerate(spec.files)
        if _is_gzipped(file)
    ]
    if spec.boot_commands:
        found.append(forbidden(path.child("bootCommands"), _NOT_WITH_IGNITION))
    return found + _ignition_disk_errors(spec, path.child("diskSetup"))


def _is_gzipped(file: File) -> bool:
    return file.encoding in ("gzip", "gzip+base64")


def _ignition_disk_errors(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    only = f'only partition type "gpt" is supported when spec.format is set to {quoted(IGNITION)}'
    found = [
        invalid(path.child("partitions").index(position).child("tableType"), partition.table_type, only)
        for position, partition in enumerate(spec.disk_setup.partitions)
        if partition.table_type not in ("", "gpt")
    ]
    for position, filesystem in enumerate(spec.disk_setup.filesystems):
        place = path.child("filesystems").index(position)
        for name, value in (("replaceFS", filesystem.replace_fs), ("partition", filesystem.partition)):
            if value:
                found.append(forbidden(place.child(name), _NOT_WITH_IGNITION))
    return found


def _disk_errors(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    sums = [sum(part.percentage for part in partition.disk_layout) for partition in spec.disk_setup.partitions]
    return [
        invalid(path.index(position).child("diskLayout"), total, "the sum of all partition percentages must not be greater than 100")
        for position, total in enumerate(sums)
        if total > _WHOLE
    ]


def _token_errors(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    """Upstream's type of a token cannot hold another text."""
    return [
        invalid(path.index(position).child("token"), given.token, f"the bootstrap token was not of the form {quoted(tokens.PATTERN)}")
        for position, given in enumerate(spec.init_configuration.bootstrap_tokens)
        if not tokens.is_token(given.token)
    ]


def _discovery_errors(spec: KubeadmConfigSpec, path: Path) -> list[FieldError]:
    user = spec.join_configuration.discovery.file.kube_config.user
    if not (user.auth_provider and user.exec):
        return []
    return [_conflict(path, user, "only one of authProvider or exec must be defined")]
