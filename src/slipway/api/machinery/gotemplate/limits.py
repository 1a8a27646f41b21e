"""How much a template may ask for.  Go bounds only the depth; here a template must not be able to stop the program that renders it."""

from __future__ import annotations

WORDS = 50_000
"""Words of a template: delimiters, names, numbers, spaces between them, and each piece of plain text."""

NESTING = 100
"""Blocks and parentheses inside each other, in the text of a template.  Go allows 10,000 parentheses."""

DEPTH = 150
"""Blocks, templates and parentheses inside each other while executing.  Go allows 100,000 templates."""

STEPS = 100_000
"""Pieces of text written, actions executed, and every thousand characters that a function reads or makes."""

TEXT = 8 << 20
"""Characters of one text that a function makes."""
