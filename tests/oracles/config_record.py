"""Records what ``config validate``, ``migrate`` and ``print`` of the real kubeadm say of the inputs of cases/config.py.

Run it with ``make golden``; it needs Go to build kubeadm, but no root.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases.config import CASES, VERSIONS, ConfigCase, Recorded, golden_file, understood

from slipway.lab.programs.gobuild import build

FILE_FLAGS = {"validate": "--config", "migrate": "--old-config"}


def main() -> None:
    for version in VERSIONS:
        program = str(build("kubeadm", version))
        with tempfile.TemporaryDirectory() as folder:
            rows = {case.name: record(program, case, version, Path(folder))._asdict() for case in CASES}
        target = golden_file(version)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(rows, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        print(f"{version}: {len(rows)} cases", flush=True)


def record(program: str, case: ConfigCase, version: str, folder: Path) -> Recorded:
    command = [program, "config", *case.arguments]
    if case.arguments[0] in FILE_FLAGS:
        file = folder / "config.yaml"
        file.write_text(case.text_for(version))
        command += [FILE_FLAGS[case.arguments[0]], str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # The defaults of a join name the machine.
    stdout = done.stdout.replace(f"  name: {socket.gethostname().lower()}\n", "  name: node-1\n")
    return understood(done.returncode, stdout, done.stderr)


if __name__ == "__main__":
    main()
