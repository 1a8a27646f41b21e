"""Admission webhooks: who wants to see a write, in which version, what they make of it, and whether they let it pass.

A webhook whose rules name another version of the same resource is asked in that version, unless its matchPolicy is Exact: the object is
converted for it, and what it makes of it is converted back.  Its conditions, if it has some, are asked before it is.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import msgspec

from slipway.api.machinery.patches import jsonpatch
from slipway.embedded import errors
from slipway.embedded.fieldmanager import patches
from slipway.embedded.registry.resources import SUBRESOURCES
from slipway.embedded.storage import selectors
from slipway.embedded.webhooks.client import WebhookCallError
from slipway.embedded.webhooks.conditions import Conditions, ConditionsError, Rights

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.access.authorization import Authorizer
    from slipway.embedded.call import Call
    from slipway.embedded.registry.resources import Catalog, Resource
    from slipway.embedded.storage.store import Change, Store
    from slipway.embedded.webhooks.client import WebhookCaller
    from slipway.embedded.webhooks.conversion import Converter


GROUP = "admissionregistration.k8s.io"
_MUTATING, _VALIDATING = f"mutatingwebhookconfigurations.{GROUP}", f"validatingwebhookconfigurations.{GROUP}"
_TIMEOUT = 10


class _Webhook(NamedTuple):
    written: Manifest
    conditions: Conditions

    @property
    def name(self) -> str:
        return str(self.written["name"])

    @property
    def may_fail(self) -> bool:
        return bool(self.written.get("failurePolicy", "Fail") == "Ignore")


class Admission:
    """Asks the webhooks of the configurations in the store, in the order of their names.  The server's own writes are not asked about."""

    def __init__(self, store: Store, caller: WebhookCaller, converter: Converter, catalog: Catalog, authorizer: Authorizer) -> None:
        self._store, self._caller, self._converter, self._catalog, self._authorizer = store, caller, converter, catalog, authorizer
        self._webhooks: dict[str, list[_Webhook] | None] = {_MUTATING: None, _VALIDATING: None}
        store.listen(self._forget, *self._webhooks)

    async def mutate(self, call: Call, operation: str, new: Manifest, old: Manifest | None) -> Manifest:
        """The object as the mutating webhooks want it."""
        write = _Write(self._converter, call, new, old)
        for webhook in self._of(_MUTATING):
            resource = self._wanted(webhook.written, call, operation, write.last, old)
            if resource is None:
                continue
            seen = await write.new_in(resource)
            response = await self._ask(webhook, call, resource, operation, seen, await write.old_in(resource))
            if response is not None and response.get("patch") and seen is not None:
                write.change(resource, _patched(webhook.name, seen, response))
        return await write.new_in(call.resource) or new

    async def validate(self, call: Call, operation: str, new: Manifest | None, old: Manifest | None) -> None:
        """Raises where a validating webhook says no."""
        write = _Write(self._converter, call, new, old)
        for webhook in self._of(_VALIDATING):
            resource = self._wanted(webhook.written, call, operation, new, old)
            if resource is not None:
                await self._ask(webhook, call, resource, operation, await write.new_in(resource), await write.old_in(resource))

    def _forget(self, bucket: str, change: Change) -> None:
        del change
        self._webhooks[bucket] = None

    def _of(self, bucket: str) -> list[_Webhook]:
        found = self._webhooks[bucket]
        if found is None:
            written = (webhook for stored in self._store.bucket(bucket).within("") for webhook in stored.manifest().get("webhooks") or ())
            found = [_Webhook(webhook, Conditions(webhook.get("matchConditions") or ())) for webhook in written]
            self._webhooks[bucket] = found
        return found

    def _wanted(self, webhook: Manifest, call: Call, operation: str, new: Manifest | None, old: Manifest | None) -> Resource | None:
        """The resource in the version in which a webhook wants to see a write; None where it does not want to."""
        if call.resource.group == GROUP:
            return None
        resource = self._matched(webhook, call, operation)
        if resource is None:
            return None
        labels = [(manifest.get("metadata") or {}).get("labels") or {} for manifest in (new, old) if manifest is not None]
        wanted = selectors.from_label_selector(webhook.get("objectSelector"))
        if not any(selectors.match_labels(wanted, of) for of in labels):
            return None
        about = new if new is not None else old or {}
        namespace = (about.get("metadata") or {}).get("namespace") or ""
        if not namespace:
            return resource
        stored = self._store.get("namespaces", "", namespace)
        wanted = selectors.from_label_selector(webhook.get("namespaceSelector"))
        return resource if selectors.match_labels(wanted, stored.labels if stored else {}) else None

    def _matched(self, webhook: Manifest, call: Call, operation: str) -> Resource | None:
        """The resource of the call where a rule names it; else, in the order of the rules, another version of it that one names."""
        rules = webhook.get("rules") or ()
        if any(_covers(rule, call.resource, operation, call.subresource) for rule in rules):
            return call.resource
        if webhook.get("matchPolicy", "Equivalent") != "Equivalent":
            return None
        others = [
            other
            for other in self._catalog.of_bucket(call.resource.bucket)
            if other is not call.resource and (not call.subresource or call.subresource in other.subresources)
        ]
        return next((other for rule in rules for other in others if _covers(rule, other, operation, call.subresource)), None)

    async def _ask(
        self, webhook: _Webhook, call: Call, resource: Resource, operation: str, new: Manifest | None, old: Manifest | None
    ) -> Manifest | None:
        """The webhook's answer; None where its conditions keep it out, or where it did not come and the webhook may be ignored."""
        review = _review(call, resource, operation, new, old)
        if webhook.conditions and not await _concerned(webhook, call, review["request"], Rights(self._authorizer, call.user)):
            return None
        name, written = webhook.name, webhook.written
        if call.dry_run and written.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise errors.bad_request(f'admission webhook "{name}" does not support dry run')
        timeout = float(written.get("timeoutSeconds") or _TIMEOUT)
        what = f'failed calling webhook "{name}": failed to call webhook'
        try:
            answer = await self._caller.call(written.get("clientConfig") or {}, review, timeout=timeout, what=what)
        except WebhookCallError:
            if webhook.may_fail:
                return None
            raise
        response = answer.get("response") or {}
        if response.get("uid") != review["request"]["uid"]:
            raise WebhookCallError(what, "the response has another uid than the request")
        call.warnings += response.get("warnings") or []
        if not response.get("allowed"):
            raise _denied(name, response.get("status") or {})
        return response


