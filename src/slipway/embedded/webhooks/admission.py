"""Admission webhooks: who wants to see a write, what they make of it, and whether they let it pass."""

from __future__ import annotations

import copy
from base64 import b64decode
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from slipway.api.machinery.patches import jsonpatch
from slipway.embedded import errors
from slipway.embedded.storage import selectors
from slipway.embedded.webhooks.client import WebhookCallError

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.registry.write import WriteOptions
    from slipway.embedded.storage.store import Change, Store
    from slipway.embedded.webhooks.client import WebhookCaller


GROUP = "admissionregistration.k8s.io"
_MUTATING, _VALIDATING = f"mutatingwebhookconfigurations.{GROUP}", f"validatingwebhookconfigurations.{GROUP}"
_TIMEOUT = 10


class Admission:
    """Asks the webhooks of the configurations in the store, in the order of their names.  The server's own writes are not asked about."""

    def __init__(self, store: Store, caller: WebhookCaller) -> None:
        self._store, self._caller = store, caller
        self._webhooks: dict[str, list[Manifest] | None] = {_MUTATING: None, _VALIDATING: None}
        store.listeners.append(self._forget)

    async def mutate(
        self, resource: Resource, operation: str, new: Manifest, old: Manifest | None, options: WriteOptions, subresource: str = ""
    ) -> Manifest:
        """The object as the mutating webhooks want it."""
        for webhook in self._of(_MUTATING):
            if not self._wanted(webhook, resource, operation, new, old, subresource):
                continue
            response = await self._ask(webhook, resource, operation, new, old, options, subresource)
            if response is not None and response.get("patch"):
                new = _patched(webhook["name"], new, response)
        return new

    async def validate(
        self, resource: Resource, operation: str, new: Manifest | None, old: Manifest | None, options: WriteOptions, subresource: str = ""
    ) -> None:
        """Raises where a validating webhook says no."""
        for webhook in self._of(_VALIDATING):
            if self._wanted(webhook, resource, operation, new, old, subresource):
                await self._ask(webhook, resource, operation, new, old, options, subresource)

    def _forget(self, bucket: str, change: Change) -> None:
        del change
        if bucket in self._webhooks:
            self._webhooks[bucket] = None

    def _of(self, bucket: str) -> list[Manifest]:
        found = self._webhooks[bucket]
        if found is None:
            found = [webhook for stored in self._store.bucket(bucket).within("") for webhook in stored.manifest().get("webhooks") or ()]
            self._webhooks[bucket] = found
        return found

    def _wanted(
        self, webhook: Manifest, resource: Resource, operation: str, new: Manifest | None, old: Manifest | None, subresource: str
    ) -> bool:
        if resource.group == GROUP or not any(_covers(rule, resource, operation, subresource) for rule in webhook.get("rules") or ()):
            return False
        labels = [(manifest.get("metadata") or {}).get("labels") or {} for manifest in (new, old) if manifest is not None]
        wanted = selectors.from_label_selector(webhook.get("objectSelector"))
        if not any(selectors.match_labels(wanted, of) for of in labels):
            return False
        about = new if new is not None else old or {}
        namespace = (about.get("metadata") or {}).get("namespace") or ""
        if not namespace:
            return True
        stored = self._store.get("namespaces", "", namespace)
        return selectors.match_labels(selectors.from_label_selector(webhook.get("namespaceSelector")), stored.labels if stored else {})

    async def _ask(
        self,
        webhook: Manifest,
        resource: Resource,
        operation: str,
        new: Manifest | None,
        old: Manifest | None,
        options: WriteOptions,
        subresource: str,
    ) -> Manifest | None:
        """The webhook's answer; None where it did not come and the webhook may be ignored."""
        name = webhook["name"]
        if options.dry_run and webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise errors.bad_request(f'admission webhook "{name}" does not support dry run')
        review = _review(resource, operation, new, old, options, subresource)
        timeout = float(webhook.get("timeoutSeconds") or _TIMEOUT)
        what = f'failed calling webhook "{name}": failed to call webhook'
        try:
            answer = await self._caller.call(webhook.get("clientConfig") or {}, review, timeout=timeout, what=what)
        except WebhookCallError:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return None
            raise
        response = answer.get("response") or {}
        if response.get("uid") != review["request"]["uid"]:
            raise WebhookCallError(what, "the response has another uid than the request")
        options.warnings += response.get("warnings") or []
        if not response.get("allowed"):
            raise _denied(name, response.get("status") or {})
        return response


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


def _review(
    resource: Resource, operation: str, new: Manifest | None, old: Manifest | None, options: WriteOptions, subresource: str
) -> Manifest:
    about = new if new is not None else old or {}
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    plural = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    given = about.get("metadata") or {}
    request: Manifest = {"uid": str(uuid4()), "kind": kind, "resource": plural, "requestKind": kind, "requestResource": plural}
    if subresource:
        request.update(subResource=subresource, requestSubResource=subresource)
    request.update(
        name=given.get("name") or "",
        operation=operation,
        userInfo={"username": options.user.name, "groups": list(options.user.groups)},
        object=new,
        oldObject=old,
        dryRun=options.dry_run,
        options={"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
    )
    if given.get("namespace"):
        request["namespace"] = given["namespace"]
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


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
        result = jsonpatch.apply(copy.deepcopy(manifest), patch)
    except (ValueError, msgspec.DecodeError, jsonpatch.PatchError) as error:
        raise errors.internal(f'the patch of the admission webhook "{name}" does not apply: {error}') from None
    if not isinstance(result, dict):
        raise errors.internal(f'the patch of the admission webhook "{name}" does not result in an object')
    return result
