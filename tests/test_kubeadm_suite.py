"""How the outcome of kubeadm's own suite is read and judged."""

from __future__ import annotations

import kubeadm_suite
import pytest
from kubeadm_suite import Comparison, Outcome

pytestmark = pytest.mark.upstream_table

OUTPUT = """\
=== RUN   TestCmdCompletion
=== RUN   TestCmdCompletion/shell_not_expected
=== RUN   TestCmdCompletion/unsupported_shell_type
    completion_test.go:36: failed CmdCompletion
--- FAIL: TestCmdCompletion (0.25s)
    --- PASS: TestCmdCompletion/shell_not_expected (0.16s)
    --- FAIL: TestCmdCompletion/unsupported_shell_type (0.09s)
=== RUN   TestCmdTokenGenerate
--- PASS: TestCmdTokenGenerate (0.06s)
=== RUN   TestCmdInitKubernetesVersion
panic: could not run 'kubeadm version -o=short'
"""


def test_each_part_of_a_test_counts_with_what_it_printed() -> None:
    assert kubeadm_suite.outcomes(OUTPUT) == {
        "TestCmdCompletion/shell_not_expected": Outcome(True, ""),
        "TestCmdCompletion/unsupported_shell_type": Outcome(False, "    completion_test.go:36: failed CmdCompletion"),
        "TestCmdTokenGenerate": Outcome(True, ""),
        "TestCmdInitKubernetesVersion": Outcome(False, "panic: could not run 'kubeadm version -o=short'"),
    }


def test_only_what_passes_with_the_real_kubeadm_must_pass_with_ours() -> None:
    good, bad = Outcome(True, ""), Outcome(False, "")
    both = Comparison(real={"a": good, "b": good, "c": bad, "d": bad, "e": good}, ours={"a": good, "b": bad, "c": good, "d": bad})
    assert [both.word(test) for test in "abcdef"] == ["pass", "FAIL", "ours only", "both fail", "FAIL", "-"]
    assert both.failures() == ["b", "e"]
