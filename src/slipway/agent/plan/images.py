"""The image of an instruction: a folder on the host whose programs it runs.

elemental-system-agent pulls a container image and unpacks it; here the operating system's image has every program that plans need, so that
an image is taken where it is on the host already: a folder, as ``/opt/tools`` or ``dir:/opt/tools``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.agent.plan.files import RefusedError

if TYPE_CHECKING:
    from slipway.host.interface import Host

_FOLDER = "dir:"


def folder(host: Host, image: str, instruction: str) -> str:
    """The folder that an image is; RefusedError where it is none."""
    path = image.removeprefix(_FOLDER)
    if path.startswith("/") and host.is_dir(path):
        return path
    raise RefusedError(
        f'the instruction "{instruction}" is refused: its image "{image}" is not a folder on this host, and agents pull no images; '
        f"name a folder as {_FOLDER}/path, or leave the image out and name a program that the operating system has"
    )
