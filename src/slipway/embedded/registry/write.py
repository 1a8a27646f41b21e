"""Writes: what happens between the body of a request and the store, in the order of kube-apiserver.

Decode and default, let mutating webhooks change it, keep what may not change, count generations, record who owns which fields, validate,
ask validating webhooks, store.  A write that met another one starts again from the new state, unless it named a resourceVersion.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.embedded import errors
from slipway.embedded.access.authorization import Attributes, check_escalation
from slipway.embedded.errors import FieldError
from slipway.embedded.fieldmanager import managedfields
from slipway.embedded.registry import metadata, namespaces, strategies, types
from slipway.embedded.storage.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authorization import Authorizer
    from slipway.embedded.call import Call
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.store import Store, Stored
    from slipway.embedded.webhooks.admission import Admission
    from slipway.embedded.webhooks.conversion import Converter


_NAME_ATTEMPTS = 8
_UPDATE_ATTEMPTS = 50


class Written(NamedTuple):
    """The object in the version of the request, encoded; ``created`` where an update or a patch made it."""

    raw: bytes
    created: bool = False


class Edit:
    """What an update makes of an object; it may be asked again, of a newer state."""

    creates: bool | None = False
    """Whether an object that is not there is created; None leaves it to the resource."""
    tracked = False
    """Whether what it makes has its managedFields already."""
    endpoint = ""
    """The sub-resource as which webhooks are asked, where the object itself is written through one."""

    def of(self, live: Manifest | None) -> Manifest:
        """The object as it should be; ``live`` is a copy of its own, None where there is no object yet."""
        raise NotImplementedError

    def shown(self, manifest: Manifest) -> Manifest:
        """What of an object webhooks get to see."""
        return manifest

    def taken(self, manifest: Manifest, shown: Manifest) -> Manifest:
        """An object with what webhooks made of what they saw."""
        del manifest
        return shown

    def mistyped(self, resource: Resource, manifest: Manifest, mismatch: str) -> errors.StatusError:
        """The answer where Go could not decode what was made."""
        del manifest
        return errors.bad_request(f"{_unhandled(resource)}: {mismatch}")


class Replacement(Edit):
    """An update: the object as the client has it."""

    creates = None

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def of(self, live: Manifest | None) -> Manifest:
        del live
        return copy.deepcopy(self._manifest)


class Registry:
    """Creates and updates objects of every resource; :mod:`slipway.embedded.registry.delete` deletes them."""

    def __init__(
        self, store: Store, clock: Callable[[], datetime], converter: Converter, admission: Admission, authorizer: Authorizer
    ) -> None:
        self.store, self.clock, self.converter, self.admission = store, clock, converter, admission
        self._authorizer = authorizer

    async def create(self, call: Call, manifest: Manifest) -> Written:
        """Store a new object."""
        metadata.address(call, manifest)
        _check_types(call, manifest, Edit())
        return await self._create(call, manifest, tracked=False)

    async def update(self, call: Call, edit: Edit) -> Written:
        """Replace an object by what an edit makes of it."""
        resource = call.resource
        creates = resource.creates_on_update if edit.creates is None else edit.creates
        for _ in range(_UPDATE_ATTEMPTS):
            stored = self.store.get(resource.bucket, call.namespace, call.name)
            if stored is None and (not creates or call.subresource):
                raise errors.not_found(resource.group, resource.plural, call.name)
            if stored is None:
                return await self._create_by_update(call, edit)
            old, live = await self.decoded(resource, stored), await self.decoded(resource, stored)
            new = edit.of(live)
            metadata.address(call, new)
            _check_types(call, new, edit)
            try:
                return await self._replace(call, stored, old, new, edit)
            except ConflictError:
                continue
        raise errors.conflict(resource.group, resource.plural, call.name)

    def write_back(self, resource: Resource, stored: Stored, manifest: Manifest, manager: str, subresource: str = "") -> Stored:
        """Write a change of the server's own, from a stored object to what it should be, without asking anybody."""
        type_ = types.of(resource) if stored.api_version == resource.api_version else None
        reset = types.reset_fields(resource, subresource)
        entries = managedfields.track(stored.manifest(), manifest, manager, type_, now=self.clock(), subresource=subresource, reset=reset)
        _set_managers(manifest, entries)
        return self.store.put(resource.bucket, manifest, stored.version)

    async def decoded(self, resource: Resource, stored: Stored) -> Manifest:
        """A copy of a stored object in the version of the resource."""
        manifest = stored.manifest()
        if stored.api_version != resource.api_version:
            (manifest,) = await self.converter.convert(resource, [manifest], resource.api_version)
        return manifest

    async def encoded(self, resource: Resource, stored: Stored) -> bytes:
        """A stored object, encoded in the version of the resource."""
        return stored.encoded(resource.api_version) or await self.converter.render(resource, stored)

    async def _create_by_update(self, call: Call, edit: Edit) -> Written:
        resource = call.resource
        asked = Attributes("create", "", resource.group, resource.version, call.namespace, resource.plural, call.subresource, call.name)
        self._authorizer.check(call.user, asked)
        manifest = edit.of(None)
        metadata.address(call, manifest)
        _check_types(call, manifest, edit)
        given = manifest["metadata"]
        given["name"] = call.name
        if given.get("uid"):
            why = _uid_mismatch(resource, call.namespace, call.name, given["uid"], "")
            raise errors.conflict(resource.group, resource.plural, call.name, why)
        given.pop("resourceVersion", None)
        return await self._create(call, manifest, tracked=edit.tracked)

    async def _create(self, call: Call, manifest: Manifest, *, tracked: bool) -> Written:
        resource, given = call.resource, manifest["metadata"]
        if resource.namespaced:
            given["namespace"] = call.namespace
        namespaces.check_creation(self.store, resource, given)
        # As etcd3's store has it: 0 is no version.  kubeadm's Service of CoreDNS comes with it.
        if given.pop("resourceVersion", "") not in ("", "0", None):
            raise errors.StatusError(500, "", "resourceVersion should not be set on objects to be created")
        self._decode(call, manifest, applied=tracked)
        metadata.initialise(given, self.clock())
        prefix = "" if given.get("name") else given.get("generateName") or ""
        for attempt in range(_NAME_ATTEMPTS if prefix else 1):
            candidate = copy.deepcopy(manifest) if prefix else manifest
            if prefix:
                candidate["metadata"]["name"] = metadata.generated_name(prefix)
            try:
                return await self._create_named(call, candidate, tracked=tracked)
            except errors.StatusError as error:
                if not prefix or error.reason != "AlreadyExists" or attempt == _NAME_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def _create_named(self, call: Call, manifest: Manifest, *, tracked: bool) -> Written:
        resource, strategy = call.resource, strategies.of(call.resource)
        manifest = types.completed(resource, await self.admission.mutate(call, "CREATE", manifest, None))
        if not tracked:
            self._own(call, None, manifest)
        if resource.has_status and not strategy.keeps_status:
            manifest.pop("status", None)
        strategy.prepare_create(manifest, call.user)
        if resource.generation:
            manifest["metadata"]["generation"] = 1
        manifest = types.completed(resource, manifest)
        given = manifest["metadata"]
        metadata.tidy(given)
        wrong = metadata.validate(given, resource.plural, custom=resource.custom is not None) + strategy.errors(manifest, None)
        if resource.custom is not None:
            wrong += resource.custom.schema.validate(manifest)
            wrong += await resource.custom.schema.rule_errors(manifest, None, wrong, call.warnings)
        if wrong:
            raise errors.invalid(resource.group, resource.kind, given.get("name") or "", wrong)
        check_escalation(self._authorizer, resource, call.user, manifest, None)
        await self.admission.validate(call, "CREATE", manifest, None)
        if self.store.get(resource.bucket, given.get("namespace") or "", given["name"]) is not None:
            raise errors.already_exists(resource.group, resource.plural, given["name"])
        if call.dry_run:
            return Written(msgspec.json.encode(manifest), True)
        # Webhooks took their time: the namespace may have gone meanwhile.
        namespaces.check_creation(self.store, resource, given)
        storable = await self._storable(resource, manifest)
        try:
            stored = self.store.put(resource.bucket, storable, 0)
        except ConflictError:
            raise errors.already_exists(resource.group, resource.plural, given["name"]) from None
        return Written(await self.encoded(resource, stored), True)

    async def _replace(self, call: Call, stored: Stored, old: Manifest, new: Manifest, edit: Edit) -> Written:
        resource = call.resource
        asked = msgspec.structs.replace(call, subresource=edit.endpoint) if edit.endpoint else call
        _check_precondition(resource, stored, new["metadata"])
        self._decode(call, new, applied=edit.tracked)
        mutated = await self.admission.mutate(asked, "UPDATE", edit.shown(new), edit.shown(old))
        new = types.completed(resource, edit.taken(new, mutated))
        if not edit.tracked:
            self._own(call, old, new)
        new = _merged(resource, new, old, call.subresource)
        if not call.subresource and resource.custom is None:
            strategies.of(resource).prepare_update(new, old)
        new = types.completed(resource, new)
        given = new["metadata"]
        metadata.carry_over(given, old["metadata"])
        given["resourceVersion"] = old["metadata"]["resourceVersion"]
        if not call.subresource and resource.generation and _asks_otherwise(resource, new, old):
            given["generation"] = (old["metadata"].get("generation") or 0) + 1
        metadata.tidy(given)
        wrong = _errors(resource, new, old, call.subresource)
        if resource.custom is not None:
            wrong += await resource.custom.schema.rule_errors(new, old, wrong, call.warnings)
        if wrong:
            raise errors.invalid(resource.group, resource.kind, stored.name, wrong)
        check_escalation(self._authorizer, resource, call.user, new, old)
        await self.admission.validate(asked, "UPDATE", edit.shown(new), edit.shown(old))
        if new == old:
            return Written(await self.encoded(resource, stored))
        if call.dry_run:
            return Written(msgspec.json.encode(new))
        storable = await self._storable(resource, new)
        if _is_finished(new, old):
            final = self.store.delete(resource.bucket, storable, stored.version)
        else:
            final = self.store.put(resource.bucket, storable, stored.version)
        return Written(await self.encoded(resource, final))

    async def _storable(self, resource: Resource, manifest: Manifest) -> Manifest:
        if manifest["apiVersion"] != resource.storage_version:
            (manifest,) = await self.converter.convert(resource, [manifest], resource.storage_version)
        return manifest

    def _decode(self, call: Call, manifest: Manifest, *, applied: bool) -> None:
        """Drop what the kind does not have, fill in its defaults; unknown fields are errors or warnings, as the request wants."""
        resource = call.resource
        if resource.custom is not None:
            unknown = [f"metadata.{path}" for path in types.prune(manifest["metadata"], types.object_meta())]
            unknown += resource.custom.schema.prune(manifest)
            resource.custom.schema.default(manifest, applied=applied)
            if resource.custom.deprecation:
                call.warnings.append(resource.custom.deprecation)
        else:
            type_ = types.of(resource)
            unknown = types.prune(manifest, type_) if type_ is not None else []
            strategies.of(resource).default(manifest)
        if not unknown or call.field_validation == "Ignore":
            return
        texts = [f'unknown field "{path}"' for path in unknown]
        if call.field_validation == "Strict":
            raise errors.bad_request(f"{_unhandled(resource)}: strict decoding error: {', '.join(texts)}")
        call.warnings += texts

    def _own(self, call: Call, old: Manifest | None, new: Manifest) -> None:
        """Record which manager owns which fields."""
        reset = types.reset_fields(call.resource, call.subresource)
        type_ = types.of(call.resource)
        entries = managedfields.track(old, new, call.manager, type_, now=self.clock(), subresource=call.subresource, reset=reset)
        _set_managers(new, entries)


