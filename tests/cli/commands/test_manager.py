"""``manager``: its flags, what it prints, and what it does to an API server."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cli.conftest import Run
from support.ports import free_port

from slipway.embedded.server import EmbeddedServer


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--controllers=foo"], "--controllers takes bootstrap, machines, controlplane, inventory, baremetal, all, comma-separated"),
        (["--controllers="], "no controller is named"),
        (["--leader-elect", "--shards=0"], "0 for --shards is not a number from 1 to 64"),
        (["--shards=2"], "--shards=2 needs --leader-elect: managers agree by Leases on who works on which clusters"),
        (["--concurrency=0"], "0 for --concurrency is not a number from 1 to 1000"),
        (["--webhook-port=65536"], "65536 for --webhook-port is not a number from 0 to 65535"),
        (["--health-addr=9440"], '--health-addr "9440" is not an address to listen on'),
        (["--metrics-bind-address=:x"], '--metrics-bind-address ":x" is not an address to listen on'),
        (["--dashboard-bind-address=9444"], '--dashboard-bind-address "9444" is not an address to listen on'),
        (["--registration-bind-address=8443"], '--registration-bind-address "8443" is not an address to listen on'),
        (["--additional-sync-machine-labels=a,(b"], '"(b" for --additional-sync-machine-labels is not a regular expression: missing )'),
        (["--registry-secret=Platform"], '"Platform" for --registry-secret is not the name of a Secret'),
        (["--registry-secret="], '"" for --registry-secret is not the name of a Secret'),
        (["--registration-url=http://a"], '"http://a" for --registration-url is not a URL that hosts can call: write https://HOST[:PORT]'),
        (["--registration-url=https://a:b"], '"https://a:b" for --registration-url is not a URL that hosts can call'),
        (["--registration-api-server=a"], '"a" for --registration-api-server is not a URL that hosts can call'),
        (["--namespace=Not_One"], '"Not_One" for --namespace is not the name of a namespace'),
        (["--leader-elect-namespace=a/b"], '"a/b" for --leader-elect-namespace is not the name of a namespace'),
        (["--watch-filter=a b"], '"a b" for --watch-filter is not the value of a label'),
        (["--sync-period=10ms"], "10ms for --sync-period is too short: it is to be at least 1s"),
        (["--bootstrap-token-ttl=5s"], "a bootstrap token must live for at least 60 seconds"),
        (["--join-version=mine"], '"mine" is not a value of --join-version: use control-plane or machine'),
        (["--log-format=xml"], '"xml" is not a value of --log-format: use text or json'),
        (["--kubeconfig=/does/not/exist"], "cannot read the kubeconfig /does/not/exist: No such file or directory"),
        (["--unknown"], "unknown flag: --unknown"),
        (["extra"], 'unknown command "extra" for "slipway manager"'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("command", [["manager"], ["manager", "run"]], ids=" ".join)
def test_a_bad_flag_gets_a_sentence(run: Run, command: list[str], flags: list[str], sentence: str) -> None:
    outcome = run(*command, *flags)
    assert outcome.code == 1
    assert sentence.replace('"slipway manager"', f'"slipway {" ".join(command)}"') in outcome.err
    assert "Traceback" not in outcome.err


def test_without_a_cluster_it_says_how_to_name_one(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    outcome = run("manager")
    assert outcome.code == 1
    assert f"there is no cluster to talk to (there is no {tmp_path}/.kube/config): name its kubeconfig with --kubeconfig" in outcome.err


def test_the_files_of_kubeconfig_are_merged(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The context is in one file, and the cluster that it names in another one."""
    (tmp_path / "one").write_text("current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n")
    (tmp_path / "two").write_text("current-context: x\nclusters: [{name: b, cluster: {server: 'http://127.0.0.1:1'}}]\n")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing:{tmp_path}/one:{tmp_path}/two")
    outcome = run("manager", "install")
    assert outcome.code == 1
    assert "http://127.0.0.1:1" in outcome.err


def test_the_manifests_as_yaml_and_as_json_are_the_same(run: Run) -> None:
    documents = list(yaml.safe_load_all(run("manager", "manifests", "--controllers=bootstrap").out))
    listed = json.loads(run("manager", "manifests", "--controllers=bootstrap", "-o", "json").out)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == documents
    assert [document["kind"] for document in documents if document["kind"] != "CustomResourceDefinition"] == [
        "Namespace",
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Role",
        "RoleBinding",
        "Service",
        "Deployment",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]


