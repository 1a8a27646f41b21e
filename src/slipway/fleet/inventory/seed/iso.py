"""An ISO 9660 image of a few small files, made by a program of Debian's: xorriso, or genisoimage."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

LABEL = "cidata"
"""By which cloud-init finds a seed among the file systems of a host."""
_TOOLS = (("xorriso", ("-as", "mkisofs")), ("genisoimage", ()))
_SECONDS = 60.0


class ToolMissingError(OperatorError):
    """There is no program that makes images here."""


async def build(files: Mapping[str, bytes]) -> bytes:
    """The image."""
    command = _command()
    with tempfile.TemporaryDirectory(prefix="seed-") as folder:
        root, image = Path(folder, "root"), Path(folder, "seed.iso")
        root.mkdir()
        for name, content in files.items():
            (root / name).write_bytes(content)
        process = await asyncio.create_subprocess_exec(
            *command,
            *("-quiet", "-volid", LABEL, "-joliet", "-rock", "-output", str(image), str(root)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(_SECONDS):
                printed, _ = await process.communicate()
        except TimeoutError:
            raise OperatorError(f"{command[0]} did not make the image within {_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            told = " ".join(printed.decode(errors="replace").split())[-500:]
            raise OperatorError(f"{command[0]} could not make the image (exit code {process.returncode}): {told}")
        return image.read_bytes()


def _command() -> list[str]:
    for name, arguments in _TOOLS:
        found = shutil.which(name)
        if found:
            return [found, *arguments]
    names = " nor ".join(name for name, _ in _TOOLS)
    raise ToolMissingError(f"neither {names} is installed where the manager runs: install one of them, then set spec.retriggerBuild")