def _set_managers(manifest: Manifest, entries: list[Manifest]) -> None:
    manifest["metadata"].pop("managedFields", None)
    if entries:
        manifest["metadata"]["managedFields"] = entries


def _check_precondition(resource: Resource, stored: Stored, given: Manifest) -> None:
    """The object that the writer means is the one that is stored, in the version that the writer has seen."""
    if given.get("uid") and given["uid"] != stored.uid:
        why = _uid_mismatch(resource, stored.namespace, stored.name, given["uid"], stored.uid)
        raise errors.conflict(resource.group, resource.plural, stored.name, why)
    version = given.get("resourceVersion") or ""
    if version in ("", "0"):
        if not resource.unconditional:
            wrong = FieldError.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(resource.group, resource.plural, stored.name, [wrong])
    elif not (version.isascii() and version.isdecimal()):
        raise errors.StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    elif version.lstrip("0") != str(stored.version):
        raise errors.conflict(resource.group, resource.plural, stored.name)


def _merged(resource: Resource, new: Manifest, old: Manifest, subresource: str) -> Manifest:
    """The old object with the part that an endpoint may write."""
    if not subresource:
        if resource.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = copy.deepcopy(old["status"])
        return new
    merged = copy.deepcopy(old)
    if resource.custom is None:
        merged["metadata"] = {**new["metadata"], "ownerReferences": merged["metadata"].get("ownerReferences")}
        if resource.group == "apps":
            merged["metadata"]["labels"] = old["metadata"].get("labels")
    else:
        merged["metadata"]["managedFields"] = new["metadata"].get("managedFields")
    field = {"finalize": "spec", "ephemeralcontainers": "spec", "resize": "spec"}.get(subresource, "status")
    merged.pop(field, None)
    if field in new:
        merged[field] = new[field]
    return merged


