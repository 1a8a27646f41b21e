"""``fleet upgrade`` and ``fleet explain``: what they print, and with which exit code."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Run
from fleet.upgrades.managers import NAME, NEW, NEWEST, OLD, PLANE, SPACE, WORKERS, Managed


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kubeconfig of a management cluster that runs in a thread."""
    path, up, loop = tmp_path_factory.mktemp("upgrade") / "kubeconfig", threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with Managed() as managed:
            Path(path).write_text(managed.server.kubeconfig())
            up.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert up.wait(60)
    yield str(path)
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    loop.close()


def test_a_dry_run_prints_the_patches_in_order_and_the_prerequisites(run: Run, kubeconfig: str) -> None:
    found = run("fleet", "upgrade", NAME, "-n", SPACE, "--to", NEWEST, "--dry-run", "--kubeconfig", kubeconfig)
    assert found.code == 0, found.err
    patches = [line.strip().split(" patch ")[1].split(" --type")[0] for line in found.out.splitlines() if "kubectl" in line]
    assert patches == [f"kubeadmcontrolplane {PLANE}", f"kubeadmcontrolplane {PLANE}", f"machinedeployment {WORKERS}"]
    assert found.out.startswith(
        f"KubeadmControlPlane {PLANE} from {OLD} to {NEW}, then KubeadmControlPlane {PLANE} from {NEW} to {NEWEST}, then"
    )
    assert f"preflight of {NEW}: " in found.out


def test_json_is_one_event_a_line(run: Run, kubeconfig: str) -> None:
    found = run("fleet", "upgrade", NAME, "-n", SPACE, "--to", OLD, "--yes", "-o", "json", "--kubeconfig", kubeconfig)
    assert found.code == 0, found.err
    (event,) = [json.loads(line) for line in found.out.splitlines()]
    assert (event["event"], event["version"]) == ("done", OLD)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", NEW], "which cluster is to be upgraded is missing"),
        ([NAME, "--to", "soon"], "--to: could not parse"),
        ([NAME, "--to", NEW, "--workers-only", "--control-plane-only"], "exclude each other"),
        ([NAME, "--to", NEW], "nobody can be asked here: say --yes"),
        ([NAME, "--to", NEW, "-o", "json"], "nobody can be asked here: say --yes"),
        ([NAME, "--to", NEW, "--dry-run"], f"say --namespace {SPACE}"),
        ([NAME, "-n", SPACE, "--to", "v1.33.1", "--yes"], "cannot go back to v1.33.1"),
    ],
)
def test_what_is_wrong_gets_a_sentence_and_an_exit_code(run: Run, kubeconfig: str, arguments: list[str], said: str) -> None:
    found = run("fleet", "upgrade", *arguments, "--kubeconfig", kubeconfig)
    assert found.code != 0
    assert said in found.err


@pytest.mark.parametrize("words", [[NAME], ["cluster", NAME], [f"cluster/{NAME}"]], ids=" ".join)
def test_what_is_well_is_explained_in_a_sentence(run: Run, kubeconfig: str, words: list[str]) -> None:
    found = run("fleet", "explain", *words, "--kubeconfig", kubeconfig)
    assert (found.code, found.out) == (0, f"The Cluster {NAME} is well: 3 control plane machines at {OLD}, 2 workers at {OLD}.\n"), (
        found.err
    )


def test_an_explanation_is_had_as_json(run: Run, kubeconfig: str) -> None:
    found = run("fleet", "explain", f"kcp/{PLANE}", "-n", SPACE, "-o", "json", "--kubeconfig", kubeconfig)
    told = json.loads(found.out)
    assert (told["well"], told["chain"]) == (True, [{"kind": "KubeadmControlPlane", "namespace": SPACE, "name": PLANE}])


@pytest.mark.parametrize(
    ("words", "said"), [([], "what is to be explained is missing"), (["node/a"], "is not a kind"), (["md/a"], f"there is {WORKERS}")]
)
def test_what_cannot_be_explained_says_why(run: Run, kubeconfig: str, words: list[str], said: str) -> None:
    found = run("fleet", "explain", *words, "--kubeconfig", kubeconfig)
    assert found.code != 0
    assert said in found.err


def test_who_is_not_known_is_told_why_and_a_stream_ends_with_that(run: Run, kubeconfig: str, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.conf"
    lines = Path(kubeconfig).read_text().splitlines()
    known = next(line for line in lines if "client-certificate-data" in line)
    without = [line for line in lines if "client-key-data" not in line]
    stranger.write_text("\n".join(without).replace(known.strip(), "token: over"))
    found = run("fleet", "upgrade", NAME, "-n", SPACE, "--to", NEW, "--yes", "-o", "json", "--kubeconfig", str(stranger))
    assert found.code == 1
    assert found.err.startswith("error: the API server does not know who is asking (Unauthorized): the certificate or the token of the")
    assert [json.loads(line)["event"] for line in found.out.splitlines()] == ["refused"]
