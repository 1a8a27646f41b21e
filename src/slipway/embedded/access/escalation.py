"""Nobody gives away rights that they do not have: what Roles and bindings may say depends on who writes them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.access import authorization
from slipway.embedded.access.authentication import MASTERS
from slipway.embedded.endpoints.request import RequestInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.access.authorization import Authorizer
    from slipway.embedded.registry.resources import Resource


_EVERYTHING: list[Manifest] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_COLLECTED = frozenset({"ownerReferences", "finalizers", "selfLink", "managedFields"})
_ROLES, _BINDINGS = ("roles", "clusterroles"), ("rolebindings", "clusterrolebindings")


def check(authorizer: Authorizer, resource: Resource, user: User, new: Manifest, old: Manifest | None) -> None:
    """Refuse a Role with rules that its writer does not hold, and a binding to one; ``escalate`` and ``bind`` are the rights to do so."""
    if resource.group != authorization.GROUP or MASTERS in user.groups or (old is not None and _is_for_the_collector(new, old)):
        return
    given = new["metadata"]
    namespace, name = given.get("namespace") or "", given.get("name") or ""
    if resource.plural in _ROLES:
        rules = new.get("rules") or []
        asked = RequestInfo("escalate", "", resource.group, "*", namespace, resource.plural, "", name)
    elif resource.plural in _BINDINGS:
        role = new.get("roleRef") or {}
        plural = "roles" if role.get("kind") == "Role" else "clusterroles"
        asked = RequestInfo("bind", "", resource.group, "*", namespace, plural, "", str(role.get("name") or ""))
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
        listed = "\n".join(sorted(_described(rule) for rule in missing))
        why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{listed}'
        raise errors.forbidden(resource.group, resource.plural, name, why)
    # A role that gathers the rules of others may come to hold anything.
    if _gathers(new) or _gathers(old):
        missing = [rule for rule in _EVERYTHING if not _covered(rule, held, namespaced=bool(namespace))]
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
    return all(any(authorization.allows(own, part, namespaced=namespaced) for own in held) for part in _parts(rule))


def _parts(rule: Manifest) -> Iterator[RequestInfo]:
    """Everything that a rule allows, one by one; a star is asked for as such."""
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or ("",)
    for verb, group, resource, name in product(verbs, rule.get("apiGroups") or (), rule.get("resources") or (), names):
        whole, _, part = resource.partition("/")
        yield RequestInfo(verb, "", group, "*", "", whole, part, name)
    for verb, url in product(verbs, rule.get("nonResourceURLs") or ()):
        yield RequestInfo(verb, url)


def _described(rule: Manifest) -> str:
    shown = {"APIGroups": "apiGroups", "Resources": "resources", "ResourceNames": "resourceNames", "NonResourceURLs": "nonResourceURLs"}
    parts = [f"{name}:{_go(rule[field])}" for name, field in shown.items() if rule.get(field)]
    return "{" + ", ".join([*parts, f"Verbs:{_go(rule.get('verbs') or [])}"]) + "}"


def _go(values: list[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
