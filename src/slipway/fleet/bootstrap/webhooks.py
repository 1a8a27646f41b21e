"""What the API server asks before it stores a KubeadmConfig or a KubeadmConfigTemplate: the rules that no schema can express.

The rules and their texts are those of Cluster API 1.14, whose gate for Ignition is always open here.  Beyond them, a file that is a
template must parse; what it would print without a value is warned of.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.bootstrap.config import IGNITION, KubeadmConfig, KubeadmConfigTemplate
from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE
from slipway.api.cluster.meta import ObjectMeta, decode, manifest
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.fieldpath import Fault, FieldError, Fields, Path, forbidden, invalid, quoted, required
from slipway.api.machinery.gotemplate import Template, TemplateError
from slipway.api.machinery.gotemplate.errors import NoValueError, shortened
from slipway.api.machinery.labels import validate_annotations, validate_labels
from slipway.credentials import tokens
from slipway.fleet.bootstrap.data import files
from slipway.runtime.webhook.admission import Defaulter, Problem, Validator, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.cluster.bootstrap.config import File, FileSource, KubeadmConfigSpec, PasswdSource
    from slipway.api.cluster.meta import Type
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.webhook.admission import AdmissionRequest

TOPOLOGY_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"

_REASONS = {
    Fault.REQUIRED: "FieldValueRequired",
    Fault.INVALID: "FieldValueInvalid",
    Fault.FORBIDDEN: "FieldValueForbidden",
    Fault.TOO_LONG: "FieldValueTooLong",
}
_NOT_WITH_IGNITION = f"not supported when spec.format is set to: {quoted(IGNITION)}"
_WHOLE = 100
# What a template is tried with: any version does, as long as there is one.
_SAMPLE = {"KubernetesVersion": "v1.35.0", "controlPlane": {"version": "v1.35.0"}}


def webhooks() -> list[Validator | Defaulter]:
    return [
        Validator(KUBEADM_CONFIG, _verdict),
        Defaulter(KUBEADM_CONFIG_TEMPLATE, _defaulted),
        Validator(KUBEADM_CONFIG_TEMPLATE, _verdict),
    ]


def validate(new: Manifest, old: Manifest | None, deadline: float | None = None) -> list[FieldError]:
    """What is wrong with a KubeadmConfig or a KubeadmConfigTemplate.  Templates that ``old`` had already are not looked at again."""
    try:
        found, metadata = _rule_errors(new)
    except msgspec.ValidationError as error:
        return [invalid(Path("spec"), "", str(error))]
    path, spec = _spec(new)
    _, before = _spec(old) if old is not None and _is_readable(old) else (path, {})
    found += _template_errors(spec.get("files") or [], before.get("files") or [], path, deadline)
    if metadata is not None:
        place = Path("spec", "template", "metadata")
        found += validate_labels(metadata.labels, place.child("labels"))
        found += validate_annotations(metadata.annotations, place.child("annotations"))
    return found


def _rule_errors(new: Manifest) -> tuple[list[FieldError], ObjectMeta | None]:
    """What the rules find in an object of either kind, and the metadata of a template's objects."""
    path = _path(new)
    if new.get("kind") != KUBEADM_CONFIG_TEMPLATE.kind:
        return validate_spec(decode(new, KubeadmConfig).spec, path), None
    template = decode(new, KubeadmConfigTemplate).spec.template
    return validate_spec(template.spec, path), template.metadata


def _is_readable(obj: Manifest) -> bool:
    try:
        decode(obj, KubeadmConfigTemplate if obj.get("kind") == KUBEADM_CONFIG_TEMPLATE.kind else KubeadmConfig)
    except msgspec.ValidationError:
        return False
    return True


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


