"""Logs as text and as JSON, with the fields of the call and of what surrounds it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.runtime import logs

log = logging.getLogger("slipway.test")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level, own = root.handlers[:], root.level, logging.getLogger("slipway").level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("slipway").setLevel(own)


def test_text_is_that_of_klog(stream: io.StringIO) -> None:
    logs.configure("text", stream=stream)
    with logs.within(controller="kubeadmconfig", namespace="default"):
        log.info("Created the %s", "Secret", extra=logs.fields(name="a b", count=3, ready=True, seconds=0.25, list=["x", 1]))
    log.warning('It said "no"')
    first, second = stream.getvalue().splitlines()
    assert re.fullmatch(
        r'I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "Created the Secret" controller="kubeadmconfig" namespace="default" '
        r'name="a b" count=3 ready=true seconds=0\.25 list=\["x",1\]',
        first,
    )
    assert re.fullmatch(r'W.*\] "It said \\"no\\""', second)


def test_json_is_one_object_a_line(stream: io.StringIO) -> None:
    logs.configure("json", stream=stream)
    with logs.within(controller="c", reconcileID="1"):
        log.info("Done", extra=logs.fields(secret="s"))
    line = json.loads(stream.getvalue())
    assert isinstance(line.pop("ts"), float)
    assert re.fullmatch(r"test_logs\.py:\d+", line.pop("caller"))
    assert line == {
        "level": "info",
        "logger": "slipway.test",
        "msg": "Done",
        "v": 0,
        "controller": "c",
        "reconcileID": "1",
        "secret": "s",
    }


@pytest.mark.parametrize("form", logs.FORMATS)
def test_an_exception_is_told_in_a_word_and_with_its_place(stream: io.StringIO, form: str) -> None:
    logs.configure(form, stream=stream)
    try:
        raise ValueError("a bug\nin two lines")
    except ValueError:
        log.exception("Observed a panic")
    text = stream.getvalue()
    if form == "json":
        line = json.loads(text)
        assert (line["err"], line["level"]) == ("a bug\nin two lines", "error")
        assert line["stacktrace"].startswith("Traceback (most recent call last):\n")
    else:
        assert text.startswith("E")
        assert r'"Observed a panic" err="a bug\nin two lines"' in text
        assert "\nTraceback (most recent call last):\n" in text


def _without_end(depth: int) -> int:
    return _and_back(depth)


def _and_back(depth: int) -> int:
    return _without_end(depth + 1)


@pytest.mark.parametrize("form", logs.FORMATS)
def test_a_recursion_without_end_does_not_fill_the_log(stream: io.StringIO, form: str) -> None:
    logs.configure(form, stream=stream)
    try:
        _without_end(0)
    except RecursionError:
        log.exception("Observed a panic")
    text = stream.getvalue()
    trace = json.loads(text)["stacktrace"] if form == "json" else text
    assert "in _and_back" in trace
    assert len(trace.splitlines()) < 200


def test_surroundings_nest_and_end(stream: io.StringIO) -> None:
    logs.configure("json", stream=stream)
    with logs.within(a=1):
        with logs.within(b=2):
            log.info("inner")
        log.info("outer")
    log.info("outside")
    found = [{key: line[key] for key in ("a", "b") if key in line} for line in map(json.loads, stream.getvalue().splitlines())]
    assert found == [{"a": 1, "b": 2}, {"a": 1}, {}]


@pytest.mark.asyncio
async def test_tasks_have_surroundings_of_their_own(stream: io.StringIO) -> None:
    logs.configure("json", stream=stream)

    async def work(name: str) -> None:
        with logs.within(name=name):
            await asyncio.sleep(0)
            log.info(name)

    await asyncio.gather(work("a"), work("b"))
    assert [(line["msg"], line["name"]) for line in map(json.loads, stream.getvalue().splitlines())] == [("a", "a"), ("b", "b")]


def test_debugging_is_told_from_verbosity_4_on(stream: io.StringIO) -> None:
    logs.configure("json", verbosity=3, stream=stream)
    log.debug("not told")
    logs.configure("json", verbosity=4, stream=stream)
    log.debug("told")
    assert [(line["msg"], line["v"]) for line in map(json.loads, stream.getvalue().splitlines())] == [("told", 4)]


def test_what_json_does_not_know_is_told_as_text(stream: io.StringIO) -> None:
    logs.configure("json", stream=stream)
    log.info("x", extra=logs.fields(error=ValueError("why")))
    assert json.loads(stream.getvalue())["error"] == "why"


def test_another_format_is_refused() -> None:
    with pytest.raises(OperatorError, match='"xml" is not a format of logs: it is one of text, json'):
        logs.configure("xml")


def test_beside_a_commands_own_output_nothing_is_logged_and_afterwards_again(stream: io.StringIO) -> None:
    logs.configure("json", stream=stream)
    with logs.beside_output(0):
        log.error("not told")
    log.info("told")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["told"]
