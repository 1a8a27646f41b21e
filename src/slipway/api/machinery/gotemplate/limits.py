"""How much a template may ask for.  Go bounds only the depth; here a template must not be able to stop the program that renders it."""

from __future__ import annotations

WORDS = 50_000
"""Words of a template: delimiters, names, numbers, spaces between them, comments, and each piece of plain text."""

NUMBER = 1_000
"""Characters of a number or character constant.  A float is told apart from its neighbours by fewer than 800 digits."""

NESTING = 100
"""Blocks and parentheses inside each other, in the text of a template.  Go allows 10,000 parentheses."""

DEPTH = 150
"""Blocks, templates and parentheses inside each other while executing.  Go allows 100,000 templates."""

STEPS = 1_500_000
"""Work of one execution; a step is about a microsecond.

Each part of a template that is evaluated is one (an action, argument, field, stage of a pipeline, turn of a range …), and text that is
read or made counts by its length.
"""

TEXT = 1 << 20
"""Characters of one text: of a literal, and of what a function makes."""

MEMORY = 64 << 20
"""Bytes of all texts and lists that one execution makes, output included, whether they are still needed or not."""
