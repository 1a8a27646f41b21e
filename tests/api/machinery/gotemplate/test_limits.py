"""A template comes from a stranger: whatever it asks for, rendering ends soon, with text or with a TemplateError."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.api.machinery.gotemplate import Template, TemplateError, limits

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
        (
            '{{$x := "aaaaaaaaaa"}}{{range 60}}{{$x = printf "%s%s" $x $x}}{{end}}',
            "calling printf: the text is longer than the limit",
        ),
        ('{{$x := printf "%999999d" 1}}{{print $x $x $x $x $x $x $x $x $x}}', "calling print: the text is longer than the limit"),
        (
            '{{range 99999}}{{printf "%999999d" 1 | len}}{{end}}',
            "texts that were made are together larger than the limit of 67108864 bytes",
        ),
        ('{{$x := printf "%999999d" 1}}{{range 99999}}{{$x}}{{end}}', "texts that were made are together larger than the limit"),
        ("{{1 -}} " * 30_000, "a template may have no more than 50000 words"),
        ("{{print" + " 1" * 30_000 + "}}", "a template may have no more than 50000 words"),
        ("{{/**/}}" * 50_001, "a template may have no more than 50000 words"),
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


@pytest.mark.parametrize(
    "text",
    [
        "{{and" + " 1" * 3_000 + "}}",
        "{{or" + " 0" * 3_000 + "}}",
        "{{if 0}}" + "{{else if 0}}" * 3_000 + "{{end}}",
        "{{with 0}}" + "{{else with 0}}" * 3_000 + "{{end}}",
        "{{1" + "|not" * 2_000 + "}}",
        "{{$x := 1}}" + "{{$x = $x}}" * 2_000,
        "{{.a" + ".b" * 3_000 + "}}",
        "{{(.a).a" + ".b" * 3_000 + "}}",
        "{{$.a" + ".b" * 3_000 + "}}",
        "".join(f"{{{{$x{number} := 1}}}}" for number in range(1_000)) + "{{$}}" * 100,
        "{{print" + " 1" * 2_000 + "}}",
        "{{eq 1" + " 2" * 3_000 + "}}",
        "{{" + "(not " * 90 + "1" + ")" * 90 + "}}" + ("{{" + "(not " * 90 + "1" + ")" * 90 + "}}") * 10,
        '{{define "a"}}{{end}}' + '{{template "a"}}' * 3_000,
        '{{printf "' + "%[1]d" * 1_000 + '" 1}}',
        '{{printf "%' + "+" * 3_000 + 'd" 1}}',
        '{{printf "' + "%[" * 3_000 + '" 1}}',
        '{{printf "%q" (printf "%99999d" 1)}}',
        '{{$x := printf "%999999d" 1}}{{len $x}}{{len $x}}{{len $x}}',
        "{{range 1500}}{{end}}{{range 1500}}{{end}}",
        "{{range 10}}{{range 300}}x{{end}}{{end}}",
    ],
    ids=lambda text: text[:30],
)
def test_whatever_is_evaluated_counts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STEPS", 2_500)
    with pytest.raises(TemplateError, match=r"exceeded the limit of 2500 steps\Z"):
        Template.parse("t", text).execute({"a": {"a": {}}})


def test_a_loop_over_many_arguments_ends_soon() -> None:
    template = Template.parse("t", "{{range 99000}}{{$x := and" + " 1" * 5_000 + "}}{{end}}")
    start = time.process_time()
    with pytest.raises(TemplateError, match="exceeded the limit of 1500000 steps"):
        template.execute(None)
    assert time.process_time() - start < 10


def test_sixty_thousand_turns_of_a_harmless_loop_are_rendered() -> None:
    template = Template.parse("t", "{{range $i := .turns}}{{if eq $i 30000}}half{{else}}.{{end}}{{end}}")
    assert template.execute({"turns": 60_000}) == "." * 30_000 + "half" + "." * 29_999


def test_text_that_is_put_together_in_many_turns_is_rendered() -> None:
    template = Template.parse(
        "t", '{{$all := ""}}{{range 1500}}{{$all = printf "%s%s" $all "a line of text, 32 characters; "}}{{end}}{{$all}}'
    )
    assert template.execute(None) == "a line of text, 32 characters; " * 1500


@pytest.mark.parametrize(
    "call",
    [
        *(
            f'printf "{verb}" $x'
            for verb in (
                "%x",
                "%X",
                "% x",
                "% #x",
                "%#X",
                "%+q",
                "%[1]s%[1]s%[1]s%[1]s%[1]s",
                "%[1]q%[1]q%[1]q%[1]q%[1]q",
                "%[1]v%[1]v%[1]v%[1]v%[1]v",
                "%[1]z%[1]z%[1]z%[1]z%[1]z",
            )
        ),
        *("js $x $y $y $y $y", "html $x $y $y", "urlquery $x", "print $x $x $x $x $x", "println $x $x $x $x $x"),
    ],
)
def test_text_is_refused_before_it_is_made(call: str) -> None:
    made = '{{$x := "😀"}}{{$y := "<\u200b"}}{{range 18}}{{$x = print $x $x}}{{$y = print $y $y}}{{end}}'
    template = Template.parse("t", made + "{{" + call + "}}")
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError, match="the text is longer than the limit of 1048576 characters"):
            template.execute(None)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("verb", ["%x", "%q", "%+q", "% #x"])
def test_a_text_that_is_doubled_again_and_again_is_refused_early(verb: str) -> None:
    template = Template.parse("t", '{{$x := "😀"}}{{range 22}}{{$x = print $x $x}}{{end}}{{printf "' + verb + '" $x}}')
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError, match="error calling print: the text is longer than the limit of 1048576 characters"):
            template.execute(None)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("literal", "message"),
    [
        ("0x" + "f" * 1_000_000, "a number may have no more than 1000 characters"),
        ("1" * 1_000_000 + "e", "a number may have no more than 1000 characters"),
        ("1" * 5_000, "a number may have no more than 1000 characters"),
        ("1." + "0" * 1_000_000, "a number may have no more than 1000 characters"),
        ("1" * 1_000_000 + "+1i", "a number may have no more than 1000 characters"),
        ("'" + "a" * 1_000_000 + "'", "a character constant may have no more than 1000 characters"),
        ('"' + "a" * 1_048_576 + '"', "a text may have no more than 1048576 characters"),
        ("`" + "a" * 1_048_576 + "`", "a text may have no more than 1048576 characters"),
        ('"' + "a" * 1_000_000, "unterminated quoted string"),
        ('"' + "\\" * 1_000_001, "unterminated quoted string"),
        # As Go 1.26 has it.
        ("1" * 900, 'illegal number syntax: "' + "1" * 900 + '"'),
        ("0x" + "f" * 900, 'illegal number syntax: "0x' + "f" * 900 + '"'),
    ],
    ids=lambda value: value[:12],
)
def test_a_bad_literal_is_refused_with_its_line_however_long_it_is(literal: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        Template.parse("t", "\n{{" + literal + "}}")
    assert (caught.value.message, caught.value.line) == (f"template: t:2: {message}", 2)


@pytest.mark.parametrize(("literal", "value"), [("a" * 500_000, "a" * 500_000), (r"\x41\u0042\103\t" * 20_000, "ABC\t" * 20_000)])
def test_a_long_text_is_read_in_linear_time(literal: str, value: str) -> None:
    start = time.process_time()
    assert Template.parse("t", '{{"' + literal + '"}}').execute(None) == value
    assert time.process_time() - start < 5


def test_numbers_as_long_as_they_may_be_are_read_in_linear_time() -> None:
    start = time.process_time()
    for number in ("0x" + "f" * 990 + ".", "1" * 990 + "e", "0x" + "f" * 990 + "p", "1_" * 495 + "_") * 200:
        with pytest.raises(TemplateError):
            Template.parse("t", "{{" + number + "}}")
    assert time.process_time() - start < 5


def test_many_branches_in_a_row_are_no_nesting() -> None:
    text = "{{if eq . 0}}0" + "".join(f"{{{{else if eq . {number}}}}}{number}" for number in range(1, 2_000)) + "{{else}}more{{end}}"
    template = Template.parse("t", text)
    assert [template.execute(number) for number in (0, 1, 1_999, 2_000)] == ["0", "1", "1999", "more"]


def test_wherever_the_steps_of_a_long_row_of_branches_end_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    template = Template.parse("t", "{{range 9}}{{if 0}}" + "{{else if 0}}" * 700 + "{{end}}{{end}}")
    for steps in range(20):
        monkeypatch.setattr(limits, "STEPS", steps)
        with pytest.raises(
            TemplateError, match=rf"\Atemplate: t:1:\d+: executing \"t\" at <.{{1,60}}>: exceeded the limit of {steps} steps\Z"
        ):
            template.execute(None)


def test_the_row_of_branches_that_an_error_names_is_cut_short() -> None:
    text = '{{define "r"}}{{if 1}}{{template "r"}}' + "{{else if 0}}" * 700 + '{{end}}{{end}}{{template "r"}}'
    assert "exceeded maximum template depth (150)" in outcome(text, None)
    assert len(outcome("{{printf `%s` nil | printf" + " 1" * 5_000 + "}}", None)) < 1_200


def test_a_value_that_an_error_names_is_cut_short() -> None:
    message = outcome('{{range printf "%99999d" 1}}{{end}}', None)
    assert ": range can't iterate over      " in message
    assert message.endswith("   ...")
    assert len(message) < 1_200


def test_rendering_ends_at_its_deadline() -> None:
    template = Template.parse("t", "{{range 100}}x{{end}}")
    assert template.execute(None, deadline=time.monotonic() + 60) == "x" * 100
    with pytest.raises(TemplateError, match=r"\Atemplate: t:1:\d+: executing \"t\" at <.*>: the time to render it in is over\Z"):
        template.execute(None, deadline=time.monotonic() - 1)


def test_parsing_ends_at_its_deadline() -> None:
    text = "{{1}}\n" * 1_000
    Template.parse("t", text, deadline=time.monotonic() + 60)
    with pytest.raises(TemplateError, match=r"\Atemplate: t:250: the time to parse it in is over\Z"):
        Template.parse("t", text, deadline=time.monotonic() - 1)


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
