"""Who may do what: RBAC, evaluated on the Roles and bindings that are in the store.

The group ``system:masters`` may do everything.  Decoded rules are kept until the objects change.
Nobody gives away rights that they do not have, and roles that are made of others follow them.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.embedded import errors
from slipway.embedded.access.authentication import MASTERS
from slipway.embedded.storage import selectors
from slipway.embedded.storage.store import DELETED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.store import Change, Store, Stored

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
BINDINGS, CLUSTER_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"


# What anybody may read: the server answers it even to who has no rights at all.
PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/version/")
DISCOVERY_PATHS = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/")


EVERYTHING: list[Manifest] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_MOST_PARTS = 10_000
_COLLECTED = frozenset({"ownerReferences", "finalizers", "selfLink", "managedFields"})
_ROLES, _BINDINGS = ("roles", "clusterroles"), ("rolebindings", "clusterrolebindings")


class Attributes(NamedTuple):
    """What somebody wants to do.

    ``resource`` is empty where the path is not that of a resource; then only ``verb`` and ``path`` are said.
    """

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class Verdict(NamedTuple):
    """``why`` names the binding that allows, or what went wrong with one."""

    allowed: bool
    why: str = ""


class _Binding(NamedTuple):
    name: str
    namespace: str
    subjects: list[Manifest]
    role: Manifest

    @property
    def place(self) -> tuple[str, str]:
        """Those of the whole cluster come first."""
        return self.namespace, self.name

    def subject_keys(self) -> set[tuple[str, str]]:
        return {key for subject in self.subjects if (key := _subject_key(subject, self.namespace)) is not None}


class Authorizer:
    """Decides by the rules of Roles and ClusterRoles that bindings give to the user and the user's groups."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By subject: a fleet has a binding a host, and a request asks for those of one user.
        self._bindings: dict[tuple[str, str], dict[tuple[str, str], _Binding]] = {}
        for bucket in (CLUSTER_BINDINGS, BINDINGS):
            for stored in store.bucket(bucket).within(""):
                self._add(_binding(stored))
        self._rules: dict[tuple[str, str, str], list[Manifest] | None] = {}
        store.listen(self._forget, ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS)

    def decide(self, user: User, request: Attributes) -> Verdict:
        if MASTERS in user.groups:
            return Verdict(True)
        missing: list[str] = []
        for binding in self._bound(user, request.namespace):
            rules = self._rules_of(binding)
            if rules is None:
                missing.append(_missing(binding))
                continue
            if any(allows(rule, request, namespaced=bool(binding.namespace)) for rule in rules):
                return Verdict(True, _because(binding, user))
        return Verdict(False, f"RBAC: {_one_or_list(missing)}" if missing else "")

    def check(self, user: User, request: Attributes) -> None:
        verdict = self.decide(user, request)
        if not verdict.allowed:
            why = f"{_escaped(_denial(user, request))}{f': {verdict.why}' if verdict.why else ''}"
            raise errors.forbidden(request.group, request.resource, request.name, why)

    def rules(self, user: User, namespace: str) -> list[Manifest]:
        """All rules that hold for a user in a namespace and in the whole cluster."""
        found: list[Manifest] = []
        for binding in self._bound(user, namespace):
            found += self._rules_of(binding) or []
        return found

    def role_rules(self, kind: str, namespace: str, name: str) -> list[Manifest] | None:
        """The rules of a Role or a ClusterRole; None where there is none."""
        return self._rules_of(_Binding("", namespace, [], {"kind": kind, "name": name}))

    def _forget(self, resource: str, change: Change) -> None:
        if resource not in (BINDINGS, CLUSTER_BINDINGS):
            self._rules.clear()
            return
        if change.previous is not None:
            previous = _binding(change.previous)
            for key in previous.subject_keys():
                self._bindings[key].pop(previous.place, None)
                if not self._bindings[key]:
                    del self._bindings[key]
        if change.type != DELETED:
            self._add(_binding(change.current))

    def _add(self, binding: _Binding) -> None:
        for key in binding.subject_keys():
            self._bindings.setdefault(key, {})[binding.place] = binding

    def _bound(self, user: User, namespace: str) -> Iterator[_Binding]:
        keys = [("User", user.name), *(("Group", group) for group in user.groups)]
        found = {place: binding for key in keys for place, binding in self._bindings.get(key, {}).items()}
        for _, binding in sorted(found.items()):
            if binding.namespace in ("", namespace):
                yield binding

    def _rules_of(self, binding: _Binding) -> list[Manifest] | None:
        kind, name = str(binding.role.get("kind")), str(binding.role.get("name"))
        namespace = binding.namespace if kind == "Role" else ""
        wanted = (kind, namespace, name)
        if wanted not in self._rules:
            stored = self._store.get(ROLES if kind == "Role" else CLUSTER_ROLES, namespace, name)
            self._rules[wanted] = None if stored is None else stored.manifest().get("rules") or []
        return self._rules[wanted]


