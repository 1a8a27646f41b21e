"""Records the command line of a real kubeadm: its tree of commands from ``--help``, and what it says to bad command lines.

Run as ``python tests/oracles/commands_record.py [VERSION …]``; it writes ``tests/golden/<version>/commands.json`` and
``command_errors.json``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from slipway.lab.programs import gobuild

GOLDEN = Path(__file__).parent.parent / "golden"
VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")

# pflag leaves three blanks between the widest `--name type` and the help, and one between name and type.
_FLAG = re.compile(r"^ {2}(?:-(?P<short>\w), |    )--(?P<name>[\w-]+)(?: (?P<type>\w+))? {3,}(?P<help>.*)$")
_DEFAULT = re.compile(r"\(default (?P<value>[^()]*)\)$")
_SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+):$")

# Every one of these must fail before anything is done: nothing here may get as far as to run an init, a join or a reset.
BAD_COMMAND_LINES: tuple[tuple[str, ...], ...] = (
    ("foo",),
    ("tokn",),
    ("conf",),
    ("Init-",),
    ("foo", "--x"),
    ("--x", "foo"),
    ("--x",),
    ("-x",),
    ("token", "genorate"),
    ("token", "foo", "bar"),
    ("init", "foo"),
    ("init", "foo", "--x"),
    ("init", "phase", "foo"),
    ("init", "phase", "certs", "foo"),
    ("init", "phase", "preflight", "x"),
    ("init", "-"),
    ("init", "--", "x"),
    ("join", "a", "b"),
    ("join", "phase", "preflight", "a", "b"),
    ("upgrade", "foo"),
    ("upgrade", "node", "foo"),
    ("certs", "renew", "foo"),
    ("certs", "check-expiration", "foo"),
    ("certs", "generate-csr", "x"),
    ("certs", "certificate-key", "foo"),
    ("config", "print", "foo"),
    ("config", "print", "init-defaults", "foo"),
    ("config", "images", "pull", "x"),
    ("token", "generate", "foo"),
    ("version", "extra"),
    ("version", "--x"),
    ("version", "-xyz"),
    ("version", "-o"),
    ("version", "--output"),
    ("version", "-o", "bad"),
    ("version", "--Output", "short"),
    ("version", "-v", "abc"),
    ("version", "-v"),
    ("version", "-v5o"),
    ("version", "-v="),
    ("version", "--v=99999999999"),
    ("version", "--v=0x5"),
    ("version", "--v=1_0"),
    ("init", "--=x"),
    ("init", "---x"),
    ("init", "-=x"),
    ("init", "-hx"),
    ("init", "-vh"),
    ("init", "-h=false", "--foo"),
    ("init", "--dry_run"),
    ("init", "--dry-run", "--kubernetes-version"),
    ("init", "--dry-run=maybe"),
    ("init", "--dry-run="),
    ("init", "--dry-run", "false"),
    ("init", "--apiserver-bind-port", "abc"),
    ("init", "--apiserver-bind-port", "99999999999"),
    ("init", "--apiserver-bind-port", "-2147483649"),
    ("init", "--apiserver-bind-port", "6_443_"),
    ("init", "--apiserver-bind-port", "0b2"),
    ("init", "--apiserver-bind-port", "089"),
    ("init", "--apiserver-bind-port", " 1"),
    ("init", "--apiserver-bind-port", "+"),
    ("init", "--apiserver-bind-port="),
    ("init", "--token-ttl", "5"),
    ("init", "--token-ttl", "abc"),
    ("init", "--token-ttl="),
    ("init", "--token-ttl", "1h5x"),
    ("init", "--apiserver-cert-extra-sans", 'a"b'),
    ("init", "--apiserver-cert-extra-sans", 'x,a"b'),
    ("init", "--apiserver-cert-extra-sans", '"a"b'),
    ("init", "--apiserver-cert-extra-sans", '"a'),
    ("init", "--apiserver-cert-extra-sans", "\n"),
    ("init", "phase", "control-plane", "apiserver", "--apiserver-extra-args=a"),
    ("init", "phase", "control-plane", "apiserver", "--apiserver-extra-args=a=b=c"),
    ("init", "phase", "control-plane", "scheduler", "--scheduler-extra-args=a=b", "--x"),
    ("init", "phase", "certs", "ca", "--node-name=x"),
    ("upgrade", "apply", "--foo"),
    ("upgrade", "diff", "-c", "x"),
    ("upgrade", "apply", "-fyz"),
    ("completion",),
    ("completion", "bash", "zsh"),
    ("config", "migrate"),
    ("config", "validate"),
    ("kubeconfig", "user"),
    ("upgrade", "apply"),
    ("token", "create", "a", "b"),
    ("token", "delete"),
    ("config", "images", "list", "-o", "bad"),
)


def parse(text: str) -> dict[str, Any]:
    """What a help text says about its command."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        match = _SECTION.match(line)
        if match:
            current = sections.setdefault(match["title"], [])
        else:
            current.append(line)
    commands = [line.split()[0] for line in sections.get("Available Commands", []) if line.startswith("  ")]
    commands += [line.split()[1] for line in sections.get("Additional help topics", []) if line.startswith("  ")]
    aliases = "".join(sections.get("Aliases", [])).replace(" ", "").split(",")[1:]
    return {
        "usage": [line.strip() for line in sections.get("Usage", []) if line.strip()],
        "commands": commands,
        "aliases": aliases,
        "flags": _flags(sections.get("Flags", [])),
        "inherited": sorted(_flags(sections.get("Global Flags", []))),
    }


def _flags(lines: list[str]) -> dict[str, dict[str, str]]:
    flags: dict[str, dict[str, str]] = {}
    usages: dict[str, str] = {}
    name = ""
    for line in lines:
        match = _FLAG.match(line)
        if match:
            name = match["name"]
            flags[name] = {"type": match["type"] or "bool"}
            if match["short"]:
                flags[name]["shorthand"] = match["short"]
            usages[name] = match["help"]
        elif name and line.startswith("   "):
            usages[name] += " " + line.strip()
    for name, usage in usages.items():
        default = _DEFAULT.search(usage)
        if default:
            value = default["value"]
            flags[name]["default"] = json.loads(value) if value.startswith('"') else value
    return flags


def walk(kubeadm: Path, path: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """The help of a command and of everything under it, by command path."""
    done = subprocess.run([kubeadm, *path, "--help"], capture_output=True, text=True, check=True)
    here = parse(done.stdout)
    tree = {" ".join(path): here}
    for name in here["commands"]:
        tree |= walk(kubeadm, (*path, name))
    return tree


def answers(kubeadm: Path) -> list[dict[str, Any]]:
    """What it says to each bad command line, and the exit code."""
    recorded = []
    for arguments in BAD_COMMAND_LINES:
        done = subprocess.run([kubeadm, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        recorded.append({"arguments": arguments, "code": done.returncode, "stderr": done.stderr, "stdout": done.stdout})
    return recorded


def record(version: str) -> None:
    kubeadm = gobuild.build("kubeadm", version)
    folder = GOLDEN / version
    folder.mkdir(parents=True, exist_ok=True)
    # One line a command, so that a difference between two releases reads well.
    commands = (f"{json.dumps(path)}: {json.dumps(command, sort_keys=True)}" for path, command in sorted(walk(kubeadm).items()))
    (folder / "commands.json").write_text("{\n" + ",\n".join(commands) + "\n}\n")
    errors = (json.dumps(answer, sort_keys=True) for answer in answers(kubeadm))
    (folder / "command_errors.json").write_text("[\n" + ",\n".join(errors) + "\n]\n")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or VERSIONS:
        record(wanted)