class _Write:
    """One write in the versions in which webhooks want to see it.  Each conversion is made once, and only where somebody wants it."""

    def __init__(self, converter: Converter, call: Call, new: Manifest | None, old: Manifest | None) -> None:
        self._converter, self._call, self._given = converter, call, call.resource.api_version
        self._new, self._old = {self._given: new}, {self._given: old}
        self.last = new
        """The object as it was left, in whichever version."""

    def change(self, resource: Resource, new: Manifest) -> None:
        """A webhook that was asked in this version made this of the object."""
        if resource.custom is not None:
            resource.custom.schema.default(new, applied=True)
        self._new, self.last = {resource.api_version: new}, new

    async def new_in(self, resource: Resource) -> Manifest | None:
        # As kube-apiserver does, from one version to another by way of that of the request.
        if self._given not in self._new:
            (changed,) = self._new.values()
            self._new[self._given] = await self._converted(changed, self._call.resource)
        return await self._in(self._new, resource)

    async def old_in(self, resource: Resource) -> Manifest | None:
        return await self._in(self._old, resource)

    async def _in(self, versions: dict[str, Manifest | None], resource: Resource) -> Manifest | None:
        wanted = resource.api_version
        if wanted not in versions:
            versions[wanted] = await self._converted(versions[self._given], resource)
        return versions[wanted]

    async def _converted(self, manifest: Manifest | None, resource: Resource) -> Manifest | None:
        # What is not of the resource's own kind, as a Scale, is the same in all its versions.
        if manifest is None or manifest["kind"] != resource.kind:
            return manifest
        (converted,) = await self._converter.convert(resource, [manifest], resource.api_version)
        return converted