def allows(rule: Manifest, request: Attributes, *, namespaced: bool) -> bool:
    """Whether one rule allows a request; the rules of a RoleBinding say nothing of paths that are not resources."""
    verbs = rule.get("verbs") or ()
    if request.verb not in verbs and "*" not in verbs:
        return False
    if not request.resource:
        return not namespaced and any(_covers(path, request.path) for path in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if request.group not in groups and "*" not in groups:
        return False
    if not _names(rule.get("resources") or (), request):
        return False
    names = rule.get("resourceNames") or ()
    return not names or request.name in names


def _names(resources: Iterable[str], request: Attributes) -> bool:
    wanted = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    for resource in resources:
        if resource in ("*", wanted):
            return True
        if request.subresource and resource == f"*/{request.subresource}":
            return True
    return False


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _binding(stored: Stored) -> _Binding:
    manifest = stored.manifest()
    return _Binding(stored.name, stored.namespace, manifest.get("subjects") or [], manifest.get("roleRef") or {})


def _subject_key(subject: Manifest, namespace: str) -> tuple[str, str] | None:
    """The user or the group that a subject of a binding means."""
    kind, name = subject.get("kind"), str(subject.get("name"))
    if kind == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
    return (kind, name) if kind in ("User", "Group") else None


def _applies(subject: Manifest, user: User, namespace: str) -> bool:
    key = _subject_key(subject, namespace)
    return key is not None and (key == ("User", user.name) or (key[0] == "Group" and key[1] in user.groups))


def _denial(user: User, request: Attributes) -> str:
    if not request.resource:
        return f'User "{user.name}" cannot {request.verb} path "{request.path}"'
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    return f'User "{user.name}" cannot {request.verb} resource "{resource}" in API group "{request.group}" {where}'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _because(binding: _Binding, user: User) -> str:
    kind, name = ("RoleBinding", f"{binding.name}/{binding.namespace}") if binding.namespace else ("ClusterRoleBinding", binding.name)
    subject = next(subject for subject in binding.subjects if _applies(subject, user, binding.namespace))
    whom = f'{subject.get("kind")} "{subject.get("name")}{"/" + subject["namespace"] if subject.get("namespace") else ""}"'
    return f'RBAC: allowed by {kind} "{name}" of {binding.role.get("kind")} "{binding.role.get("name")}" to {whom}'


def _missing(binding: _Binding) -> str:
    kind = str(binding.role.get("kind"))
    resource = "role" if kind == "Role" else "clusterrole"
    return f'{resource}.{GROUP} "{binding.role.get("name")}" not found'


def _one_or_list(texts: list[str]) -> str:
    texts = list(dict.fromkeys(texts))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def check_escalation(authorizer: Authorizer, resource: Resource, user: User, new: Manifest, old: Manifest | None) -> None:
    """Refuse a Role with rules that its writer does not hold, and a binding to one; ``escalate`` and ``bind`` are the rights to do so."""
    if resource.group != GROUP or MASTERS in user.groups or (old is not None and _is_for_the_collector(new, old)):
        return
    given = new["metadata"]
    namespace, name = given.get("namespace") or "", given.get("name") or ""
    if resource.plural in _ROLES:
        rules = new.get("rules") or []
        asked = Attributes("escalate", "", resource.group, "*", namespace, resource.plural, "", name)
    elif resource.plural in _BINDINGS:
        role = new.get("roleRef") or {}
        plural = "roles" if role.get("kind") == "Role" else "clusterroles"
        asked = Attributes("bind", "", resource.group, "*", namespace, plural, "", str(role.get("name") or ""))
        rules = authorizer.role_rules(str(role.get("kind")), namespace, str(role.get("name") or ""))
        if rules is None and not authorizer.decide(user, asked).allowed:
            raise errors.not_found(resource.group, plural, asked.name)
    else:
        return
    if authorizer.decide(user, asked).allowed:
        return
    held = authorizer.rules(user, namespace)
    missing = [rule for rule in rules or () if not _covered(rule, held, namespaced=bool(namespace))]
    if missing:
        groups = " ".join(f'"{group}"' for group in user.groups)
        listed = "\n".join(sorted(_shown(rule) for rule in missing))
        why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{listed}'
        raise errors.forbidden(resource.group, resource.plural, name, why)
    # A role that gathers the rules of others may come to hold anything.
    if _gathers(new) or _gathers(old):
        missing = [rule for rule in EVERYTHING if not _covered(rule, held, namespaced=bool(namespace))]
        if missing:
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise errors.forbidden(resource.group, resource.plural, name, why)


def _gathers(role: Manifest | None) -> bool:
    return bool(((role or {}).get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_for_the_collector(new: Manifest, old: Manifest) -> bool:
    """Whether nothing changes but what the garbage collector needs to change, who has no rights to give away."""

    def rest(manifest: Manifest) -> Manifest:
        given = {field: value for field, value in manifest["metadata"].items() if field not in _COLLECTED}
        return {**manifest, "metadata": given}

    return rest(new) == rest(old)


def _covered(rule: Manifest, held: list[Manifest], *, namespaced: bool) -> bool:
    """Whether others allow all that a rule allows; one that says too much to be taken apart is not."""
    sizes = (len(rule.get(field) or ()) or 1 for field in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"))
    if prod(sizes) > _MOST_PARTS:
        return False
    return all(any(allows(own, part, namespaced=namespaced) for own in held) for part in _parts(rule))


def _parts(rule: Manifest) -> Iterator[Attributes]:
    """Everything that a rule allows, one by one; a star is asked for as such."""
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or ("",)
    for verb, group, resource, name in product(verbs, rule.get("apiGroups") or (), rule.get("resources") or (), names):
        whole, _, part = resource.partition("/")
        yield Attributes(verb, "", group, "*", "", whole, part, name)
    for verb, url in product(verbs, rule.get("nonResourceURLs") or ()):
        yield Attributes(verb, url)


def _shown(rule: Manifest) -> str:
    shown = {"APIGroups": "apiGroups", "Resources": "resources", "ResourceNames": "resourceNames", "NonResourceURLs": "nonResourceURLs"}
    parts = [f"{name}:{_go(rule[field])}" for name, field in shown.items() if rule.get(field)]
    return "{" + ", ".join([*parts, f"Verbs:{_go(rule.get('verbs') or [])}"]) + "}"


def _go(values: list[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def aggregate(store: Store) -> None:
    """Give every aggregated role the rules that it should have."""
    roles = [(stored, stored.manifest()) for stored in store.bucket(CLUSTER_ROLES).within("")]
    for stored, manifest in roles:
        chosen = (manifest.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not chosen:
            continue
        gathered: dict[bytes, Manifest] = {}
        for selector in chosen:
            wanted = selectors.from_label_selector(selector)
            for other, content in roles:
                if other.name != stored.name and selectors.match_labels(wanted, other.labels):
                    for rule in content.get("rules") or ():
                        gathered.setdefault(msgspec.json.encode(rule, order="sorted"), rule)
        rules = list(gathered.values())
        if rules != (manifest.get("rules") or []):
            store.put(CLUSTER_ROLES, {**manifest, "rules": rules}, stored.version)
