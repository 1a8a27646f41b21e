"""``manager``: argv in, text out; what is run is in slipway.runtime and slipway.fleet."""

from __future__ import annotations

import sys
from typing import Any

from slipway.api.machinery.errors import OperatorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.fleet.manifests import Installation
    from slipway.fleet.registry import Declarations
    from slipway.kube.connection import Connection


def run(call: Invocation) -> None:
    from slipway.cli.commands import managerflags

    settings, dashboard = managerflags.settings(call), managerflags.dashboard(call)
    target = connection(call)
    from slipway.fleet import manager

    if dashboard is None:
        manager.run(target, settings)
        return
    from slipway.dashboard.serving import attach

    manager.run(target, settings, lambda made: attach(made, dashboard, manager.home_of(settings)))


def manifests(call: Invocation) -> None:
    from slipway.cli.commands import managerflags

    form = managerflags.one_of(call, "output")
    wanted = _wanted(call)
    if form == "json":
        import json

        sys.stdout.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": wanted}, indent=2) + "\n")
        return
    from slipway.api.machinery.yaml import goyaml

    sys.stdout.write("---\n".join(goyaml.dump(manifest) for manifest in wanted))


def install(call: Invocation) -> None:
    wanted = _wanted(call)
    target = connection(call)
    import asyncio

    from slipway.kube.aio import AsyncClient
    from slipway.runtime.apply import install as apply_all

    def say(line: str) -> None:
        sys.stdout.write(f"[install] {line}\n")
        sys.stdout.flush()

    async def work() -> None:
        async with AsyncClient(target) as client:
            await apply_all(client, wanted, say)

    asyncio.run(work())
    outside = call.text("webhook-url")
    say(f"Run `{call.program} manager` where {outside} leads to its --webhook-port" if outside else "The manager starts in the cluster")


def namespace(call: Invocation, target: Connection) -> str:
    """The one namespace to work in, as kubectl finds it."""
    return call.text("namespace") or target.namespace or "default"


def connection(call: Invocation) -> Connection:
    """The management cluster: that of --kubeconfig, of this Pod, of KUBECONFIG, or of the user."""
    from slipway.kube import incluster, kubeconfig
    from slipway.kube.connection import from_kubeconfig

    host, environment = call.host, call.host.environment
    given, context = call.text("kubeconfig"), call.text("context") if "context" in call.flags else ""
    if not given and not context and incluster.available(environment):
        return incluster.connection(environment)
    places = kubeconfig.standard_files(environment)
    paths = [given] if given else [path for path in places if host.exists(path)]
    if not paths:
        looked = f" (there is no {' and no '.join(places)})" if places else ""
        raise OperatorError(f"there is no cluster to talk to{looked}: name its kubeconfig with --kubeconfig or in KUBECONFIG")
    documents = {}
    for path in paths:
        try:
            documents[path] = kubeconfig.load(host.read(path), path)
        except OSError as error:
            raise OperatorError(f"cannot read the kubeconfig {path}: {error.strerror or error}") from None
    return from_kubeconfig(kubeconfig.merged(documents), host.read, source=":".join(paths), context=context)


def _wanted(call: Invocation) -> list[dict[str, Any]]:
    from slipway.fleet.manifests import manifests as made

    return made(_installation(call, _declarations(call)))


def _declarations(call: Invocation) -> Declarations:
    from slipway.fleet import registry

    return registry.declarations(registry.chosen(call.texts("controllers")))


def _installation(call: Invocation, declared: Declarations) -> Installation:
    from slipway import __version__
    from slipway.cli.commands import managerflags
    from slipway.fleet import registry
    from slipway.fleet.manifests import Installation

    shards = managerflags.shards(call)
    return Installation(
        rules=declared.rules,
        crds=declared.crds,
        webhooks=declared.webhooks,
        controllers=declared.names,
        leases=declared.leases,
        works_with_providers=declared.works_with_providers,
        image=call.text("image") or f"slipway:v{__version__}",
        namespace=call.text("namespace"),
        # One label value names one provider.
        provider=declared.providers[0] if len(declared.providers) == 1 else "",
        webhook_url=call.text("webhook-url"),
        registration_flags=_registration_flags(call),
        dashboard=call.switch("dashboard"),
        shards=shards,
        division=registry.division_leases(declared.names, call.text("namespace"), shards),
    )


def _registration_flags(call: Invocation) -> list[str]:
    """How the manager that is installed is told what was said here."""
    from slipway.cli.commands import managerflags

    given = {name: managerflags.https_url(call, name) for name in ("registration-api-server", "registration-url")}
    return [f"--{name}={value}" for name, value in given.items() if value]
