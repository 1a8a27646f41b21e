"""What the API server asks before it stores a KubeadmConfig or a KubeadmConfigTemplate: the rules that no schema can express.

The rules and their texts are those of Cluster API 1.14, whose gate for Ignition is always open here.  Beyond them, a file that is a
template must parse; what it would print without a value is warned of.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.bootstrap.config import KubeadmConfig, KubeadmConfigTemplate
from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE
from slipway.api.cluster.meta import ObjectMeta, decode
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.fieldpath import FieldError, Path, invalid
from slipway.api.machinery.gotemplate import Template, TemplateError
from slipway.api.machinery.gotemplate.errors import NoValueError, shortened
from slipway.fleet.bootstrap.data import files
from slipway.fleet.contract.admission import metadata_errors, problems
from slipway.fleet.kubeadm.validation import validate_spec, with_former_defaults
from slipway.runtime.webhook.admission import Defaulter, Validator, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.webhook.admission import AdmissionRequest

TOPOLOGY_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"

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
        found += metadata_errors(metadata, Path("spec", "template", "metadata"))
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


def default(obj: Manifest) -> Manifest:
    """A KubeadmConfigTemplate with what Cluster API filled in before it stopped doing so.

    Only for the topology controller's dry runs: they compare with objects from that time, and a difference would start a rollout.
    """
    spec = dict(obj.get("spec") or {})
    template = dict(spec.get("template") or {})
    return {**obj, "spec": {**spec, "template": {**template, "spec": with_former_defaults(template.get("spec") or {})}}}


# Requests.


def _verdict(request: AdmissionRequest) -> Verdict:
    if request.object is None:
        return Verdict()
    deadline = monotonic() + files.SECONDS
    found = validate(request.object, request.old, deadline)
    if found:
        return Verdict(problems(found))
    path, spec = _spec(request.object)
    warnings = template_warnings(spec.get("files") or [], path, deadline)
    return Verdict(warnings=[*edit_warnings(request.object, request.old), *warnings])


def edit_warnings(new: Manifest, old: Manifest | None) -> list[str]:
    """What who edits a KubeadmConfigTemplate should know: nothing that is there changes by it, neither here nor upstream."""
    if old is None or new.get("kind") != KUBEADM_CONFIG_TEMPLATE.kind or new.get("spec") == old.get("spec"):
        return []
    name = (new.get("metadata") or {}).get("name", "")
    return [
        f"machines that were made from {name} stay as they are, and only those made from now on have this: to replace them, make one of "
        "another name and refer to it in the MachineDeployment's spec.template.spec.bootstrap.configRef"
    ]


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
