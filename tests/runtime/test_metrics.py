"""Metrics under the names that dashboards of controller-runtime look for, and the addresses and probes beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runtime.manual_clock import ManualClock

from slipway.api.machinery.errors import OperatorError
from slipway.runtime.healthz import Address, parse_address, report
from slipway.runtime.metrics import Metrics
from slipway.runtime.queue import Queue

# Names and labels that a manager built with controller-runtime v0.24.1 exposes for one controller with one queue and one API server.
UPSTREAM = {
    "controller_runtime_active_workers": {"controller"},
    "controller_runtime_max_concurrent_reconciles": {"controller"},
    "controller_runtime_reconcile_errors_total": {"controller"},
    "controller_runtime_reconcile_panics_total": {"controller"},
    "controller_runtime_reconcile_timeouts_total": {"controller"},
    "controller_runtime_reconcile_time_seconds_bucket": {"controller", "le"},
    "controller_runtime_reconcile_time_seconds_count": {"controller"},
    "controller_runtime_reconcile_time_seconds_sum": {"controller"},
    "controller_runtime_reconcile_total": {"controller", "result"},
    "leader_election_master_status": {"name"},
    "rest_client_requests_total": {"code", "host", "method"},
    "workqueue_adds_total": {"controller", "name"},
    "workqueue_depth": {"controller", "name"},
    "workqueue_longest_running_processor_seconds": {"controller", "name"},
    "workqueue_queue_duration_seconds_bucket": {"controller", "le", "name"},
    "workqueue_retries_total": {"controller", "name"},
    "workqueue_unfinished_work_seconds": {"controller", "name"},
    "workqueue_work_duration_seconds_bucket": {"controller", "le", "name"},
}


def exposed(metrics: Metrics) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in metrics.render().decode().splitlines():
        if match := re.match(r"([a-z_]+)(\{.*\})? ", line):
            found[match[1]] = set(re.findall(r'(\w+)="', match[2] or ""))
    return found


def test_the_names_and_labels_are_those_of_controller_runtime() -> None:
    metrics = Metrics()
    queue = metrics.queue("kubeadmconfig")
    queue.added()
    queue.retried()
    metrics.follow("kubeadmconfig", Queue(clock=ManualClock()), lambda: 0.0)
    for metric in (metrics.reconcile_errors, metrics.reconcile_panics, metrics.reconcile_timeouts):
        metric.labels("kubeadmconfig").inc()
    metrics.reconciles.labels("kubeadmconfig", "success").inc()
    metrics.reconcile_time.labels("kubeadmconfig").observe(0.1)
    metrics.workers.labels("kubeadmconfig").set(1)
    metrics.leader.labels("manager").set(1)
    metrics.request("10.0.0.1:6443")("list", 200, 0.1)
    found = exposed(metrics)
    assert {name: found.get(name) for name in UPSTREAM} == UPSTREAM
    assert not [name for name in found if name.endswith("_created")]


def test_requests_are_counted_by_method_and_timed_by_verb() -> None:
    metrics = Metrics()
    seen = metrics.request("h:1")
    for verb, code in (("get", 200), ("list", 200), ("watch", 0), ("patch", 409)):
        seen(verb, code, 0.01)
    value = metrics.registry.get_sample_value
    assert value("rest_client_requests_total", {"code": "200", "method": "GET", "host": "h:1"}) == 2
    assert value("rest_client_requests_total", {"code": "<error>", "method": "GET", "host": "h:1"}) == 1
    assert value("rest_client_requests_total", {"code": "409", "method": "PATCH", "host": "h:1"}) == 1
    assert value("rest_client_request_duration_seconds_count", {"verb": "LIST", "host": "h:1"}) == 1


@pytest.mark.asyncio
async def test_how_long_keys_are_in_hand_is_told_when_it_is_asked_for() -> None:
    metrics, clock = Metrics(), ManualClock()
    busy, idle = (Queue[str](clock=clock) for _ in range(2))
    metrics.follow("busy", busy, clock.time)
    metrics.follow("idle", idle, clock.time)

    def value(metric: str, name: str = "busy") -> float | None:
        return metrics.registry.get_sample_value(metric, {"name": name, "controller": name})

    for key in "abc":
        busy.add(key)
    assert await busy.get() == "a"
    clock.advance(5)
    assert await busy.get() == "b"
    clock.advance(1)
    assert (value("workqueue_unfinished_work_seconds"), value("workqueue_longest_running_processor_seconds")) == (7.0, 6.0)
    active = metrics.registry.get_sample_value("controller_runtime_active_workers", {"controller": "busy"})
    assert (value("workqueue_depth"), active) == (1, 2)
    assert value("workqueue_longest_running_processor_seconds", "idle") == 0.0


def test_the_process_is_measured_too() -> None:
    rss = int(Path("/proc/self/statm").read_text().split()[1])
    assert rss
    assert "process_resident_memory_bytes" in exposed(Metrics())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", Address("", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:9440", Address("::1", 9440)),
        ("localhost:9440", Address("localhost", 9440)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses_to_listen_on(text: str, expected: Address | None) -> None:
    assert parse_address(text, "--health-addr") == expected


@pytest.mark.parametrize("text", ["8080", "localhost", ":x", ":70000", "::1:80", "a:b:80", ":-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(OperatorError, match=r"--health-addr .* is not an address to listen on: write host:port"):
        parse_address(text, "--health-addr")


def test_a_probe_says_ok_and_each_check_when_one_fails_or_it_is_asked_for() -> None:
    well, ill = [("ping", "")], [("ping", ""), ("informer x", "forbidden")]
    assert report("readyz", well, verbose=False) == (200, "ok")
    assert report("readyz", well, verbose=True) == (200, "[+]ping ok\nreadyz check passed\n")
    assert report("readyz", ill, verbose=False) == (500, "[+]ping ok\n[-]informer x failed: forbidden\nreadyz check failed\n")
