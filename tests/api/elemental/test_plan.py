"""Plans, and what a Secret says of its own."""

from __future__ import annotations

import gzip
import hashlib
import json
from base64 import b64encode

import pytest

from slipway.api.elemental.plan import (
    APPLIED_CHECKSUM,
    APPLIED_OUTPUT,
    EMPTY,
    FAILED_CHECKSUM,
    FAILED_OUTPUT,
    FAILURE_COUNT,
    MAX_FAILURES,
    PLAN,
    PLAN_STATE,
    HTTPGet,
    Instruction,
    PeriodicInstruction,
    Plan,
    PlanError,
    PlanFile,
    Probe,
    checksum,
    decode,
    encode,
    pack_output,
    plain,
    read,
    unpack_output,
    wire,
    written,
)

NEW, OLD = b'{"instructions":[{"name":"a"}]}', b'{"instructions":[{"name":"b"}]}'
NEW_SUM, OLD_SUM = hashlib.sha256(NEW).hexdigest(), hashlib.sha256(OLD).hexdigest()

WHOLE = Plan(
    files=(PlanFile("/a", b"\x00\xff", "0644", 1, 2), PlanFile("/b", directory=True, permissions="0755"), PlanFile("/c", action="delete")),
    instructions=(Instruction("one", "sh", ("-c", "true"), ("A=b",), "image"), Instruction("two", save_output=False)),
    periodic_instructions=(PeriodicInstruction("again", "date", period_seconds=5),),
    probes={"api": Probe(HTTPGet("https://127.0.0.1:6443/readyz", insecure=True, ca_cert="/ca"), 1, 2, 3, 4)},
)
# As system-agent writes it: the names of its fields, content in base64, empty fields left out.
WHOLE_JSON = {
    "files": [
        {"path": "/a", "content": "AP8=", "permissions": "0644", "uid": 1, "gid": 2},
        {"path": "/b", "permissions": "0755", "directory": True},
        {"path": "/c", "permissions": "0600", "action": "delete"},
    ],
    "instructions": [
        {"name": "one", "command": "sh", "args": ["-c", "true"], "env": ["A=b"], "image": "image", "saveOutput": True},
        {"name": "two"},
    ],
    "periodicInstructions": [{"name": "again", "command": "date", "periodSeconds": 5}],
    "probes": {
        "api": {
            "httpGet": {"url": "https://127.0.0.1:6443/readyz", "insecure": True, "caCert": "/ca"},
            "initialDelaySeconds": 1,
            "timeoutSeconds": 2,
            "successThreshold": 3,
            "failureThreshold": 4,
        }
    },
}


def test_the_empty_plan_has_the_checksum_that_every_registered_host_applies_first() -> None:
    assert checksum(EMPTY) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert encode(Plan()) == EMPTY


def test_a_plan_is_written_as_system_agent_reads_it() -> None:
    assert json.loads(encode(WHOLE)) == WHOLE_JSON


def test_a_plan_comes_back_as_it_was() -> None:
    assert decode(encode(WHOLE)) == WHOLE


def test_equal_plans_are_equal_bytes() -> None:
    probes = {name: Probe(HTTPGet(name)) for name in "ab"}
    assert encode(Plan(probes=probes)) == encode(Plan(probes=dict(reversed(probes.items()))))


def test_null_and_unknown_fields_are_passed_over() -> None:
    assert decode(b'{"files":null,"later":1,"instructions":[{"name":"a","args":null,"more":{}}]}') == Plan(
        instructions=(Instruction("a", save_output=False),)
    )


def test_permissions_that_are_not_given_are_those_of_system_agent() -> None:
    plan = decode(b'{"files":[{"path":"/a"},{"path":"/b","directory":true}]}')
    assert [file.permissions for file in plan.files] == ["0600", "0755"]


