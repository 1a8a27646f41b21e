"""Definitions of custom resources in a test: an API server serves their resources a moment after it took them."""

from __future__ import annotations

from typing import Any

from support.waiting import eventually

from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION
from slipway.kube.aio import AsyncClient


async def established(client: AsyncClient, name: str) -> None:
    """Wait until the API server serves what this definition defines."""
    await eventually(lambda: _is_established(client, name), f"{name} is established")


async def defined_anew(client: AsyncClient, definition: dict[str, Any]) -> None:
    """Replace a definition by another of its name: all of its objects go with it."""
    name = definition["metadata"]["name"]
    await client.delete(CUSTOM_RESOURCE_DEFINITION, name)
    await eventually(lambda: _is_gone(client, name), f"{name} is gone")
    await client.create(CUSTOM_RESOURCE_DEFINITION, definition)
    await established(client, name)


async def _is_established(client: AsyncClient, name: str) -> bool:
    found = await client.get(CUSTOM_RESOURCE_DEFINITION, name)
    conditions = (found.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


async def _is_gone(client: AsyncClient, name: str) -> bool:
    return await client.find(CUSTOM_RESOURCE_DEFINITION, name) is None
