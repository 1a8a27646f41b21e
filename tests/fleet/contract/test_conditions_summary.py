"""The summary of conditions; the rows are those of Cluster API's own tests (util/conditions 1.14.2: summary and merge strategies)."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import Reasons, summary

_ALL = ("A", "B", "!C")
_ISSUES, _UNKNOWNS, _INFO = Reasons()


def _c(condition_type: str, status: str, message: str = "", reason: str = "") -> dict[str, Any]:
    return {"type": condition_type, "status": status, "reason": reason or f"Reason-{condition_type}", "message": message}


@pytest.mark.parametrize(
    ("given", "of", "options", "expected"),
    [
        pytest.param(
            [_c("B", "True", "Message-B"), _c("A", "True", "Message-A"), _c("!C", "True", "Message-!C")],
            _ALL, {}, ("False", _ISSUES, "* !C: Message-!C"), id="one issue",
        ),
        pytest.param(
            [_c("B", "True"), _c("A", "True"), _c("!C", "True")],
            _ALL, {}, ("False", _ISSUES, "* !C: Reason-!C"), id="one issue without message",
        ),
        pytest.param(
            [_c("B", "False", "Message-B"), _c("A", "True", "Message-A"), _c("!C", "True", "Message-!C")],
            _ALL, {}, ("False", _ISSUES, "* B: Message-B\n* !C: Message-!C"), id="more than one issue",
        ),
        pytest.param(
            [
                _c("B", "False", "Message-B"), _c("A", "True", "Message-A"), _c("!C", "True", "* Message-!C1\n* Message-!C2"),
                _c("D", "False", "Message-D\n* More message-D"),
            ],
            (*_ALL, "D"), {},
            ("False", _ISSUES, "* B: Message-B\n* !C:\n  * Message-!C1\n  * Message-!C2\n* D:\n  * Message-D\n    * More message-D"),
            id="more than one issue, some with multiline messages",
        ),
        pytest.param(
            [_c("B", "False", "Message-B"), _c("A", "Unknown", "Message-A"), _c("!C", "True", "Message-!C")],
            _ALL, {}, ("False", _ISSUES, "* A: Message-A\n* B: Message-B\n* !C: Message-!C"), id="more than one issue and one unknown",
        ),
        pytest.param(
            [_c("B", "True", "Message-B"), _c("A", "True", "Message-A"), _c("!C", "Unknown", "Message-!C")],
            _ALL, {}, ("Unknown", _UNKNOWNS, "* !C: Message-!C"), id="one unknown",
        ),
        pytest.param(
            [_c("B", "Unknown", "Message-B"), _c("A", "True", "Message-A"), _c("!C", "Unknown", "Message-!C")],
            _ALL, {}, ("Unknown", _UNKNOWNS, "* B: Message-B\n* !C: Message-!C"), id="more than one unknown",
        ),
        pytest.param(
            [_c("B", "True", "Message-B"), _c("A", "True"), _c("!C", "False", "Message-!C")],
            _ALL, {}, ("True", _INFO, "* B: Message-B\n* !C: Message-!C"), id="more than one info",
        ),
        pytest.param(
            [_c("A", "True", "Message-A")],
            _ALL, {}, ("Unknown", _UNKNOWNS, "* B: Condition not yet reported\n* !C: Condition not yet reported"),
            id="missing conditions are unknown",
        ),
        pytest.param(
            [_c("A", "True", "Message-A")],
            _ALL, {"ignored_if_missing": ("B",)}, ("Unknown", _UNKNOWNS, "* !C: Condition not yet reported"),
            id="missing conditions, one ignored",
        ),
        pytest.param(
            [_c("A", "True", "Message-A")],
            _ALL, {"ignored_if_missing": ("B", "!C")}, ("True", _INFO, "* A: Message-A"), id="missing conditions, all ignored",
        ),
        pytest.param(
            [_c("B", "True", "Message-B"), _c("A", "True"), _c("!C", "Unknown", "Message-!C")],
            ("A", "B"), {}, ("True", _INFO, "* B: Message-B"), id="conditions out of scope are ignored",
        ),
        pytest.param(
            [
                _c("A", "True", "Message-A"), _c("B", "True", "* Message-B"), _c("C", "True", "* Message-C1\n* Message-C2"),
                _c("D", "True", "Message-D\n* More Message-D"), _c("E", "True", "* Message-E1\n  * More Message-E1\n* Message-E2"),
            ],
            ("A", "B", "C", "D", "E"), {},
            (
                "True", _INFO,
                "* A: Message-A\n* B:\n  * Message-B\n* C:\n  * Message-C1\n  * Message-C2\n* D:\n  * Message-D\n    * More Message-D\n"
                "* E:\n  * Message-E1\n    * More Message-E1\n  * Message-E2",
            ),
            id="multiline messages of info",
        ),
    ],
)  # fmt: skip
def test_summary(given: list[Any], of: tuple[str, ...], options: dict[str, Any], expected: tuple[str, str, str]) -> None:
    found = summary(given, "Available", of, negative=("!C",), **options)
    assert (found.type, found.status, found.reason, found.message) == ("Available", *expected)


@pytest.mark.parametrize(
    ("status", "negative", "expected"),
    [
        ("False", False, "False"),
        ("Unknown", False, "Unknown"),
        ("True", False, "True"),
        ("True", True, "False"),
        ("Unknown", True, "Unknown"),
        ("False", True, "True"),
    ],
)
def test_polarity(status: str, negative: bool, expected: str) -> None:
    """TestDefaultMergePriority."""
    assert summary([_c("foo", status)], "Ready", ["foo"], negative=["foo"] if negative else []).status == expected


@pytest.mark.parametrize(
    ("data", "certificates", "expected"),
    [
        ("True", "True", ("True", "Ready", "")),
        ("False", "True", ("False", "NotReady", "* DataSecretAvailable: Waiting for Cluster status.infrastructureReady to be true")),
        ("True", "", ("Unknown", "ReadyUnknown", "* CertificatesAvailable: Condition not yet reported")),
    ],
)
def test_ready_of_a_kubeadm_config(data: str, certificates: str, expected: tuple[str, str, str]) -> None:
    given = [_c("DataSecretAvailable", data, "" if data == "True" else "Waiting for Cluster status.infrastructureReady to be true")]
    if certificates:
        given.append(_c("CertificatesAvailable", certificates))
    found = summary(given, "Ready", ["DataSecretAvailable", "CertificatesAvailable"], Reasons("NotReady", "ReadyUnknown", "Ready"))
    assert (found.status, found.reason, found.message) == expected


@pytest.mark.parametrize(("of", "ignored"), [((), ()), (("Available",), ()), (("A",), ("A",))], ids=["none", "itself", "nothing in scope"])
def test_a_summary_of_nothing_is_an_error(of: tuple[str, ...], ignored: tuple[str, ...]) -> None:
    with pytest.raises(OperatorError, match="Available"):
        summary([], "Available", of, ignored_if_missing=ignored)
