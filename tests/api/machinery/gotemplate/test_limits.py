"""A template comes from a stranger: whatever it asks for, rendering ends soon, with text or with a TemplateError."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.api.machinery.gotemplate import Template, TemplateError

WORDS = [
    *("{{", "}}", "{{- ", " -}}", " ", "\n", "text", "é", "/*", "*/", '"', "`", "'"),
    *(".", ".a", ".l", ".m.k", ".missing", "$", "$x", ":=", "=", "|", "(", ")", ",", "@"),
    *("if", "else", "end", "range", "with", "define", "template", "block", "break", "continue", "nil"),
    *("true", "1", "-1", "0x1f", "1e3", "1.5", "1+2i", "'a'", '"x"', '"t"', '"%d %v"', "`r`", "99999999999"),
    *("print", "printf", "println", "len", "index", "slice", "eq", "lt", "ge", "and", "or", "not", "html", "js", "urlquery", "call"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("alm") | st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def outcome(text: str, data: object) -> str:
    """The text, or the words of the error; any other exception passes."""
    try:
        return Template.parse("t", text).execute(data, limit=10_000)
    except TemplateError as error:
        return error.message


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map("".join), JSON)
def test_any_row_of_words_gives_text_or_a_template_error(text: str, data: object) -> None:
    assert isinstance(outcome(text, data), str)


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_any_text_gives_text_or_a_template_error(text: str) -> None:
    assert isinstance(outcome("{{" + text + "}}" + text, {"a": text}), str)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="%[]*.0123456789#+- vdsqxXtgefbcoUTp!é", max_size=20), st.lists(JSON, max_size=3))
def test_any_format_gives_text(text: str, values: list[object]) -> None:
    arguments = " ".join(f"(index .v {position})" for position in range(len(values)))
    assert isinstance(outcome(f"{{{{printf .f {arguments}}}}}", {"f": text, "v": values}), str)


def test_output_up_to_the_limit_is_allowed_and_one_byte_more_is_not() -> None:
    template = Template.parse("t", "{{.}}é")
    assert template.execute("12345678", limit=10) == "12345678é"
    with pytest.raises(TemplateError, match=r"\Arendered output exceeds the 10 byte limit\Z"):
        template.execute("123456789", limit=10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{{define "r"}}{{template "r"}}{{end}}{{template "r"}}', "exceeded maximum template depth (150)"),
        ('{{define "r"}}{{template "r"}}{{template "r"}}{{end}}{{template "r"}}', "exceeded maximum template depth (150)"),
        ('{{define "r"}}{{if lt . 0}}{{else}}{{range .}}{{template "r" 2}}{{end}}{{end}}{{end}}{{template "r" 2}}', "exceeded maximum"),
        ("{{range 1000000000}}{{end}}", "exceeded the limit of 100000 steps"),
        ("{{range 1000000}}{{range 1000000}}x{{end}}{{end}}", "exceeded the limit of 100000 steps"),
        (
            '{{$x := "aaaaaaaaaa"}}{{range 60}}{{$x = printf "%s%s" $x $x}}{{end}}',
            "calling printf: the text is longer than the limit",
        ),
        ('{{$x := printf "%999999d" 1}}{{print $x $x $x $x $x $x $x $x $x}}', "calling print: the text is longer than the limit"),
        ('{{range 99999}}{{printf "%999999d" 1 | len}}{{end}}', "exceeded the limit of 100000 steps"),
        ("{{1 -}} " * 30_000, "a template may have no more than 50000 words"),
        ("{{print" + " 1" * 30_000 + "}}", "a template may have no more than 50000 words"),
        ("{{" + "(" * 101 + "1" + ")" * 101 + "}}", "template: t:1: max expression depth exceeded"),
        ("{{if 1}}" * 101 + "{{end}}" * 101, "template: t:1: max expression depth exceeded"),
        ("{{if 1}}" * 60 + "{{" + "(" * 60 + "1" + ")" * 60 + "}}" + "{{end}}" * 60, "max expression depth exceeded"),
    ],
    ids=lambda value: value[:40],
)
def test_what_does_not_end_by_itself_is_ended(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        Template.parse("t", text).execute(None)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def test_many_branches_in_a_row_are_no_nesting() -> None:
    text = "{{if eq . 0}}0" + "".join(f"{{{{else if eq . {number}}}}}{number}" for number in range(1, 500)) + "{{else}}more{{end}}"
    template = Template.parse("t", text)
    assert [template.execute(number) for number in (0, 1, 499, 500)] == ["0", "1", "499", "more"]


def test_nesting_that_is_allowed_can_be_executed() -> None:
    assert Template.parse("t", "{{if 1}}" * 100 + "x" + "{{end}}" * 100).execute(None) == "x"
    assert Template.parse("t", "{{" + "(print " * 100 + "1" + ")" * 100 + "}}").execute(None) == "1"


def test_data_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(TemplateError, match="data of type set: dict, list, str, int, float, bool or None is wanted"):
        Template.parse("t", "").execute({"a": {1, 2}})


def test_data_that_is_nested_too_deep_is_refused() -> None:
    data: object = "x"
    for _ in range(60):
        data = [data]
    with pytest.raises(TemplateError, match="nested more than 50 levels deep"):
        Template.parse("t", "{{.}}").execute(data)


@pytest.mark.parametrize(("data", "shown"), [(1 << 63, "9.223372036854776e+18"), (-(1 << 63), "-9223372036854775808")])
def test_whole_numbers_beyond_64_bits_are_floats_as_kubernetes_decodes_them(data: int, shown: str) -> None:
    assert Template.parse("t", "{{.}}").execute(data) == shown


def test_whole_numbers_beyond_floats_are_refused() -> None:
    with pytest.raises(TemplateError, match=r"a number beyond 1\.8e308"):
        Template.parse("t", "{{.}}").execute([-(10**400)])


def test_a_template_can_be_executed_again_with_other_data() -> None:
    template = Template.parse("t", "{{$x := .}}{{range 2}}{{$x}}{{end}}")
    assert [template.execute(data) for data in ("a", "b")] == ["aa", "bb"]