@pytest.mark.parametrize("seconds", [b"0", b"-1"])
def test_a_period_that_is_none_is_ten_minutes(seconds: bytes) -> None:
    plan = decode(b'{"periodicInstructions":[{"name":"a","periodSeconds":' + seconds + b"}]}")
    assert plan.periodic_instructions[0].period_seconds == 600


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "the plan is not JSON"),
        (b"{", "the plan is not JSON"),
        (b"\xff", "the plan is not JSON"),
        (b"[" * 100_000, "the plan is not JSON"),
        (b"[]", "the plan is to be a JSON object, and is a list"),
        (b"null", "the plan is to be a JSON object, and is null"),
        (b'{"files":1}', r"the plan cannot be read: .*\$.files"),
        (b'{"files":[{"content":"YQ=="}]}', r"files\[0\] has no path"),
        (b'{"files":[{"path":"/a"},{"path":"/b","content":"?"}]}', r"the content of /b \(files\[1\]\) is not base64"),
        (b'{"files":[{"path":"/a","permissions":"rw"}]}', 'the permissions of /a .* are "rw", not octal digits'),
        (b'{"files":[{"path":"/a","permissions":"0888"}]}', '"0888", not octal digits'),
        (b'{"instructions":[{"args":[1]}]}', r"instructions\[0\].args\[0\]"),
        (b'{"probes":{"a":{"timeoutSeconds":-1}}}', "the plan cannot be read"),
    ],
)
def test_what_is_no_plan_is_refused_with_a_sentence(raw: bytes, sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        decode(raw)


@pytest.mark.parametrize(
    ("values", "outcome", "failures"),
    [
        ({}, "none", 0),
        ({PLAN: b""}, "none", 0),
        ({PLAN: NEW}, "pending", 0),
        ({PLAN: NEW, PLAN_STATE: "pending"}, "pending", 0),
        ({PLAN: NEW, PLAN_STATE: "in-progress"}, "in-progress", 0),
        ({PLAN: NEW, APPLIED_CHECKSUM: NEW_SUM}, "applied", 0),
        ({PLAN: EMPTY, APPLIED_CHECKSUM: checksum(EMPTY)}, "applied", 0),
        # What an earlier plan left behind says nothing of this one.
        ({PLAN: NEW, APPLIED_CHECKSUM: OLD_SUM, PLAN_STATE: "succeeded"}, "pending", 0),
        ({PLAN: NEW, FAILED_CHECKSUM: OLD_SUM, FAILURE_COUNT: "9", PLAN_STATE: "failed"}, "pending", 0),
        ({PLAN: NEW, APPLIED_CHECKSUM: OLD_SUM, PLAN_STATE: "in-progress"}, "in-progress", 0),
        # An old success does not hide a new failure, nor the other way round.
        ({PLAN: NEW, APPLIED_CHECKSUM: OLD_SUM, FAILED_CHECKSUM: NEW_SUM, FAILURE_COUNT: "1"}, "failed", 1),
        ({PLAN: NEW, APPLIED_CHECKSUM: NEW_SUM, FAILED_CHECKSUM: OLD_SUM, FAILURE_COUNT: "3"}, "applied", 0),
        # A success blanks what a failure wrote, so a failure beside it is the newer one.
        ({PLAN: NEW, APPLIED_CHECKSUM: NEW_SUM, FAILED_CHECKSUM: NEW_SUM, FAILURE_COUNT: "1"}, "failed", 1),
        # As long as an attempt is left, the plan is not failed.
        ({PLAN: NEW, FAILED_CHECKSUM: NEW_SUM, FAILURE_COUNT: "2", MAX_FAILURES: "3"}, "in-progress", 2),
        ({PLAN: NEW, FAILED_CHECKSUM: NEW_SUM, FAILURE_COUNT: "3", MAX_FAILURES: "3"}, "failed", 3),
        ({PLAN: NEW, FAILED_CHECKSUM: NEW_SUM, FAILURE_COUNT: "1", MAX_FAILURES: "3", PLAN_STATE: "failed"}, "failed", 1),
        ({PLAN: NEW, FAILED_CHECKSUM: NEW_SUM, FAILURE_COUNT: "many", MAX_FAILURES: "-1"}, "failed", 0),
    ],
)
def test_the_outcome_is_decided_by_the_checksum(values: dict[str, bytes | str], outcome: str, failures: int) -> None:
    state = read(wire(values))
    assert (state.outcome, state.failures) == (outcome, failures)
    assert state.in_flight == (outcome in ("pending", "in-progress"))


def test_a_plan_that_is_no_json_still_has_an_outcome() -> None:
    # The host reports that it cannot read it; the checksum is of bytes, whatever they are.
    assert read(wire({PLAN: b"{", FAILED_CHECKSUM: checksum(b"{"), FAILURE_COUNT: "1"})).outcome == "failed"


def test_a_value_that_is_no_base64_is_as_good_as_none() -> None:
    assert read({PLAN: "?"}).outcome == "none"
    assert read(wire({PLAN: NEW}) | {APPLIED_CHECKSUM: "?"}).outcome == "pending"


def test_the_output_is_that_of_the_outcome() -> None:
    values = {PLAN: NEW, APPLIED_OUTPUT: pack_output({"a": b"good"}), FAILED_OUTPUT: pack_output({"a": b"bad"})}
    assert read(wire(values | {APPLIED_CHECKSUM: NEW_SUM})).output == {"a": "good"}
    assert read(wire(values | {FAILED_CHECKSUM: NEW_SUM})).output == {"a": "bad"}
    assert read(wire(values)).output == {}


def test_a_new_plan_leaves_nothing_of_the_last_ones_outcome() -> None:
    before = wire({PLAN: OLD, APPLIED_CHECKSUM: NEW_SUM, FAILED_CHECKSUM: NEW_SUM, FAILURE_COUNT: "3", PLAN_STATE: "failed"})
    data = before | written(decode(NEW), "clean", 5)
    state = read(data)
    assert (state.outcome, state.failures, state.type) == ("pending", 0, "clean")
    assert plain(data)[PLAN_STATE] == b"pending"
    assert plain(data)[MAX_FAILURES] == b"5"


def test_bytes_are_written_as_they_are() -> None:
    assert plain(written(b" {} ", "empty", 1))[PLAN] == b" {} "


def test_output_is_packed_as_system_agent_does_it() -> None:
    packed = pack_output({"one": b"all well\n"})
    assert json.loads(gzip.decompress(packed)) == {"one": b64encode(b"all well\n").decode()}
    assert unpack_output(packed) == {"one": "all well\n"}


def test_output_that_is_text_is_read_as_it_is() -> None:
    assert unpack_output(gzip.compress(b'{"a":"not base64!","b":"////"}')) == {"a": "not base64!", "b": "////"}


@pytest.mark.parametrize(
    ("packed", "sentence"),
    [
        (b"plain", "cannot be read"),
        (gzip.compress(b"[]", mtime=0), "cannot be read"),
        (gzip.compress(b"{", mtime=0), "cannot be read"),
        (gzip.compress(b" " * (17 * 2**20), 1), "more than 16 MiB"),
    ],
)
def test_output_that_cannot_be_read_is_said_in_its_place(packed: bytes, sentence: str) -> None:
    assert sentence in unpack_output(packed)["output"]
