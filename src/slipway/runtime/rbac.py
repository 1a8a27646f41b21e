"""RBAC from what reconcilers say they need, merged into roles that give just that."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from slipway.api import rbac as api
from slipway.api.rbac import service_account

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest

# The order in which people write verbs.
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READ = ("get", "list", "watch")

__all__ = ["READ", "Rule", "aggregated_role", "allows", "binding", "cluster_role", "merged", "role", "rule", "service_account", "user"]


class Rule(NamedTuple):
    """Verbs on resources of API groups; with ``names`` on the objects of these names alone."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


def rule(kind: Kind, *verbs: str, subresource: str = "", names: Sequence[str] = ()) -> Rule:
    """Verbs on a kind, or on a sub-resource such as ``status``."""
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return Rule((kind.group,), (resource,), verbs, tuple(names))


def merged(rules: Iterable[Rule]) -> list[Rule]:
    """The same permissions in as few rules as it takes: one per group and set of verbs, nothing said twice."""
    verbs: defaultdict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for given in rules:
        for group in given.groups:
            for resource in given.resources:
                verbs[group, resource, tuple(sorted(given.names))].update(given.verbs)
    resources: defaultdict[tuple[str, tuple[str, ...], tuple[str, ...]], set[str]] = defaultdict(set)
    for (group, resource, names), allowed in verbs.items():
        # What is allowed for all objects need not be said for some.
        rest = allowed - verbs.get((group, resource, ()), set()) if names else allowed
        if rest:
            resources[group, _ordered(rest), names].add(resource)
    found = [Rule((group,), tuple(sorted(named)), allowed, names) for (group, allowed, names), named in resources.items()]
    return sorted(found, key=lambda rule: (rule.groups, rule.resources, rule.names))


def allows(rules: Iterable[Rule], verb: str, group: str, resource: str, name: str = "") -> bool:
    """Whether the rules give a permission, as the API server's authorizer sees it (without wildcards, which nobody declares)."""
    return any(
        group in rule.groups and resource in rule.resources and verb in rule.verbs and (not rule.names or name in rule.names)
        for rule in rules
    )


def cluster_role(name: str, rules: Iterable[Rule], *, labels: dict[str, str] | None = None) -> Manifest:
    return api.role(name, map(_policy, merged(rules)), labels=labels)


def aggregated_role(name: str, labels: dict[str, str]) -> Manifest:
    """A ClusterRole that gives what all ClusterRoles with these labels give; its rules are for the API server to fill in."""
    made = api.role(name, ())
    del made["rules"]
    return {**made, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels}]}}


def role(name: str, namespace: str, rules: Iterable[Rule], *, labels: dict[str, str] | None = None) -> Manifest:
    return api.role(name, map(_policy, merged(rules)), namespace=namespace, labels=labels)


def binding(role: Manifest, subject: Manifest) -> Manifest:
    """Gives a role to a subject: a ServiceAccount, a User or a Group, as :func:`service_account` and :func:`user` make them."""
    metadata = role["metadata"]
    namespace, labels = metadata.get("namespace", ""), metadata.get("labels")
    return api.binding(metadata["name"], metadata["name"], [subject], namespace=namespace, labels=labels)


def user(name: str) -> Manifest:
    return {"apiGroup": api.GROUP, "kind": "User", "name": name}


def _policy(rule: Rule) -> Manifest:
    policy: Manifest = {"apiGroups": list(rule.groups), "resources": list(rule.resources), "verbs": list(rule.verbs)}
    return {**policy, "resourceNames": list(rule.names)} if rule.names else policy


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=lambda verb: (_VERBS.index(verb) if verb in _VERBS else len(_VERBS), verb)))
