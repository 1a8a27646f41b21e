"""swtpm, a TPM 2.0 in a process of its own: what go-attestation and our device client are tried on."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from support.ports import free_port
from support.waiting import eventually_blocking

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MISSING = "" if shutil.which("swtpm") else "swtpm is not on PATH: install the package swtpm"


@contextmanager
def software_device(folder: Path, *flags: str, socket: Path | None = None, tcp: bool = False) -> Iterator[str]:
    """Where a TPM answers, as our client is told of it: a Unix socket, or a port; its state is in the folder."""
    socket, ready = socket or folder / "tpm.sock", folder / "pid"
    socket.parent.mkdir(exist_ok=True)
    port = free_port() if tcp else 0
    server = f"type=tcp,bindaddr=127.0.0.1,port={port}" if tcp else f"type=unixio,path={socket}"
    command = ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={folder}", "--server", server, "--pid", f"file={ready}"]
    process = subprocess.Popen([*command, "--flags", ",".join(("not-need-init", *flags))], stderr=subprocess.DEVNULL)
    try:
        eventually_blocking(lambda: ready.exists() and ready.stat().st_size, "swtpm to answer")
        yield f"tcp://127.0.0.1:{port}" if tcp else str(socket)
    finally:
        process.terminate()
        process.wait()
        ready.unlink(missing_ok=True)
