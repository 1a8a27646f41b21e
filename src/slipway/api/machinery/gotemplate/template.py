"""A template: parsed once, executed as often as wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from slipway.api.machinery.gotemplate.budget import Budget
from slipway.api.machinery.gotemplate.execution import Execution, Output
from slipway.api.machinery.gotemplate.parser import parse
from slipway.api.machinery.gotemplate.quoting import joined, replaced
from slipway.api.machinery.gotemplate.values import INVALID, from_data

if TYPE_CHECKING:
    from slipway.api.machinery.gotemplate.nodes import List

MissingKey = Literal["default", "zero", "error"]


class Template:
    """The parsed form of one text and of the templates that it defines."""

    def __init__(self, name: str, text: str, trees: dict[str, List]) -> None:
        self.name, self._text, self._trees = name, text, trees

    @classmethod
    def parse(cls, name: str, text: str, *, deadline: float | None = None) -> Template:
        """TemplateError with Go's words where the text is no template.  ``deadline`` is as in ``execute``."""
        text = replaced(text)
        return cls(name, text, parse(name, text, deadline))

    def execute(
        self,
        data: object,
        *,
        missing_key: MissingKey = "default",
        limit: int = 0,
        refuse_no_value: bool = False,
        deadline: float | None = None,
    ) -> str:
        """The text that the template makes of the data, of at most ``limit`` bytes.

        ``missing_key`` is Go's option of that name.  ``refuse_no_value`` raises NoValueError where ``<no value>`` or a nil would be
        printed; looking for a missing key (``{{ if .controlPlane }}``) remains allowed.  Whatever the template is, this ends within
        seconds (see limits.py), or soon after ``deadline``, a moment of ``time.monotonic``.
        """
        budget = Budget(deadline)
        output = Output(limit, budget)
        value = from_data(data)
        run = Execution(self.name, self._text, self._trees, output, budget, missing_key=missing_key, refuses_no_value=refuse_no_value)
        run.run(INVALID if value is None else value)
        return replaced(joined("".join(output.pieces)))
