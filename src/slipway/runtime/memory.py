"""What a process that runs for long, with connections to many servers, does so that its memory stays small."""

from __future__ import annotations

import gc
from asyncio import sslproto

TLS_BUFFER = 17 * 1024
"""One record of TLS, with what is around it."""


def economise() -> None:
    """To be called when everything is imported, and before there is a connection."""
    # What is imported by now lives as long as the program: the collector need not look at it again and again.
    gc.freeze()
    # asyncio has a buffer of 256 KiB for every connection, which is most of what one takes, and reads by as much at a time.
    sslproto.SSLProtocol.max_size = TLS_BUFFER
