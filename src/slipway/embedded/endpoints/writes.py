"""What the verbs do that change something: from the body of a request to the registry, and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.embedded import errors
from slipway.embedded.endpoints import bodies, negotiation, request
from slipway.embedded.errors import FieldError
from slipway.embedded.fieldmanager import patches
from slipway.embedded.fieldmanager.apply import Applied
from slipway.embedded.registry import delete, metadata, subresources
from slipway.embedded.registry.write import Replacement
from slipway.embedded.storage import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.call import Call
    from slipway.embedded.endpoints.negotiation import Shape
    from slipway.embedded.registry.write import Edit
    from slipway.embedded.server import Core


async def answer(core: Core, call: Call, shape: Shape, query: Mapping[str, str], body: bytes, content_type: str) -> web.Response:
    """Carry out a write."""
    resource, verb = call.resource, call.verb
    if verb in ("delete", "deletecollection"):
        manifest = bodies.decode(body, content_type, "DeleteOptions") if body.strip() else {}
        return await _delete(core, call, shape, query, delete.options_of(manifest, query))
    if call.subresource in subresources.CREATED and verb == "create":
        manifest = bodies.decode(body, content_type, call.subresource)
        made, code = await subresources.create(core.registry, core.authenticator, call, manifest)
        return negotiation.document(made, code, call.warnings)
    if call.subresource == "scale":
        return negotiation.document(await _scale(core, call, body, content_type), 200, call.warnings)
    if verb == "create" and not call.name and (call.namespace or not resource.namespaced):
        written = await core.registry.create(call, bodies.decode(body, content_type, resource.kind))
    elif verb == "update" and call.name:
        manifest = bodies.decode(body, content_type, resource.kind)
        metadata.address(call, manifest)
        written = await core.registry.update(call, Replacement(manifest))
    elif verb == "patch" and call.name:
        written = await core.registry.update(call, _patch(core, call, query, body, content_type))
    else:
        raise errors.method_not_allowed()
    return shape.answer(shape.one(written.raw), 201 if written.created else 200, call.warnings)


def _patch(core: Core, call: Call, query: Mapping[str, str], body: bytes, content_type: str) -> Edit:
    """The patch in a body."""
    resource, media_type = call.resource, _media_type(content_type)
    if media_type not in patches.accepted(resource):
        raise errors.unsupported_media_type(patches.accepted(resource)) if resource.custom else errors.unsupported_patch_type()
    if media_type != patches.APPLY:
        if call.force is not None:
            raise _wrong_options(FieldError.forbidden("force", "may not be specified for non-apply patch"))
        return patches.Patch(resource, media_type, patches.decode(media_type, body))
    if not query.get("fieldManager"):
        raise _wrong_options(FieldError.required("fieldManager", "is required for apply patch"))
    applied = bodies.decode(body, patches.APPLY, resource.kind)
    given = str(applied.get("apiVersion") or "")
    if (given, applied.get("kind")) != (resource.api_version, resource.kind):
        prefixed = given if "/" in given else f"/{given}"
        raise errors.bad_request(f"invalid object type: {prefixed}, Kind={applied.get('kind') or ''}")
    metadata.address(call, applied, fill=False)
    if not isinstance(applied.get("metadata") or {}, dict):
        raise errors.bad_request("metadata must be an object")
    return Applied(call, applied, core.clock())


def _wrong_options(error: FieldError) -> errors.StatusError:
    return errors.invalid("meta.k8s.io", "PatchOptions", "", [error])


async def _scale(core: Core, call: Call, body: bytes, content_type: str) -> Manifest:
    if call.verb == "patch":
        media_type = _media_type(content_type)
        edit = subresources.Scaled(call.resource, patches.decode(media_type, body), media_type)
    else:
        edit = subresources.Scaled(call.resource, bodies.decode(body, content_type, "Scale"))
    # The replicas are a part of what is asked for, and written as such.
    written = await core.registry.update(msgspec.structs.replace(call, subresource=""), edit)
    return subresources.scale_of(call.resource, msgspec.json.decode(written.raw))


async def _delete(core: Core, call: Call, shape: Shape, query: Mapping[str, str], options: delete.DeleteOptions) -> web.Response:
    resource = call.resource
    call.dry_run = options.dry_run
    if call.verb == "deletecollection":
        return await _delete_all(core, call, shape, query, options)
    done = await delete.delete(core.registry, call, options)
    if not done.gone or delete.returns_object(resource):
        return negotiation.response(done.raw, 202 if not done.gone and options.orphan is False else 200, call.warnings)
    details = {"name": call.name, "group": resource.group, "kind": resource.plural, "uid": done.uid}
    details = {key: value for key, value in details.items() if value}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return negotiation.document(status, 200, call.warnings)


async def _delete_all(core: Core, call: Call, shape: Shape, query: Mapping[str, str], options: delete.DeleteOptions) -> web.Response:
    wanted = request.list_options(query)
    found = read.page(core.store, call.resource.bucket, request.selection(call, wanted), wanted)
    for stored in found.objects:
        try:
            await delete.delete(core.registry, msgspec.structs.replace(call, namespace=stored.namespace, name=stored.name), options)
        except errors.StatusError as error:
            if error.code != 404:
                raise
    return shape.answer(await shape.listed(found), 200, call.warnings)


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip()
