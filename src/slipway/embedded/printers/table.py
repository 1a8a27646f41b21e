"""Lists and objects as ``meta.k8s.io/v1`` Tables, which is what ``kubectl get`` asks for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slipway.embedded.printers import jsonpath
from slipway.embedded.printers.columns import age, printer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest


_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def table(
    objects: Iterable[Manifest],
    *,
    group: str,
    kind: str,
    columns: Sequence[Manifest] | None = None,
    include: str = "Metadata",
    metadata: Manifest | None = None,
    now: datetime,
    headers: bool = True,
    version: str = "v1",
) -> Manifest:
    """Objects as a Table.

    ``columns`` are the additionalPrinterColumns of a custom resource, None for a built-in kind; ``include`` is the request's
    ``includeObject``; ``metadata`` is that of the list, or the resourceVersion of the one object.
    """
    if columns is None:
        printer = printer_of(group, kind)
        definitions = [column.definition() for column in printer.columns]
        rows = [_row(item, printer.cells(item, now), include, version) for item in objects]
    else:
        chosen = list(columns) or [_AGE]
        definitions = [_NAME, *(_definition(column) for column in chosen)]
        rows = [
            _row(item, [item["metadata"].get("name"), *(_cell(item, column, now) for column in chosen)], include, version)
            for item in objects
        ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata or {},
        "columnDefinitions": definitions if headers else [],
        "rows": rows,
    }


def partial(manifest: Manifest, version: str = "v1") -> Manifest:
    """An object with nothing but its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": manifest["metadata"]}


_NAME = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}


def _definition(column: Manifest) -> Manifest:
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": column.get("description") or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
        "priority": column.get("priority", 0),
    }


def _row(manifest: Manifest, cells: list[Any], include: str, version: str) -> Manifest:
    row: Manifest = {"cells": cells}
    if include == "Object":
        row["object"] = manifest
    elif include == "Metadata":
        row["object"] = partial(manifest, version)
    else:
        row["object"] = None
    if manifest.get("kind") == "Pod" and (phase := (manifest.get("status") or {}).get("phase")) in ("Succeeded", "Failed"):
        reason, message = ("Succeeded", "The pod has completed successfully.") if phase == "Succeeded" else ("Failed", "The pod failed.")
        row["conditions"] = [{"type": "Completed", "status": "True", "reason": reason, "message": message}]
    return row


def _cell(manifest: Manifest, column: Manifest, now: datetime) -> Any:
    """What a printer column shows; nothing where the path leads nowhere or to another type."""
    found = jsonpath.find(column["jsonPath"], manifest)
    if not found:
        return None
    value, type_ = found[0], column["type"]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if type_ == "string":
        return jsonpath.text(value)
    if type_ == "integer":
        return int(value) if is_number else None
    if type_ == "number":
        return float(value) if is_number else None
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if type_ == "date" and isinstance(value, str):
        return age(value, now) if _DATE.match(value) else "<invalid>"
    return None


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})\Z")
