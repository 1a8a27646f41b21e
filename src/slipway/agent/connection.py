"""The connection file: where the host's Secret is and how to get there, as elemental-register leaves it for the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.agent import paths
from slipway.api.machinery.errors import OperatorError
from slipway.kube.connection import from_kubeconfig

if TYPE_CHECKING:
    from slipway.agent.machine import Machine
    from slipway.host.interface import Host
    from slipway.kube.connection import Connection


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The Secret of this host."""

    connection: Connection
    namespace: str
    name: str


class _File(msgspec.Struct, frozen=True, rename="camel"):
    kube_config: str
    namespace: str
    secret_name: str


def load(host: Host, path: str = paths.CONNECTION) -> Place | None:
    """None where the host has not been registered; an OperatorError says what is wrong with the file."""
    try:
        content = host.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        written = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path} is no connection file: {error}; register the host anew with `slipway agent register`") from None
    for field, value in (("namespace", written.namespace), ("secretName", written.secret_name)):
        if not value or "/" in value:
            raise OperatorError(f'{path} is no connection file: its {field} is "{value}"')
    source = f"in {path}"
    return Place(
        connection=from_kubeconfig(_kubeconfig(written.kube_config, source), host.read, source=source),
        namespace=written.namespace,
        name=written.secret_name,
    )


def save(machine: Machine, kubeconfig: dict[str, Any], namespace: str, name: str) -> None:
    """The file, for root alone; a kubeconfig in JSON is one in YAML, too."""
    written = _File(kube_config=msgspec.json.encode(kubeconfig).decode(), namespace=namespace, secret_name=name)
    machine.keep(paths.CONNECTION, msgspec.json.encode(written))


def renew(machine: Machine, token: str) -> None:
    """Put another token into the file, in the place of the one that is there."""
    written = msgspec.json.decode(machine.host.read(paths.CONNECTION), type=_File)
    document = _kubeconfig(written.kube_config, f"in {paths.CONNECTION}")
    contexts = {each["name"]: each["context"] for each in document.get("contexts") or ()}
    name = contexts[document["current-context"]]["user"]
    users = [{**each, "user": {**each["user"], "token": token}} if each["name"] == name else each for each in document["users"]]
    save(machine, {**document, "users": users}, written.namespace, written.secret_name)


def _kubeconfig(text: str, source: str) -> dict[str, Any]:
    try:
        # What our registration writes is JSON; YAML takes a megabyte of memory to read.
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        from slipway.kube import kubeconfig

        return kubeconfig.load(text.encode(), source)
    if not isinstance(document, dict):
        raise OperatorError(f"the kubeconfig {source} is no kubeconfig")
    return document
