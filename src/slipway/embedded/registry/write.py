"""Writes: what happens between the body of a request and the store, in the order of kube-apiserver.

Decode and default, let mutating webhooks change it, keep what may not change, count generations, record who owns which fields, validate,
ask validating webhooks, store.  A write that met another one starts again from the new state, unless it named a resourceVersion.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.embedded import errors, fielderrors
from slipway.embedded.access import escalation
from slipway.embedded.fieldmanager import managedfields
from slipway.embedded.fieldmanager.types import Type
from slipway.embedded.registry import decoding, metadata, namespaces, strategies, types
from slipway.embedded.storage.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.access.authorization import Authorizer
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.store import Store, Stored
    from slipway.embedded.webhooks.admission import Admission
    from slipway.embedded.webhooks.conversion import Converter


_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_NAME_ATTEMPTS = 8
_UPDATE_ATTEMPTS = 50


class WriteOptions(msgspec.Struct, kw_only=True):
    """Who writes, and how the query of the request wants it."""

    user: User
    manager: str = "unknown"
    dry_run: bool = False
    field_validation: str = "Warn"
    warnings: list[str] = []
    authorize_create: Callable[[], None] | None = None
    """Asked before an update or a patch creates an object."""


class Written(NamedTuple):
    """The object in the version of the request, encoded; ``created`` where an update or a patch made it."""

    raw: bytes
    created: bool = False


class Registry:
    """Creates and updates objects of every resource; :mod:`slipway.embedded.deletion` deletes them."""

    def __init__(
        self, store: Store, clock: Callable[[], datetime], converter: Converter, admission: Admission, authorizer: Authorizer
    ) -> None:
        self.store, self.clock, self.converter, self.admission = store, clock, converter, admission
        self._authorizer = authorizer

    async def create(
        self, resource: Resource, namespace: str, manifest: Manifest, options: WriteOptions, *, tracked: bool = False
    ) -> Written:
        """Store a new object; ``tracked`` says that it has its managedFields already."""
        _check_types(resource, manifest)
        given = manifest.setdefault("metadata", {})
        if resource.namespaced:
            given["namespace"] = namespace
        namespaces.check_creation(self.store, resource, given)
        if given.get("resourceVersion"):
            raise errors.StatusError(500, "", "resourceVersion should not be set on objects to be created")
        self._decode(resource, manifest, options, applied=tracked)
        metadata.initialise(given, self.clock())
        prefix = "" if given.get("name") else given.get("generateName") or ""
        for attempt in range(_NAME_ATTEMPTS if prefix else 1):
            candidate = copy.deepcopy(manifest) if prefix else manifest
            if prefix:
                candidate["metadata"]["name"] = metadata.generated_name(prefix)
            try:
                return await self._create(resource, candidate, options, tracked=tracked)
            except errors.StatusError as error:
                if not prefix or error.reason != "AlreadyExists" or attempt == _NAME_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def _create(self, resource: Resource, manifest: Manifest, options: WriteOptions, *, tracked: bool) -> Written:
        strategy = strategies.of(resource)
        manifest = await self.admission.mutate(resource, "CREATE", manifest, None, options)
        manifest = self._completed(resource, manifest)
        given = manifest["metadata"]
        if not tracked:
            self._own(resource, None, manifest, options, "")
        if resource.has_status and not strategy.keeps_status:
            manifest.pop("status", None)
        strategy.prepare_create(manifest, options.user)
        if resource.generation:
            given["generation"] = 1
        manifest = self._completed(resource, manifest)
        given = manifest["metadata"]
        metadata.tidy(given)
        wrong = metadata.errors(given, resource.plural, creating=True, custom=resource.custom is not None) + strategy.errors(manifest, None)
        if resource.custom is not None:
            wrong += resource.custom.schema.validate(manifest)
        if wrong:
            raise errors.invalid(resource.group, resource.kind, given.get("name") or "", wrong)
        escalation.check(self._authorizer, resource, options.user, manifest, None)
        await self.admission.validate(resource, "CREATE", manifest, None, options)
        if self.store.get(resource.bucket, given.get("namespace") or "", given["name"]) is not None:
            raise errors.already_exists(resource.group, resource.plural, given["name"])
        if options.dry_run:
            return Written(msgspec.json.encode(manifest), True)
        # Webhooks took their time: the namespace may have gone meanwhile.
        namespaces.check_creation(self.store, resource, given)
        (storable,) = await self.converter.convert(resource, [manifest], resource.storage_version)
        try:
            stored = self.store.put(resource.bucket, storable, 0)
        except ConflictError:
            raise errors.already_exists(resource.group, resource.plural, given["name"]) from None
        return Written(await self.converter.render(resource, stored), True)

    async def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Manifest | None], Manifest],
        options: WriteOptions,
        *,
        subresource: str = "",
        creates: bool | None = None,
        tracked: bool = False,
    ) -> Written:
        """Replace an object by what ``change`` makes of it.

        ``creates`` says whether an object that is not there is created; ``tracked``, that the change has its managedFields already.
        """
        allowed = resource.creates_on_update if creates is None else creates
        for _ in range(_UPDATE_ATTEMPTS):
            stored = self.store.get(resource.bucket, namespace, name)
            if stored is None:
                if not allowed or subresource:
                    raise errors.not_found(resource.group, resource.plural, name)
                if options.authorize_create is not None:
                    options.authorize_create()
                manifest = change(None)
                _check_types(resource, manifest)
                wanted = manifest.setdefault("metadata", {})
                wanted["name"] = name
                if wanted.get("uid"):
                    raise errors.conflict(
                        resource.group, resource.plural, name, _uid_mismatch(resource, namespace, name, wanted["uid"], "")
                    )
                wanted.pop("resourceVersion", None)
                return await self.create(resource, namespace, manifest, options, tracked=tracked)
            (old,) = await self.converter.convert(resource, [stored.manifest()], resource.api_version)
            new = change(copy.deepcopy(old))
            try:
                return await self._replace(resource, stored, old, new, options, subresource, tracked=tracked)
            except ConflictError:
                continue
        raise errors.conflict(resource.group, resource.plural, name)

    async def _replace(
        self, resource: Resource, stored: Stored, old: Manifest, new: Manifest, options: WriteOptions, subresource: str, *, tracked: bool
    ) -> Written:
        _check_types(resource, new)
        given = new.setdefault("metadata", {})
        self._check_identity(resource, stored, given)
        self._decode(resource, new, options, applied=tracked)
        new = self._completed(resource, await self.admission.mutate(resource, "UPDATE", new, old, options, subresource))
        if not tracked:
            self._own(resource, old, new, options, subresource)
        new = self._merged(resource, new, old, subresource)
        if not subresource:
            strategies.of(resource).prepare_update(new, old)
        new = self._completed(resource, new)
        given = new["metadata"]
        metadata.carry_over(given, old["metadata"])
        given["resourceVersion"] = old["metadata"]["resourceVersion"]
        if not subresource and resource.generation and _asks_otherwise(resource, new, old):
            given["generation"] = (old["metadata"].get("generation") or 0) + 1
        metadata.tidy(given)
        wrong = self._errors(resource, new, old, subresource)
        if wrong:
            raise errors.invalid(resource.group, resource.kind, stored.name, wrong)
        escalation.check(self._authorizer, resource, options.user, new, old)
        await self.admission.validate(resource, "UPDATE", new, old, options, subresource)
        if new == old:
            return Written(await self.converter.render(resource, stored))
        if options.dry_run:
            return Written(msgspec.json.encode(new))
        (storable,) = await self.converter.convert(resource, [new], resource.storage_version)
        if _is_finished(new, old):
            final = self.store.delete(resource.bucket, storable, stored.version)
        else:
            final = self.store.put(resource.bucket, storable, stored.version)
        return Written(await self.converter.render(resource, final))

    def write_back(self, resource: Resource, stored: Stored, manifest: Manifest, manager: str, subresource: str = "") -> Stored:
        """Write a change of the server's own, from a stored object to what it should be, without asking anybody."""
        (old, now) = (stored.manifest(), self.clock())
        reset = reset_fields(resource, subresource)
        type_ = type_of(resource) if stored.api_version == resource.api_version else None
        entries = managedfields.track(old, manifest, manager, type_, now=now, subresource=subresource, reset=reset)
        manifest["metadata"].pop("managedFields", None)
        if entries:
            manifest["metadata"]["managedFields"] = entries
        return self.store.put(resource.bucket, manifest, stored.version)

    def _check_identity(self, resource: Resource, stored: Stored, given: Manifest) -> None:
        """The object that the writer means is the one that is stored, in the version that the writer has seen."""
        if given.get("uid") and given["uid"] != stored.uid:
            why = _uid_mismatch(resource, stored.namespace, stored.name, given["uid"], stored.uid)
            raise errors.conflict(resource.group, resource.plural, stored.name, why)
        version = given.get("resourceVersion") or ""
        if version in ("", "0"):
            if not resource.unconditional:
                wrong = fielderrors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise errors.invalid(resource.group, resource.plural, stored.name, [wrong])
        elif not version.isdecimal():
            raise errors.StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        elif int(version) != stored.version:
            raise errors.conflict(resource.group, resource.plural, stored.name)

    def _decode(self, resource: Resource, manifest: Manifest, options: WriteOptions, *, applied: bool) -> None:
        """Drop what the kind does not have, fill in its defaults; unknown fields are errors or warnings, as the request wants."""
        if resource.custom is not None:
            unknown = [f"metadata.{path}" for path in types.prune(manifest["metadata"], _metadata_type())]
            unknown += resource.custom.schema.prune(manifest)
            resource.custom.schema.default(manifest, applied=applied)
            if resource.custom.deprecation:
                options.warnings.append(resource.custom.deprecation)
        else:
            type_ = type_of(resource)
            unknown = types.prune(manifest, type_) if type_ is not None else []
            strategies.of(resource).default(manifest)
        if not unknown or options.field_validation == "Ignore":
            return
        texts = [f'unknown field "{path}"' for path in unknown]
        if options.field_validation == "Strict":
            raise errors.bad_request(f"{_unhandled(resource)}: strict decoding error: {', '.join(texts)}")
        options.warnings += texts

    def _completed(self, resource: Resource, manifest: Manifest) -> Manifest:
        type_ = type_of(resource) if resource.custom is None else None
        return manifest if type_ is None else types.complete(manifest, type_)

    def _merged(self, resource: Resource, new: Manifest, old: Manifest, subresource: str) -> Manifest:
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

    def _own(self, resource: Resource, old: Manifest | None, new: Manifest, options: WriteOptions, subresource: str) -> None:
        """Record which manager owns which fields."""
        reset = reset_fields(resource, subresource)
        now = self.clock()
        entries = managedfields.track(old, new, options.manager, type_of(resource), now=now, subresource=subresource, reset=reset)
        new["metadata"].pop("managedFields", None)
        if entries:
            new["metadata"]["managedFields"] = entries

    def _errors(self, resource: Resource, new: Manifest, old: Manifest, subresource: str) -> list[fielderrors.FieldError]:
        found = metadata.update_errors(new["metadata"], old["metadata"])
        if resource.custom is None:
            # The real server looks twice at the metadata of its own kinds, and says so twice.
            found += found
        if subresource:
            return found + (resource.custom.schema.validate_status(new, old) if resource.custom is not None else [])
        found += metadata.errors(new["metadata"], resource.plural, creating=False, custom=resource.custom is not None) + strategies.of(
            resource
        ).errors(new, old)
        return found + (resource.custom.schema.validate(new, old) if resource.custom is not None else [])


def type_of(resource: Resource) -> Type | None:
    """The type by which fields are owned and merged."""
    if resource.custom is not None:
        return resource.custom.schema.type
    return types.definition(resource.group, resource.version, resource.kind)


def reset_fields(resource: Resource, subresource: str) -> tuple[str, ...]:
    """The top-level fields that an endpoint leaves as they are."""
    if subresource:
        return ("spec",)
    return ("status",) if resource.has_status else ()


def _check_types(resource: Resource, manifest: Manifest) -> None:
    """A document that Go could not decode is refused before anything is done with it."""
    type_ = type_of(resource) if resource.custom is None else None
    if type_ is not None:
        mismatch = decoding.mismatch(manifest, type_, resource.kind)
    else:
        mismatch = decoding.mismatch(manifest.get("metadata"), _metadata_type(), "ObjectMeta")
    if mismatch:
        raise errors.bad_request(f"{_unhandled(resource)}: {mismatch}")
    if manifest.get("metadata") is None:
        manifest["metadata"] = {}


@cache
def _metadata_type() -> Type:
    return Type({"$ref": f"#/components/schemas/{_OBJECT_META}"}, types.definitions())


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
