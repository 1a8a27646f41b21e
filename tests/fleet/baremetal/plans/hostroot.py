"""A host as far as plans touch it: a folder as its root, and programs that note down how they were called.

Instructions are run for real, by the shell that they name; paths in their environment are those of the folder.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from slipway.api.elemental.plan import Instruction, Plan

# Programs that a plan may call and that would change the machine; what they answer is in files that a test writes.
PROGRAMS = ("cloud-init", "elemental", "systemctl", "systemd-run", "ip", "ctr", "crictl", "chroot", "kill", "umount", "fstrim")
_PROGRAM = """\
#!/bin/sh
echo "{name} $*" >> "{root}/calls"
if [ -e "{root}/answers/{name}" ]; then
    . "{root}/answers/{name}"
fi
"""


class HostRoot:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._bin = root / "bin"
        (root / "answers").mkdir(parents=True)
        self._bin.mkdir()
        for name in PROGRAMS:
            self.program(name)

    def program(self, name: str) -> None:
        program = self._bin / name
        program.write_text(_PROGRAM.format(name=name, root=self.root))
        program.chmod(0o755)

    def answers(self, name: str, script: str) -> None:
        """What a program does beside being noted down."""
        (self.root / "answers" / name).write_text(script)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def write(self, path: str, content: str = "", mode: int = 0o644) -> None:
        found = self.path(path)
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(content)
        found.chmod(mode)

    def boot(self) -> None:
        """What a boot does to the host: /run is empty afterwards."""
        subprocess.run(["rm", "-rf", str(self.path("/run"))], check=True)

    @property
    def calls(self) -> list[str]:
        found = self.root / "calls"
        return found.read_text().splitlines() if found.exists() else []

    def place_files(self, plan: Plan) -> None:
        for file in plan.files:
            self.write(file.path, file.content.decode(), int(file.permissions, 8))

    def run(self, instruction: Instruction) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self._bin}:{os.environ['PATH']}"}
        for name, _, value in (each.partition("=") for each in instruction.env):
            # Each path of a list, too.
            environment[name] = re.sub(r"(^| )/", rf"\1{self.root}/", value)
        return subprocess.run([instruction.command, *instruction.args], env=environment, capture_output=True, text=True, check=False)

    def apply(self, plan: Plan, *, until: str = "") -> str:
        """As an agent does: files, then instructions, up to the first that fails; what all of them printed.

        ``until`` is the instruction before which the power goes.
        """
        self.place_files(plan)
        printed = ""
        for instruction in plan.instructions:
            if instruction.name == until:
                break
            done = self.run(instruction)
            printed += done.stdout
            assert not done.stderr, "an agent does not keep standard error"
            assert done.returncode == 0, f"{instruction.name}: {printed}"
        return printed
