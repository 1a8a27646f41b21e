"""Managers as users who have the permissions that are generated for them and no others: what they ask for, and what is refused."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import pytest
from support.waiting import eventually

from slipway.embedded.access.authentication import User
from slipway.embedded.access.authorization import Attributes, Authorizer
from slipway.embedded.errors import StatusError
from slipway.embedded.server import EmbeddedServer
from slipway.fleet import manifests as made
from slipway.fleet import registry
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.manager import build
from slipway.fleet.manifests import Installation
from slipway.fleet.registry import Declarations
from slipway.fleet.settings import Settings
from slipway.kube.connection import Connection
from slipway.runtime import rbac
from slipway.runtime.manager import Manager

Use = tuple[str, str, str]
"""Verb, group and resource, as RBAC names them."""
HOME = "home-of-"


class Observer:
    """Notes what the users of a server ask its authorizer for, outside of their homes, and what it refuses.

    It is asked twice about an apply that creates.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, server: EmbeddedServer) -> None:
        self.used: defaultdict[str, set[Use]] = defaultdict(set)
        self.refused: defaultdict[str, set[Use]] = defaultdict(set)
        check = Authorizer.check

        def observed(authorizer: Authorizer, user: User, asked: Attributes) -> None:
            resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
            use = asked.verb, asked.group, resource
            if not asked.namespace.startswith(HOME):
                self.used[user.name].add(use)
            try:
                check(authorizer, user, asked)
            except StatusError:
                self.refused[user.name].add(use)
                raise

        monkeypatch.setattr(server.core.authorizer, "check", partial(observed, server.core.authorizer))


class Alone(NamedTuple):
    """A manager of some controllers alone, in a namespace of its own, as a user of its own."""

    controllers: tuple[str, ...]
    port: int

    @property
    def home(self) -> str:
        return f"{HOME}{'-'.join(self.controllers)}"

    @property
    def user(self) -> str:
        return f"manager-of-{'-'.join(self.controllers)}"

    @property
    def declared(self) -> Declarations:
        return registry.declarations(self.controllers)

    def manifests(self) -> list[dict[str, Any]]:
        """What is installed for it; its permissions are the user's."""
        declared = self.declared
        installation = Installation(
            rules=declared.rules,
            crds=declared.crds,
            webhooks=declared.webhooks,
            controllers=declared.names,
            image="none",
            leases=[lease._replace(namespace=self.home) for lease in declared.leases],
            works_with_providers=declared.works_with_providers,
            namespace=self.home,
            webhook_url=f"https://127.0.0.1:{self.port}",
        )
        return [_for_user(manifest, self.user) for manifest in made.manifests(installation)]

    def permissions(self) -> set[Use]:
        """What it may do in the whole cluster."""
        declared = self.declared
        rules = made.cluster_rules(declared.rules, declared.crds, declared.webhooks, self.home)
        return {(verb, group, resource) for rule in rules for group in rule.groups for resource in rule.resources for verb in rule.verbs}

    @asynccontextmanager
    async def running(self, connection: Connection) -> AsyncIterator[Manager]:
        """Everything of a manager: controllers, leader election, webhooks with certificates of its own."""
        manager = build(connection, self._settings())
        for controller in manager.controllers:
            # In the field an object is looked at once a second at most.
            controller.interval = min(controller.interval, 0.02)
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:

            async def serving() -> bool:
                return task.done() or not any(why for _, why in manager._readyz())

            await eventually(serving, f"the webhooks of {self.user} are served")
            yield manager
        finally:
            stop.set()
            await asyncio.wait_for(task, 30)

    def _settings(self) -> Settings:
        return Settings(
            controllers=self.controllers,
            namespace="",
            watch_filter="",
            concurrency=10,
            leader_elect=True,
            own_namespace=self.home,
            metrics_address="0",
            health_address="0",
            webhook_port=self.port,
            webhook_cert_dir="",
            sync_period=600,
            bootstrap=BootstrapOptions(),
            log_format="text",
            verbosity=0,
        )


def _for_user(manifest: dict[str, Any], user: str) -> dict[str, Any]:
    """A binding to the user of the test, who has the permissions of the ServiceAccount and no others."""
    return {**manifest, "subjects": [rbac.user(user)]} if manifest["kind"].endswith("Binding") else manifest


def unused(permissions: Iterable[Use], used: set[Use]) -> set[Use]:
    """What is given and was not used.  With a wildcard, one resource of the group that was not named is use enough."""
    given = set(permissions)
    return {
        (verb, group, resource)
        for verb, group, resource in given
        if (resource == "*" and not any(each[:2] == (verb, group) and each not in given for each in used))
        or (resource != "*" and (verb, group, resource) not in used)
    }
