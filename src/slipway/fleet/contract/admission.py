"""What the admission webhooks of several rooms share: rules for machines wherever they are described, with Cluster API's texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.meta import decode
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.fieldpath import Fault, FieldError, Path, aggregate, invalid, quoted
from slipway.api.machinery.labels import key_problems, subdomain_problems, validate_annotations, validate_labels, value_problems
from slipway.api.machinery.version import Version
from slipway.fleet.contract import naming
from slipway.runtime.webhook.admission import Problem, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from slipway.api.cluster.core.machine import MachineTaint
    from slipway.api.cluster.meta import LabelSelector, ObjectMeta, Type
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.webhook.admission import AdmissionRequest

T = TypeVar("T", bound="Type")

_REASONS = {
    Fault.REQUIRED: "FieldValueRequired",
    Fault.INVALID: "FieldValueInvalid",
    Fault.FORBIDDEN: "FieldValueForbidden",
    Fault.TOO_LONG: "FieldValueTooLong",
    Fault.DUPLICATE: "FieldValueDuplicate",
    Fault.NOT_SUPPORTED: "FieldValueNotSupported",
}
_PERCENT = re.compile(r"[+-]?[0-9]+%")
_RANDOM = "{{ .random }}"
_CONTROL_PLANE_TAINT = "node-role.kubernetes.io/control-plane"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def problems(errors: Iterable[FieldError]) -> list[Problem]:
    """What a webhook answers for what is wrong."""
    return [Problem(str(error.path), _REASONS[error.fault], str(error)) for error in errors]


class _Metadata(msgspec.Struct, rename="camel"):
    """What the API server holds to its own types before it asks; whoever else asks may send anything."""

    name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: list[dict[str, Any]] = msgspec.field(default_factory=list)


def read(content: Manifest, into: type[T]) -> T | FieldError:
    """The object as its type, or what is wrong where it is something else."""
    try:
        msgspec.convert(content.get("metadata") or {}, _Metadata)
        return decode(content, into)
    except msgspec.ValidationError as error:
        return invalid(Path("spec"), "", str(error))


def readable(content: Manifest, into: type[T]) -> T:
    """The object as its type, for a webhook that fills in what is missing."""
    found = read(content, into)
    if isinstance(found, FieldError):
        raise OperatorError(f"the object is not a valid {into.__name__}: {found.detail}")
    return found


def stored(content: Manifest | None, into: type[T]) -> T | None:
    """What is replaced, as its type; what cannot be read is not held against what replaces it."""
    found = None if content is None else read(content, into)
    return None if isinstance(found, FieldError) else found


def judged(into: type[T], errors: Callable[[T, T | None], list[FieldError]]) -> Callable[[AdmissionRequest], Verdict]:
    """A webhook that finds what is wrong with an object by its new state and its old one."""

    def judge(request: AdmissionRequest) -> Verdict:
        if request.object is None:
            return Verdict()
        new = read(request.object, into)
        if isinstance(new, FieldError):
            return Verdict(problems([new]))
        return Verdict(problems(errors(new, stored(request.old, into))))

    return judge


def with_prefix(version: str) -> str:
    """A version as it is written everywhere else."""
    return version if not version or version.startswith("v") else f"v{version}"


def version_errors(version: str, path: Path) -> list[FieldError]:
    found = [] if version.startswith("v") else [invalid(path, version, "must start with v")]
    try:
        # Go's parser takes no white space.
        if version != version.strip():
            raise ValueError
        Version.parse(version.removeprefix("v"))
    except ValueError:
        found.append(invalid(path, version, "must be a valid semantic version"))
    return found


def without_prerelease(version: Version) -> Version:
    """What counts where versions are compared for an upgrade."""
    return Version(version.major, version.minor, version.patch)


def metadata_errors(metadata: ObjectMeta, path: Path) -> list[FieldError]:
    """What is wrong with the labels and annotations that a template gives."""
    return [
        *validate_labels(metadata.labels, path.child("labels")),
        *validate_annotations(metadata.annotations, path.child("annotations")),
    ]


def taint_errors(taints: Sequence[MachineTaint], path: Path) -> list[FieldError]:
    """Taints that are others', and keys that are none.  Upstream's gate for taints is always open here."""
    found: list[FieldError] = []
    for position, taint in enumerate(taints):
        place = path.index(position).child("key")
        problem = _taint_problem(taint.key)
        found += [invalid(place, taint.key, problem)] if problem else []
        found += [invalid(place, taint.key, each) for each in key_problems(taint.key)]
    return found


def _taint_problem(key: str) -> str:
    if key in (names.UNINITIALIZED_TAINT, names.OUTDATED_REVISION_TAINT):
        return "taint key is not allowed"
    if key.startswith("node.kubernetes.io/") and key != _OUT_OF_SERVICE:
        return f"taint key must not have the prefix node.kubernetes.io/, except for {_OUT_OF_SERVICE}"
    if key.startswith("node.cloudprovider.kubernetes.io/"):
        return "taint key must not have the prefix node.cloudprovider.kubernetes.io/"
    if key == "node-role.kubernetes.io/master":
        return "taint is deprecated since 1.24 and should not be used anymore"
    return ""


def worker_taint_errors(taints: Sequence[MachineTaint], path: Path) -> list[FieldError]:
    return [
        invalid(path.index(position).child("key"), taint.key, "taint is not allowed for worker Machines")
        for position, taint in enumerate(taints)
        if taint.key == _CONTROL_PLANE_TAINT
    ]


def naming_errors(template: str, values: Mapping[str, Any], path: Path) -> list[FieldError]:
    """A template for names of Machines, tried with values that an object could have."""
    if not template:
        return []
    found = [] if _RANDOM in template else [invalid(path, template, f"invalid template, {_RANDOM} is missing")]
    try:
        name = naming.rendered(template, {"cluster": {"name": "cluster"}, **values})
    except OperatorError as error:
        return [*found, invalid(path, template, f"invalid template: {error.message}")]
    unnamable = "invalid template, generated names would not be valid Kubernetes object names"
    return [*found, *(invalid(path, template, f"{unnamable}: {problem}") for problem in subdomain_problems(name))]


def share_errors(value: int | str | None, path: Path) -> list[FieldError]:
    """A number or a percentage."""
    if not isinstance(value, str) or _PERCENT.fullmatch(value):
        return []
    reason = "invalid type: string is not a percentage"
    if value.endswith("%"):
        number = value.removesuffix("%")
        reason = f"invalid value {quoted(value)}: strconv.Atoi: parsing {quoted(number)}: invalid syntax"
    return [invalid(path, value, f"must be either an int or a percentage: invalid value for IntOrString: {reason}")]


def selector_problem(selector: LabelSelector) -> str:
    """Why the selector means nothing, as apimachinery says it; empty where it means something."""
    for key, value in selector.match_labels.items():
        found = [*_key_errors(key), *_value_errors(key, [value])]
        if found:
            return aggregate(found)
    for one in selector.match_expressions:
        if one.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f"{quoted(one.operator)} is not a valid label selector operator"
        found = _key_errors(one.key)
        if one.operator in ("In", "NotIn") and not one.values:
            found.append(invalid(Path("values"), None, "for 'in', 'notin' operators, values set can't be empty"))
        if one.operator in ("Exists", "DoesNotExist") and one.values:
            found.append(invalid(Path("values"), one.values, "values set must be empty for exists and does not exist"))
        found += _value_errors(one.key, one.values)
        if found:
            return aggregate(found)
    return ""


def _key_errors(key: str) -> list[FieldError]:
    found = key_problems(key)
    return [invalid(Path("key"), key, "; ".join(found))] if found else []


def _value_errors(key: str, values: Sequence[str]) -> list[FieldError]:
    wrong = [(position, value, value_problems(value)) for position, value in enumerate(values)]
    return [invalid(Path("values").index(position).key(key), value, "; ".join(found)) for position, value, found in wrong if found]
