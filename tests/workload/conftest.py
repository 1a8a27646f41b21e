"""A node to work on, as the tests of node have it."""

from __future__ import annotations

from node.conftest import lines, make_context

__all__ = ["lines", "make_context"]
