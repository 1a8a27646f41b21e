"""The smallest file that counts as a static program."""

from __future__ import annotations

import struct

STATIC_ELF = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 0, 0, 0, 0)
"""The header of an x86-64 program with no segments: it needs no loader and no library."""