def _errors(resource: Resource, new: Manifest, old: Manifest, subresource: str) -> list[FieldError]:
    found = metadata.validate_update(new["metadata"], old["metadata"])
    if resource.custom is None:
        # The real server looks twice at the metadata of its own kinds, and says so twice.
        found += found
    if subresource:
        return found + (resource.custom.schema.validate_status(new, old) if resource.custom is not None else [])
    found += metadata.validate(new["metadata"], resource.plural, custom=resource.custom is not None, old=old["metadata"])
    if resource.custom is None:
        return found + strategies.of(resource).errors(new, old)
    return found + resource.custom.schema.validate(new, old)


def _check_types(call: Call, manifest: Manifest, edit: Edit) -> None:
    """A document that Go could not decode is refused before anything is done with it."""
    mismatch = types.mismatch_of(call.resource, manifest)
    if mismatch:
        raise edit.mistyped(call.resource, manifest, mismatch)
    if manifest.get("metadata") is None:
        manifest["metadata"] = {}


def _unhandled(resource: Resource) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def _asks_otherwise(resource: Resource, new: Manifest, old: Manifest) -> bool:
    """Whether users ask for something else than before: metadata does not count, nor does a status that has its own endpoint."""
    if resource.custom is None:
        ignored = {"metadata", "status"}
        return {key: value for key, value in new.items() if key not in ignored} != {
            key: value for key, value in old.items() if key not in ignored
        }
    ignored = {"metadata", "status"} if resource.has_status else {"metadata"}
    return any(new.get(key) != old.get(key) for key in (new.keys() | old.keys()) - ignored)


def _is_finished(new: Manifest, old: Manifest) -> bool:
    """Whether this write took the last finalizer off an object that was being deleted."""
    before, after = old["metadata"], new["metadata"]
    if "deletionTimestamp" not in before or after.get("finalizers"):
        return False
    # A namespace goes with its own kind of finalizer.
    if new.get("kind") == "Namespace" and (new.get("spec") or {}).get("finalizers"):
        return False
    return not after.get("deletionGracePeriodSeconds")


def _uid_mismatch(resource: Resource, namespace: str, name: str, wanted: str, found: str) -> str:
    place = f"{resource.group}/{resource.plural}" if resource.custom is not None else resource.plural
    path = f"/registry/{place}/{namespace}/{name}" if namespace else f"/registry/{place}/{name}"
    return (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
