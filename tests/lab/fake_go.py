"""A stand-in for the Go command: it notes what it is asked and "builds" whatever program the test put ready."""

from __future__ import annotations

import json
from pathlib import Path

_SCRIPT = """\
#!/bin/sh
echo "$*" >> "{folder}/asked"
case "$1" in
version) echo "go version {version} linux/amd64" ;;
mod) echo '{{"Dir": "{folder}/module"}}' ;;
build | test)
  echo "k8s.io/kubernetes/cmd/kubelet" >&2
  while [ "$1" != "-o" ]; do shift; done
  /bin/cp "{folder}/result" "$2" && /bin/chmod 755 "$2"
  exit "$(/bin/cat "{folder}/exit")" ;;
esac
"""


class FakeGo:
    """Lies in ``folder/bin``; ``result`` is what a build makes."""

    def __init__(self, folder: Path, version: str = "go1.26.8") -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / "go").write_text(_SCRIPT.format(folder=folder, version=version))
        (self.bin / "go").chmod(0o755)
        (folder / "module").mkdir()
        (folder / "module" / "go.mod").write_text(
            "module k8s.io/kubernetes\n\ngo 1.25.0\n\nreplace k8s.io/api => ./staging/src/k8s.io/api\n"
        )
        (folder / "module" / "go.sum").write_text("k8s.io/x v1.0.0 h1:sum=\n")
        self.makes("")

    def makes(self, program: str, exit_code: int = 0) -> None:
        (self.folder / "result").write_text(program)
        (self.folder / "exit").write_text(str(exit_code))

    def asked(self, command: str) -> list[str]:
        """The command lines of one kind, such as ``build``."""
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(command)]


def read_record(path: Path) -> dict[str, object]:
    record: dict[str, object] = json.loads(path.with_name(f"{path.name}.json").read_text())
    return record
