"""Label and field selectors: read as apimachinery reads them, and matched; what field selectors can ask for, kind by kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery import labels
from slipway.embedded import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.storage.store import Stored

_TERM = re.compile(r"((?:[^,\\]|\\.|\\\Z)*)(?:,|\Z)", re.DOTALL)
_OPERATOR = re.compile(r"!=|==|=")
_SPECIAL = re.compile(r"\\(.?)|([,=])", re.DOTALL)
_TOKEN = re.compile(r"\s*(==|!=|=|!|<|>|\(|\)|,|[^\s=!<>(),]+)")

_COMMON = ("metadata.name", "metadata.namespace")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[str, tuple[str, ...]] = {
    "events": (*(f"involvedObject.{field}" for field in _REFERENCE), "reason", "reportingComponent", "source", "type"),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "replicasets.apps": ("status.replicas",),
    "replicationcontrollers": ("status.replicas",),
    "secrets": ("type",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "services": ("spec.clusterIP", "spec.type"),
}
_FALSE = frozenset({"spec.unschedulable", "spec.hostNetwork"})
_EVENT_ALIASES = {"reportingController": "reportingComponent", "regarding.": "involvedObject."}


class Requirement(NamedTuple):
    """One condition of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, found: Mapping[str, str]) -> bool:
        value = found.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
        (bound,) = self.values
        if value is None or not re.fullmatch(r"[+-]?[0-9]+", value):
            return False
        return int(value) > int(bound) if self.operator == ">" else int(value) < int(bound)


class FieldRequirement(NamedTuple):
    """One condition of a field selector."""

    field: str
    value: str
    equal: bool


class Selection(NamedTuple):
    """Which objects of a bucket a request is about; ``known`` are the fields of its objects that selectors can ask for."""

    namespace: str = ""
    labels: list[Requirement] = []  # noqa: RUF012 - a tuple's default, never changed
    fields: list[FieldRequirement] = []  # noqa: RUF012
    known: tuple[str, ...] = ()

    def holds(self, stored: Stored) -> bool:
        if self.namespace and stored.namespace != self.namespace:
            return False
        if self.labels and not match_labels(self.labels, stored.labels):
            return False
        return all((self._value(requirement.field, stored) == requirement.value) is requirement.equal for requirement in self.fields)

    def _value(self, field: str, stored: Stored) -> str:
        if field == "metadata.name":
            return stored.name
        if field == "metadata.namespace":
            return stored.namespace
        if stored.fields is None:
            manifest = stored.manifest()
            stored.fields = {name: _text(name, _value(manifest, name)) for name in self.known}
        return stored.fields.get(field, "")


def select(namespace: str, labels: str, fields: str, *, bucket: str, group: str = "", custom: tuple[str, ...] | None = None) -> Selection:
    """The selection of a request; ``custom`` are the fields that a CustomResourceDefinition names, None for a built-in resource."""
    known = _FIELDS.get(bucket, ()) if custom is None else custom
    found = []
    for requirement in parse_fields(fields) if fields else ():
        field = requirement.field
        if group == "events.k8s.io":
            field = _EVENT_ALIASES.get(field, field.replace("regarding.", "involvedObject."))
        if field not in _COMMON and field not in known:
            raise errors.bad_request(_unknown(requirement.field, has_fields=bool(custom is not None or known)))
        found.append(requirement._replace(field=field))
    return Selection(namespace, parse_labels(labels), found, known)


def _unknown(field: str, *, has_fields: bool) -> str:
    if has_fields:
        return f"field label not supported: {field}"
    listed = ", ".join(f'"{name}"' for name in _COMMON)
    return f'"{field}" is not a known field selector: only {listed}'


def parse_labels(text: str) -> list[Requirement]:
    """The requirements of a label selector; all must hold."""
    try:
        return _Parser(text).requirements()
    except ValueError as error:
        raise errors.bad_request(f"unable to parse requirement: {error}") from None


def match_labels(requirements: list[Requirement], found: Mapping[str, str]) -> bool:
    return all(requirement.matches(found) for requirement in requirements)