def test_the_manifests_are_for_the_chosen_namespace_image_and_url(run: Run) -> None:
    inside = run("manager", "manifests", "--namespace=fleet", "--image=example.org/slipway:1", "--controllers=bootstrap")
    documents = list(yaml.safe_load_all(inside.out))
    deployment = next(document for document in documents if document["kind"] == "Deployment")
    assert deployment["metadata"]["namespace"] == "fleet"
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "example.org/slipway:1"
    outside = list(yaml.safe_load_all(run("manager", "manifests", "--webhook-url=https://192.0.2.1:9443").out))
    assert "Deployment" not in {document["kind"] for document in outside}
    crd = next(document for document in outside if document["kind"] == "CustomResourceDefinition")
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"] == {"url": "https://192.0.2.1:9443/convert"}
    assert "is not a URL" in run("manager", "manifests", "--webhook-url=http://x").err
    assert '"xml" is not a value of --output: use yaml or json' in run("manager", "manifests", "-o", "xml").err


def test_no_role_of_the_manifests_has_a_wildcard_but_for_the_kinds_of_providers(run: Run) -> None:
    wide: list[str] = []
    for document in yaml.safe_load_all(run("manager", "manifests").out):
        for rule in document.get("rules") or ():
            assert "*" not in [*rule["apiGroups"], *rule["verbs"]]
            wide += rule["apiGroups"] if "*" in rule["resources"] else []
    assert set(wide) == {"infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"}


def test_asking_for_help_costs_nothing(tmp_path: Path) -> None:
    """As with every command, what it is made of is imported when it runs."""
    program = "import sys; from slipway.cli.main import main; main(['manager', '--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert not {"aiohttp", "asyncio", "ssl", "slipway.runtime", "slipway.fleet"} & imported


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """An API server in a thread, and the path of its kubeconfig."""
    path, up, loop = tmp_path / "kubeconfig", threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with EmbeddedServer() as server:
            path.write_text(server.kubeconfig())
            up.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert up.wait(30)
    yield path
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    loop.close()


def test_an_installation_tells_what_it_does_and_can_be_repeated(run: Run, server: Path) -> None:
    first = run("manager", "install", "--kubeconfig", str(server))
    assert first.code == 0, first.err
    lines = first.out.splitlines()
    assert lines[0] == "[install] Namespace slipway-system created"
    assert lines[-1] == "[install] The manager starts in the cluster"
    assert {line.rpartition(" ")[2] for line in lines[:-1]} == {"created"}
    second = run("manager", "install", "--kubeconfig", str(server))
    assert [line for line in second.out.splitlines()[:-1] if not line.endswith(" unchanged")] == []


def test_a_server_that_is_away_is_an_error(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        '{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],'
        '"clusters":[{"name":"x","cluster":{"server":"https://127.0.0.1:1"}}]}'
    )
    outcome = run("manager", "install", "--kubeconfig", str(path))
    assert outcome.code == 1
    assert "127.0.0.1:1" in outcome.err


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


def _leads(metrics: int) -> bool:
    """Whether every lease is held: a manager that waits for them is ready as well."""
    told = [line for line in _get(metrics, "/metrics")[1].splitlines() if line.startswith("leader_election_master_status{")]
    return bool(told) and all(line.endswith(" 1.0") for line in told)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_manager_serves_until_it_is_told_to_stop(run: Run, server: Path, number: signal.Signals) -> None:
    assert run("manager", "install", "--kubeconfig", str(server), "--webhook-url=https://127.0.0.1:1").code == 0
    health, metrics, hooks = free_port(), free_port(), free_port()
    command = [sys.executable, "-m", "slipway", "manager", "--kubeconfig", str(server), f"--health-addr=127.0.0.1:{health}"]
    flags = [f"--metrics-bind-address=127.0.0.1:{metrics}", f"--webhook-port={hooks}", "--leader-elect"]
    process = subprocess.Popen([*command, *flags], stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 60
        while _get(health, "/readyz")[0] != 200 or not _leads(metrics):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        assert _get(health, "/healthz")[0] == 200
        process.send_signal(number)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, log
    assert f'signal="{number.name}"' in log
    assert '"Released lease"' in log


_STUBBORN = """
import asyncio
from slipway.fleet.manager import _hear_signals

async def work():
    stop = asyncio.Event()
    _hear_signals(stop)
    print("up", flush=True)
    await stop.wait()
    print("ending", flush=True)
    await asyncio.Event().wait()

asyncio.run(work())
"""


def test_a_second_signal_ends_it_at_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", _STUBBORN], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "ending\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
        process.stdout.close() if process.stdout else None
