"""cloud-init of a simulated host: a NoCloud seed, once for each instance.

Templates are rendered, the YAML is read, and what it says is done in cloud-init's order: boot commands, files, and the commands in the
end, as one script.  What a user's document asks for beyond that (users, disks, clocks) changes nothing that anybody here could see.
"""

from __future__ import annotations

import gzip
import posixpath
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.simulation.shell.interpreter import Shell
from slipway.simulation.shell.process import Process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.simulation.host.machine import Machine

SEED = "/var/lib/cloud/seed/nocloud"
INSTANCE = "/var/lib/cloud/data/instance-id"
LOG = "/var/log/cloud-init-output.log"
_TEMPLATE = "## template: jinja"
_EXPRESSION = re.compile(r"\{\{\s*(.*?)\s*\}\}|\{%(.*?)%\}", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*|\[['\"][\w-]+['\"]\])*")
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root"}


class CloudInit:
    """One boot's run over a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._config: Mapping[str, Any] = {}
        self.problem = ""
        """What is wrong with the seed, as the log of a real one would say."""

    def begin(self) -> bool:
        """Whether there is a new instance to set up; its name, its network, its boot commands and its files are there on return."""
        tree = self._machine.tree
        if not tree.exists(f"{SEED}/meta-data") or not tree.exists(f"{SEED}/user-data"):
            return False
        metadata = self._document(tree.file(f"{SEED}/meta-data").content.decode(), "meta-data")
        instance = str(metadata.get("instance-id") or "")
        hostname = str(metadata.get("local-hostname") or metadata.get("hostname") or "")
        if hostname:
            self._machine.hostname = hostname.partition(".")[0]
            tree.write("/etc/hostname", f"{hostname}\n".encode())
        self._network()
        if tree.exists(INSTANCE) and tree.file(INSTANCE).content.decode().strip() == instance:
            return False
        tree.make_dirs(posixpath.dirname(INSTANCE))
        tree.write(INSTANCE, f"{instance}\n".encode())
        try:
            self._config = self._user_data(metadata)
            for command in self._config.get("bootcmd") or ():
                self._run(_line(command))
            for file in self._config.get("write_files") or ():
                self._write(file)
        except (OperatorError, OSError, ValueError) as error:
            self.problem = str(error)
            self._log(f"cloud-init: {error}\n".encode())
            return False
        return True

    def finish(self) -> int:
        """The commands of the end, as one script; a command that fails does not keep the next from running."""
        commands = self._config.get("runcmd") or ()
        return self._run("\n".join(_line(command) for command in commands)) if commands else 0

    def _user_data(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        content = self._machine.tree.file(f"{SEED}/user-data").content
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
        if text.startswith(_TEMPLATE):
            text = rendered(text, metadata, self._machine.hostname)
        if "#cloud-config" not in text.split("\n\n", 1)[0]:
            raise OperatorError("the user-data is no cloud-config")
        return self._document(text, "user-data")

    @staticmethod
    def _document(text: str, source: str) -> Mapping[str, Any]:
        documents = goyaml.load(text, source)
        found = documents[0].value if documents else {}
        if not isinstance(found, dict):
            raise OperatorError(f"the {source} is no mapping")
        return found

    def _write(self, file: Mapping[str, Any]) -> None:
        path, tree = str(file["path"]), self._machine.tree
        content = str(file.get("content") or "").encode()
        encoding = str(file.get("encoding") or "")
        if "b64" in encoding or "base64" in encoding:
            content = b64decode(content)
        if encoding.startswith(("gz", "gzip")):
            content = gzip.decompress(content)
        tree.make_dirs(posixpath.dirname(path))
        if file.get("append") and tree.exists(path):
            content = tree.file(path).content + content
        tree.write(path, content, int(str(file.get("permissions") or "0644"), 8), keep_mode=False)

    def _network(self) -> None:
        """network-config of version 2, as far as it gives addresses to the interfaces that there are."""
        tree, hardware = self._machine.tree, self._machine.hardware
        if not tree.exists(f"{SEED}/network-config"):
            return
        found = self._document(tree.file(f"{SEED}/network-config").content.decode(), "network-config")
        config = found.get("network") or found
        for name, device in (config.get("ethernets") or {}).items():
            match = device.get("match") or {}
            wanted = str(match.get("macaddress") or hardware.mac).lower() == hardware.mac
            named = bool(match) or hardware.interface in (name, device.get("set-name"))
            addresses = [str(address) for address in device.get("addresses") or ()]
            if wanted and named and addresses:
                self._machine.addresses[hardware.interface] = addresses

    def _run(self, script: str) -> int:
        process = Process(["sh"], dict(_ENVIRONMENT))
        process.err = process.out
        code = Shell(self._machine, process, name="runcmd").run(script)
        self._log(bytes(process.out))
        return code

    def _log(self, content: bytes) -> None:
        tree = self._machine.tree
        known = tree.file(LOG).content if tree.exists(LOG) else b""
        tree.make_dirs(posixpath.dirname(LOG))
        tree.write(LOG, known + content)


def _line(command: Any) -> str:
    """An item of a list of commands: text for the shell, or words to be quoted."""
    if isinstance(command, list):
        return " ".join("'" + str(word).replace("'", "'\\''") + "'" for word in command)
    return str(command)


def rendered(text: str, metadata: Mapping[str, Any], hostname: str) -> str:
    """A template with what it asks of the instance: names, and a default for one that is not there.

    What else Jinja can do is refused: no bootstrap data needs it, and a wrong guess would be worse.
    """
    ds = {key.replace("-", "_"): value for key, value in metadata.items()} | dict(metadata)
    instance = str(metadata.get("instance-id") or "")
    known = {
        "ds": {"meta_data": ds},
        "v1": {"local_hostname": hostname, "instance_id": instance, "cloud_name": "nocloud", "platform": "nocloud"},
        "local_hostname": hostname,
        "instance_id": instance,
    }

    def value(match: re.Match[str]) -> str:
        expression = match[1]
        if expression is None:
            raise OperatorError(f"this template is not simulated: {match[0]}")
        name, _, rest = expression.partition("|")
        default = re.fullmatch(r"\s*default\(\s*(['\"])(.*?)\1\s*\)\s*", rest) if rest else None
        if (rest and default is None) or _VARIABLE.fullmatch(name.strip()) is None:
            raise OperatorError(f"this template is not simulated: {match[0]}")
        found = _looked_up(known, name.strip())
        if found is None:
            # As cloud-init has it.
            return default[2] if default is not None else f"CI_MISSING_JINJA_VAR/{name.strip().rpartition('.')[2]}"
        return str(found)

    return _EXPRESSION.sub(value, text)


def _looked_up(known: Any, name: str) -> Any:
    for key in re.findall(r"[\w-]+", name):
        known = known.get(key) if isinstance(known, dict) else None
        if known is None:
            return None
    return known