async def _concerned(webhook: _Webhook, call: Call, request: Manifest, rights: Rights) -> bool:
    try:
        return await webhook.conditions.hold(request, rights)
    except ConditionsError as error:
        if webhook.may_fail:
            return False
        raise errors.forbidden(call.resource.group, call.resource.plural, request["name"], str(error)) from None


def _covers(rule: Manifest, resource: Resource, operation: str, subresource: str) -> bool:
    def has(field: str, value: str) -> bool:
        return value in (rule.get(field) or ()) or "*" in (rule.get(field) or ())

    if not (has("operations", operation) and has("apiGroups", resource.group) and has("apiVersions", resource.version)):
        return False
    if rule.get("scope", "*") not in ("*", "Namespaced" if resource.namespaced else "Cluster"):
        return False
    wanted = f"{resource.plural}/{subresource}" if subresource else resource.plural
    for name in rule.get("resources") or ():
        whole, _, part = str(name).partition("/")
        if name in (wanted, "*/*") or (name == "*" and not subresource):
            return True
        if (part == "*" and whole == resource.plural) or (whole == "*" and part and part == subresource):
            return True
    return False


def _review(call: Call, resource: Resource, operation: str, new: Manifest | None, old: Manifest | None) -> Manifest:
    subresource = call.subresource
    about = new if new is not None else old or {}
    kind, asked_kind = (_kind_of(each, subresource) for each in (resource, call.resource))
    plural, asked = ({"group": each.group, "version": each.version, "resource": each.plural} for each in (resource, call.resource))
    given = about.get("metadata") or {}
    request: Manifest = {"uid": str(uuid4()), "kind": kind, "resource": plural, "requestKind": asked_kind, "requestResource": asked}
    if subresource:
        request.update(subResource=subresource, requestSubResource=subresource)
    request.update(
        name=given.get("name") or "",
        operation=operation,
        userInfo=_user_info(call.user),
        object=new,
        oldObject=old,
        dryRun=call.dry_run,
        options={"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
    )
    if given.get("namespace"):
        request["namespace"] = given["namespace"]
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _user_info(user: User) -> Manifest:
    info: Manifest = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}
    return {name: value for name, value in info.items() if value}


def _kind_of(resource: Resource, subresource: str) -> Manifest:
    """Of what kind the objects are that an endpoint takes."""
    other = SUBRESOURCES.get(subresource)
    if other is None or not other.kind:
        return {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {"group": other.group, "version": other.version or resource.version, "kind": other.kind}


def _denied(name: str, status: Manifest) -> errors.StatusError:
    message = status.get("message") or ""
    reason = status.get("reason") or ""
    if message:
        text = f'admission webhook "{name}" denied the request: {message}'
    elif reason:
        text = f'admission webhook "{name}" denied the request: {reason}'
    else:
        text = f'admission webhook "{name}" denied the request without explanation'
    code = int(status.get("code") or 0)
    if code < 400:
        code = 403
    if not reason and code == 403 and not status.get("reason"):
        reason = "Forbidden"
    return errors.StatusError(code, reason, text, status.get("details"))


def _patched(name: str, manifest: Manifest, response: Manifest) -> Manifest:
    try:
        patch = msgspec.json.decode(b64decode(response["patch"]))
        result = jsonpatch.apply(manifest, patch, copy_limit=patches.COPY_LIMIT)
    except (ValueError, msgspec.DecodeError, jsonpatch.PatchError) as error:
        raise errors.internal(f'the patch of the admission webhook "{name}" does not apply: {error}') from None
    if not isinstance(result, dict):
        raise errors.internal(f'the patch of the admission webhook "{name}" does not result in an object')
    return result