def default(obj: Manifest) -> Manifest:
    """A KubeadmConfigTemplate with what Cluster API filled in before it stopped doing so.

    Only for the topology controller's dry runs: they compare with objects from that time, and a difference would start a rollout.
    """
    spec = dict(obj.get("spec") or {})
    template = dict(spec.get("template") or {})
    inner = dict(template.get("spec") or {})
    inner["format"] = inner.get("format") or "cloud-config"
    for section in ("initConfiguration", "joinConfiguration"):
        configuration = dict(inner.get(section) or {})
        registration = dict(configuration.get("nodeRegistration") or {})
        registration["imagePullPolicy"] = registration.get("imagePullPolicy") or "IfNotPresent"
        inner[section] = {**configuration, "nodeRegistration": registration}
    inner["joinConfiguration"] = _with_exec_version(inner["joinConfiguration"])
    return {**obj, "spec": {**spec, "template": {**template, "spec": inner}}}


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


# Requests.


def _verdict(request: AdmissionRequest) -> Verdict:
    if request.object is None:
        return Verdict()
    deadline = monotonic() + files.SECONDS
    found = validate(request.object, request.old, deadline)
    problems = [Problem(str(error.path), _REASONS[error.fault], str(error)) for error in found]
    if problems:
        return Verdict(problems)
    path, spec = _spec(request.object)
    return Verdict(warnings=template_warnings(spec.get("files") or [], path, deadline))


def _defaulted(request: AdmissionRequest) -> Manifest:
    obj = request.object or {}
    try:
        metadata = msgspec.convert(obj.get("metadata") or {}, ObjectMeta)
        decode(obj, KubeadmConfigTemplate)
    except msgspec.ValidationError as error:
        raise OperatorError(f"the object is not a valid {KUBEADM_CONFIG_TEMPLATE.kind}: {error}") from None
    return default(obj) if request.dry_run and TOPOLOGY_DRY_RUN in metadata.annotations else obj


def _spec(obj: Manifest) -> tuple[Path, Manifest]:
    """The KubeadmConfigSpec in an object of either kind, and where it is."""
    spec: Manifest = obj.get("spec") or {}
    if obj.get("kind") == KUBEADM_CONFIG_TEMPLATE.kind:
        spec = (spec.get("template") or {}).get("spec") or {}
    return _path(obj), spec


def _path(obj: Manifest) -> Path:
    return Path("spec", "template", "spec") if obj.get("kind") == KUBEADM_CONFIG_TEMPLATE.kind else Path("spec")


# Templates.


def _template_errors(
    new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]], path: Path, deadline: float | None
) -> list[FieldError]:
    known = {(file.get("path"), file.get("contentFormat"), file.get("content")) for file in old}
    found = []
    for position, file in enumerate(new):
        seen = (file.get("path"), file.get("contentFormat"), file.get("content")) in known
        if files.version_form(file) is None or not file.get("content") or seen:
            continue
        try:
            Template.parse(file.get("path") or "", file["content"], deadline=deadline)
        except TemplateError as error:
            line = _line(file["content"], error.line)
            found.append(invalid(path.child("files").index(position).child("content"), line, error.message))
    return found


def template_warnings(new: Sequence[Mapping[str, Any]], path: Path, deadline: float | None = None) -> list[str]:
    """What will not do what was meant, of templates that parse."""
    found = []
    for position, file in enumerate(new):
        form = files.version_form(file)
        if form is None or not file.get("content"):
            continue
        place = path.child("files").index(position)
        if file.get("encoding"):
            found.append(
                f"{place}: a template is rendered before its {file['encoding']} is decoded: actions in encoded text stay as they are"
            )
        try:
            template = Template.parse(file.get("path") or "", file["content"], deadline=deadline)
            template.execute(files.template_data(form, _SAMPLE), limit=files.LIMIT, refuse_no_value=True, deadline=deadline)
        except NoValueError as error:
            found.append(f"{place}.content: line {error.line}: no value for {error.expression}: {form.content_format} has {form.variable}")
        except TemplateError as error:
            found.append(f"{place}.content: {error.message}")
    return found


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return shortened(lines[number - 1]) if 0 < number <= len(lines) else ""


# The rules of Cluster API.


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
