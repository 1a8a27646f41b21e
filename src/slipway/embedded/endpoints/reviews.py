"""Questions that are asked by creating an object that is not stored: who am I, may I, may they, whose token is this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.access.authentication import MASTERS, User
from slipway.embedded.access.authorization import EVERYTHING, Attributes
from slipway.embedded.registry import types

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.call import Call
    from slipway.embedded.server import Core


def review(core: Core, call: Call, manifest: Manifest) -> Manifest:
    """The object with its answer in ``status``."""
    resource, user, namespace = call.resource, call.user, call.namespace
    if mismatch := types.mismatch_of(resource, manifest):
        raise errors.bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {mismatch}')
    spec = manifest.get("spec") or {}
    answer = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}, "spec": spec}
    match resource.kind:
        case "SelfSubjectReview":
            return {**{key: value for key, value in answer.items() if key != "spec"}, "status": {"userInfo": _described(user)}}
        case "TokenReview":
            found = core.authenticator.of_token(str(spec.get("token") or ""))
            if found is None:
                return {**answer, "status": {"user": {}, "error": "invalid bearer token"}}
            return {**answer, "status": {"authenticated": True, "user": _described(found)}}
        case "SelfSubjectAccessReview":
            return {**answer, "status": _verdict(core, user, spec, namespace)}
        case "SelfSubjectRulesReview":
            return {**answer, "status": _rules(core, user, str(spec.get("namespace") or ""))}
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            about = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
            return {**answer, "status": _verdict(core, about, spec, namespace)}
    raise errors.no_such_path()


def _verdict(core: Core, user: User, spec: Manifest, namespace: str) -> Manifest:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None:
        asked = Attributes(
            verb=str(resource.get("verb") or ""),
            path="",
            group=str(resource.get("group") or ""),
            version=str(resource.get("version") or ""),
            namespace=str(resource.get("namespace") or namespace),
            resource=str(resource.get("resource") or ""),
            subresource=str(resource.get("subresource") or ""),
            name=str(resource.get("name") or ""),
        )
    else:
        asked = Attributes(verb=str((path or {}).get("verb") or ""), path=str((path or {}).get("path") or ""))
    verdict = core.authorizer.decide(user, asked)
    return {"allowed": verdict.allowed, **({"reason": verdict.why} if verdict.why else {})}


def _rules(core: Core, user: User, namespace: str) -> Manifest:
    """What a user may do in a namespace."""
    held = EVERYTHING if MASTERS in user.groups else core.authorizer.rules(user, namespace)
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    resources = [{field: rule[field] for field in fields if field in rule} for rule in held if rule.get("resources")]
    paths = [{"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]} for rule in held if rule.get("nonResourceURLs")]
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}


def _described(user: User) -> Manifest:
    described: Manifest = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        described["uid"] = user.uid
    if user.extra:
        described["extra"] = dict(user.extra)
    return described
