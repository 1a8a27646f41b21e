"""``fleet status``, ``hosts``, ``timeline``: what they print of a management cluster, and what they say where there is none."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Run
from fleet.overview.fleets import SPACE, in_a_rollout
from fleet.overview.management import fill

from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a server, in a thread, that has a fleet in the middle of a rollout."""
    path, up, loop = tmp_path_factory.mktemp("fleet") / "kubeconfig", threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
            await fill(client, in_a_rollout())
            path.write_text(server.kubeconfig())
            up.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert up.wait(60)
    yield path
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    loop.close()


def test_status_without_a_namespace_is_of_all_of_them(run: Run, kubeconfig: Path) -> None:
    outcome = run("fleet", "status", "--kubeconfig", str(kubeconfig))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("fleet/prod  available")
    assert "v1.34.10 → v1.35.4" in outcome.out
    assert "\x1b" not in outcome.out


def test_the_namespace_of_the_context_is_the_default_and_all_can_be_asked_for(run: Run, kubeconfig: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "kubeconfig"
    elsewhere.write_text(kubeconfig.read_text().replace("    user: admin\n", "    user: admin\n    namespace: elsewhere\n", 1))
    assert (
        run("fleet", "status", "--kubeconfig", str(elsewhere)).out
        == "There are no clusters in the namespace elsewhere: -A looks in all of them.\n"
    )
    assert run("fleet", "status", "-A", "--kubeconfig", str(elsewhere)).out.startswith("fleet/prod")
    assert run("fleet", "status", "-n", SPACE, "--kubeconfig", str(elsewhere)).out.startswith("fleet/prod")


def test_status_of_one_cluster_has_every_machine_and_is_json_for_programs(run: Run, kubeconfig: Path) -> None:
    outcome = run("fleet", "status", "prod", "--kubeconfig", str(kubeconfig))
    assert all(name in outcome.out for name in ("prod-cp-0", "prod-cp-a", "prod-cp-b", "prod-w-3", "prod-w-4"))
    told = json.loads(run("fleet", "status", "prod", "-o", "json", "--kubeconfig", str(kubeconfig)).out)
    assert [each["name"] for each in told["clusters"]] == ["prod"]
    assert told["clusters"][0]["rollout"]["done"] == 1


def test_hosts_are_a_table_that_can_be_filtered(run: Run, kubeconfig: Path) -> None:
    outcome = run("fleet", "hosts", "--kubeconfig", str(kubeconfig))
    assert outcome.out.splitlines()[0].split()[:4] == ["NAMESPACE", "HOST", "POOL", "STATE"]
    assert len(outcome.out.splitlines()) == 7
    told = json.loads(run("fleet", "hosts", "--state", "Available", "-l", "rack=3", "-o", "json", "--kubeconfig", str(kubeconfig)).out)
    assert [each["name"] for each in told["hosts"]] == ["host-5"]
    assert (
        run("fleet", "hosts", "-l", "rack=4", "--kubeconfig", str(kubeconfig)).out
        == "No host in any namespace is like that; there are 6.\n"
    )


def test_timeline_is_bars_json_or_a_page(run: Run, kubeconfig: Path, tmp_path: Path) -> None:
    assert "host-2" in run("fleet", "timeline", "prod", "--kubeconfig", str(kubeconfig)).out
    told = json.loads(run("fleet", "timeline", "-o", "json", "--since", "1h", "--kubeconfig", str(kubeconfig)).out)
    assert [each["name"] for each in told["rows"]] == [f"host-{number}" for number in range(6)]
    assert run("fleet", "timeline", "-o", "html", "--kubeconfig", str(kubeconfig)).out.startswith("<!doctype html>")
    report = tmp_path / "report.html"
    assert run("fleet", "timeline", "--report", str(report), "--kubeconfig", str(kubeconfig)).out == f"The picture is in {report}\n"
    assert "<svg" in report.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["status", "other"], 'there is no Cluster "other" in any namespace: there are fleet/prod'),
        (["status", "-A", "-n", "x"], "--all-namespaces and --namespace exclude each other"),
        (["status", "-o", "xml"], '"xml" is not a value of --output: use text or json'),
        (["status", "--context", "x"], 'has no "x" among its contexts'),
        (["hosts", "--state", "lost"], '"lost" is no state of a host: use one of Available'),
        (["hosts", "--pool", "p"], 'there is no pool "p": there are pool'),
        (["timeline", "--report", "/nowhere/x.html"], "the picture cannot be written to /nowhere/x.html: No such file or directory"),
        (["watch", "other"], 'there is no Cluster "other" in any namespace'),
    ],
)
def test_a_bad_question_gets_a_sentence(run: Run, kubeconfig: Path, arguments: list[str], sentence: str) -> None:
    outcome = run("fleet", *arguments, "--kubeconfig", str(kubeconfig))
    assert outcome.code == 1
    assert sentence in outcome.err


@pytest.mark.parametrize("command", ["status", "hosts", "timeline", "watch"])
def test_a_server_that_does_not_answer_gets_a_sentence(run: Run, kubeconfig: Path, tmp_path: Path, command: str) -> None:
    gone = tmp_path / "kubeconfig"
    gone.write_text(re.sub(r"https://127\.0\.0\.1:\d+", "https://127.0.0.1:1", kubeconfig.read_text()))
    outcome = run("fleet", command, "--kubeconfig", str(gone))
    assert (outcome.code, outcome.out) == (1, "")
    assert "127.0.0.1:1" in outcome.err
