"""What a process that runs for long, with many objects and connections, does so that its memory stays small and does not hold it up."""

from __future__ import annotations

import gc
from asyncio import sslproto

_FULL_COLLECTION = 100
"""So many of the middle generation before one of everything.  That takes half a second with 10,000 hosts, while nothing else is done, and
Python's ten were about a fifteenth of a busy manager's work: what a cache keeps has no cycles, and a few thousandths are garbage."""
TLS_BUFFER = 17 * 1024
"""One record of TLS, with what is around it."""


def economise() -> None:
    """To be called when everything is imported, and before there is a connection."""
    # What is imported by now lives as long as the program: the collector need not look at it again and again.
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _FULL_COLLECTION)
    # asyncio has a buffer of 256 KiB for every connection, which is most of what one takes, and reads by as much at a time.
    sslproto.SSLProtocol.max_size = TLS_BUFFER
