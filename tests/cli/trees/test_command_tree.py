"""The tree of commands against the real kubeadm's: the same commands, aliases, flags, types and defaults, in every release.

Both sides are read off ``--help`` by the same code, so that what users see is what is compared.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slipway.cli.docs.help import command_help
from slipway.cli.trees.root import build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.cli.argv.command import Command

pytestmark = pytest.mark.recorded

_TESTS = Path(__file__).parents[2]
VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")

# Ours and not kubeadm's, with the reason.
_OWN_COMMANDS = {
    "agent": "the agent of a bare-metal host, with all that is under it",
    "fleet": "the clusters of a management cluster, with all that is under it",
    "man": "man pages from the flag table",
    "config schema": "JSON Schema for editors",
    "demo": "the main job on simulated hosts",
    "doctor": "what is wrong with a node, and what would mend it",
    "lab": "real hosts on one machine, with all that is under it",
    "manager": "the controllers of Cluster API, with all that is under it",
}
_OWN_FLAGS = {
    **{
        (command, flag): "event stream, kubernetes/kubeadm#494"
        for command in ("init", "join", "reset", "upgrade apply", "upgrade node")
        for flag in ("output", "show-secrets")
    },
    ("config migrate", "strict-compat"): "the default migration goes beyond kubeadm's",
    **{
        (path, "etcd-snapshot-dir"): "a snapshot before etcd is upgraded, kubernetes/kubeadm#618"
        for command in ("upgrade apply", "upgrade node")
        for path in (command, f"{command} phase control-plane")
    },
}
# One tree serves every release, so it has what only some of them have.
_NOT_IN_EVERY_RELEASE = {
    "init phase wait-control-plane": "hidden in 1.33",
    "join phase kubelet-wait-bootstrap": "hidden in 1.33, none in 1.34",
    "config validate --allow-deprecated-api": "since 1.36",
    " --vmodule": "since 1.34",
}
# Accepted, but left out of the help.
_HIDDEN_FLAGS = {
    "add-dir-header": "of the logger of 1.33; without effect",
    "skip-headers": "of the logger of 1.33; without effect",
}
_HIDDEN_COMMANDS = {
    "alive": "the side car of keepalived, which only its Pod runs",
    "alpha": "has no sub-commands in any of these releases",
}
_MISSING = {"join phase control-plane-join etcd": "deprecated in 1.33 and 1.34, does nothing there: etcd-join does it"}


def _oracle() -> Any:
    spec = importlib.util.spec_from_file_location("commands_record", _TESTS / "oracles" / "commands_record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _every(command: Command) -> Iterator[Command]:
    yield command
    for child in command.commands:
        yield from _every(child)


@pytest.fixture(scope="module")
def ours() -> dict[str, dict[str, Any]]:
    parse = _oracle().parse
    return {" ".join(command.path): parse(command_help("kubeadm", command)) for command in _every(build("kubeadm"))}


def _real(version: str) -> dict[str, dict[str, Any]]:
    text = (_TESTS / "golden" / version / "commands.json").read_text()
    tree: dict[str, dict[str, Any]] = json.loads(text)
    return tree


@pytest.mark.parametrize("version", VERSIONS)
def test_every_command_of_the_real_one_is_there(version: str, ours: dict[str, dict[str, Any]]) -> None:
    assert set(_real(version)) - set(ours) - set(_MISSING) == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_command_is_the_real_ones_or_listed_as_ours(version: str, ours: dict[str, dict[str, Any]]) -> None:
    additions = set(_OWN_COMMANDS) | set(_NOT_IN_EVERY_RELEASE) | set(_HIDDEN_COMMANDS)
    more = {path for path in set(ours) - set(_real(version)) if not path.startswith(("agent ", "fleet ", "lab ", "manager "))}
    assert more - additions == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_subcommands_and_aliases_are_the_real_ones(version: str, ours: dict[str, dict[str, Any]]) -> None:
    differences = {}
    additions = set(_OWN_COMMANDS) | set(_NOT_IN_EVERY_RELEASE)
    for path, real in _real(version).items():
        if path in _MISSING:
            continue
        wanted = {name for name in real["commands"] if f"{path} {name}".strip() not in {*_MISSING, *_HIDDEN_COMMANDS}}
        shown = {name for name in ours[path]["commands"] if f"{path} {name}".strip() not in additions or name in real["commands"]}
        if wanted != shown or real["aliases"] != ours[path]["aliases"]:
            differences[path] = (wanted ^ shown, real["aliases"], ours[path]["aliases"])
    assert differences == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_flags_have_the_real_types_shorthands_and_defaults(version: str, ours: dict[str, dict[str, Any]]) -> None:
    differences = {}
    for path, real in _real(version).items():
        if path in _MISSING or path in _HIDDEN_COMMANDS:
            continue
        for name in set(real["flags"]) | set(ours[path]["flags"]):
            wanted, shown = real["flags"].get(name), ours[path]["flags"].get(name)
            excused = (
                (path, name) in _OWN_FLAGS
                or (wanted is None and f"{path} --{name}" in _NOT_IN_EVERY_RELEASE)
                or (shown is None and name in _HIDDEN_FLAGS)
            )
            if wanted != shown and not excused:
                differences[f"{path} --{name}"] = (wanted, shown)
    assert differences == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_inherited_flags_are_the_real_ones(version: str, ours: dict[str, dict[str, Any]]) -> None:
    for path, real in _real(version).items():
        if path in ("", *_MISSING, *_HIDDEN_COMMANDS):
            continue
        assert {"vmodule", *real["inherited"]} - set(_HIDDEN_FLAGS) == set(ours[path]["inherited"]), path


def test_hidden_flags_are_accepted_everywhere() -> None:
    for command in _every(build("kubeadm")):
        names = {flag.name for flag in (*command.flags, *command.inherited_flags)}
        assert set(_HIDDEN_FLAGS) <= names, command.path


def test_every_command_can_be_run_or_has_subcommands() -> None:
    for command in _every(build("kubeadm")):
        assert command.run or command.commands, command.path
        if command.run:
            assert callable(command.function()), command.path