def from_label_selector(selector: Mapping[str, object] | None) -> list[Requirement]:
    """The requirements of a metav1.LabelSelector."""
    found: list[Requirement] = []
    equal = (selector or {}).get("matchLabels")
    found += [Requirement(str(key), "in", frozenset({str(value)})) for key, value in (equal if isinstance(equal, dict) else {}).items()]
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
    expressions = (selector or {}).get("matchExpressions")
    for expression in expressions if isinstance(expressions, list) else ():
        values = frozenset(str(value) for value in expression.get("values") or ())
        found.append(Requirement(str(expression.get("key")), operators.get(str(expression.get("operator")), "in"), values))
    return found


def parse_fields(text: str) -> list[FieldRequirement]:
    """The requirements of a field selector: ``a=b``, ``a==b`` or ``a!=b``, with commas, equal signs and backslashes of values escaped."""
    found: list[FieldRequirement] = []
    for term in sorted(_TERM.findall(text)):
        if not term:
            continue
        split = _OPERATOR.search(term)
        if split is None:
            raise errors.bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        found.append(FieldRequirement(term[: split.start()], _unescaped(term[split.end() :]), split[0] != "!="))
    return found


def exact(requirements: Iterable[FieldRequirement], field: str) -> str | None:
    """The one value that a field can have."""
    return next((requirement.value for requirement in requirements if requirement.field == field and requirement.equal), None)


def _unescaped(value: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped, sign = match.groups()
        if sign:
            raise errors.bad_request(f"invalid field selector: unescaped character in value: {ord(sign)}")
        if escaped not in ("\\", ",", "="):
            raise errors.bad_request(f"invalid field selector: invalid escape sequence: \\{escaped}")
        return str(escaped)

    return _SPECIAL.sub(plain, value)


class _Parser:
    """Recursive descent over the tokens of a label selector."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position, text = 0, text.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                break
            self._tokens.append(match.group(1))
            position = match.end()
        self._position = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while (token := self._peek()) is not None:
            if token == ",":
                raise ValueError("found ',', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            follower = self._next()
            if follower is None:
                break
            if follower != ",":
                raise ValueError(f"found '{follower}', expected: ',' or 'end of string'")
            if self._peek() is None:
                raise ValueError("found '', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        negated = self._peek() == "!"
        if negated:
            self._next()
        name = _checked_key(self._word())
        if negated:
            return Requirement(name, "absent")
        operator = self._peek()
        if operator in (None, ","):
            return Requirement(name, "exists")
        self._next()
        if operator in ("=", "==", "!="):
            value = self._word() if self._peek() not in (None, ",") else ""
            return Requirement(name, "notin" if operator == "!=" else "in", frozenset({_checked_value(name, value)}))
        if operator in ("in", "notin"):
            return Requirement(name, operator, self._values(name))
        if operator in (">", "<"):
            bound = self._word()
            if not re.fullmatch(r"[+-]?[0-9]+", bound):
                raise ValueError(f"values[0][{name}]: Invalid value: \"{bound}\": for 'Gt', 'Lt' operators, the value must be an integer")
            return Requirement(name, operator, frozenset({bound}))
        raise ValueError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _values(self, name: str) -> frozenset[str]:
        if (opening := self._next()) != "(":
            raise ValueError(f"found '{opening or ''}', expected: '('")
        values: list[str] = []
        while True:
            token = self._next()
            if token is None:
                raise ValueError("found '', expected: ',', ')' or identifier")
            if token == ")":
                return frozenset(_checked_value(name, value) for value in values or [""])
            if token != ",":
                values.append(token)

    def _word(self) -> str:
        token = self._next()
        if token is None or not re.match(r"[^=!<>(),]", token):
            raise ValueError(f"found '{token or ''}', expected: identifier")
        return token

    def _peek(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _next(self) -> str | None:
        token = self._peek()
        self._position += 1
        return token


def _checked_key(name: str) -> str:
    for problem in labels.key_problems(name):
        raise ValueError(f'<nil>: Invalid value: "{name}": {problem}')
    return name


def _checked_value(name: str, value: str) -> str:
    for problem in labels.value_problems(value):
        raise ValueError(f'values[0][{name}]: Invalid value: "{value}": {problem}')
    return value


def _value(manifest: Manifest, path: str) -> Any:
    value: Any = manifest
    if path == "source":
        return (manifest.get("source") or {}).get("component") or manifest.get("reportingComponent")
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if name in _FALSE else ""
    return str(value)
