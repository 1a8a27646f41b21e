"""Structured logs: a message, and fields beside it, as text in the manner of klog or as JSON.

The stdlib's logging is underneath.  Fields come from the call (``extra=fields(secret=name)``) and from the surroundings
(``with within(controller=...)``), so that everything that is logged during a reconcile says for which object.
"""

from __future__ import annotations

import logging
import time
import traceback
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_surroundings: ContextVar[Mapping[str, object]] = ContextVar("surroundings", default={})  # noqa: B039 - never changed in place

_LETTERS = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
# The calls of a trace that are shown, counted from where it went wrong.
_CALLS = 40
FORMATS = ("text", "json")


def fields(**values: object) -> dict[str, Any]:
    """What a call to a logger passes as ``extra``."""
    return {"fields": values}


@contextmanager
def within(**values: object) -> Iterator[None]:
    """Everything that is logged inside, by this task and those that it starts, has these fields."""
    token = _surroundings.set({**_surroundings.get(), **values})
    try:
        yield
    finally:
        _surroundings.reset(token)


def configure(form: str = "text", *, verbosity: int = 0, stream: TextIO | None = None) -> None:
    """Send the program's log to ``stream`` (standard error) in one of the ``FORMATS``; from verbosity 4 on, debugging too, as with klog."""
    if form not in FORMATS:
        raise OperatorError(f'"{form}" is not a format of logs: it is one of {", ".join(FORMATS)}')
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("slipway").setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)


@contextmanager
def beside_output(verbosity: int) -> Iterator[None]:
    """The log of a command whose own output tells what happens: as text where verbosity asks for it, otherwise silent."""
    if verbosity:
        configure("text", verbosity=verbosity)
        yield
        return
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    own: Mapping[str, object] = getattr(record, "fields", {})
    found = {**_surroundings.get(), **own}
    if record.exc_info and record.exc_info[1] is not None and "err" not in found:
        error = record.exc_info[1]
        found["err"] = str(error) or type(error).__name__
    return found


def _trace(record: logging.LogRecord) -> str:
    if not record.exc_info or not record.exc_info[0]:
        return ""
    # A recursion that did not end would fill the log with what it did a thousand times; its last calls tell as much.
    return "".join(traceback.format_exception(*record.exc_info, limit=-_CALLS)).rstrip()


class TextFormatter(logging.Formatter):
    """``I1116 12:00:00.000001    1234 controller.py:10] "Reconciled" controller="kubeadmconfig" name="x"``."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.localtime(record.created)
        micros = int(record.created % 1 * 1_000_000)
        head = (
            f"{_LETTERS.get(record.levelno, 'I')}{time.strftime('%m%d %H:%M:%S', moment)}.{micros:06d} {record.process or 0:>7} "
            f"{record.filename}:{record.lineno}] {_quoted(record.getMessage())}"
        )
        pairs = "".join(f" {name}={_shown(value)}" for name, value in _fields(record).items())
        trace = _trace(record)
        return f"{head}{pairs}\n{trace}" if trace else head + pairs


class JsonFormatter(logging.Formatter):
    """One object a line, with the names of Kubernetes' own JSON logs: ``ts`` in milliseconds, ``caller``, ``msg``, ``v`` or ``err``."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.WARNING:
            line["v"] = 4 if record.levelno <= logging.DEBUG else 0
        line |= {name: value for name, value in _fields(record).items() if name not in line}
        if trace := _trace(record):
            line["stacktrace"] = trace
        return msgspec.json.encode(line, enc_hook=str).decode()


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(value, enc_hook=str).decode()
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """In quotes on one line, as Go's %q does it for what logs contain."""
    return msgspec.json.encode(text).decode()
