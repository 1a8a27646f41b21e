"""Management planes for real: etcd, the API server and the controller manager run, and the real kubectl talks to them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.labcli import LabCommands
from lab.recorded_progress import RecordedProgress

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.lab import processes
from slipway.lab.management import plan, status
from slipway.lab.management import plane as management
from slipway.lab.management import state as managementstate
from slipway.lab.management.plane import ManagementPlane
from slipway.lab.programs import cache, catalog
from slipway.node import kubeconfigs

VERSION = "v1.35.4"
PATHS = {
    name: cache.place(cache.cache_root(), name, catalog.wanted_version(name, release_for(Version.parse(VERSION))))
    for name in (*plan.PROGRAMS, "kubectl")
}
MISSING = [name for name, path in PATHS.items() if not path.exists()]
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="runs real programs: set SLIPWAY_E2E=1"),
    pytest.mark.skipif(bool(MISSING), reason=f"not in the cache: {', '.join(MISSING)}; run `slipway lab components {VERSION}`"),
]

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer, minimum: 1}}}}
"""
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: first}
spec: {size: %d}
"""


class Client:
    """kubectl with one kubeconfig."""

    def __init__(self, config: Path, home: Path) -> None:
        self._environment = {"KUBECONFIG": str(config), "HOME": str(home), "PATH": os.defpath}

    def run(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(PATHS["kubectl"]), *arguments]
        return subprocess.run(command, input=text, env=self._environment, capture_output=True, text=True, timeout=90, check=False)

    def __call__(self, *arguments: str, text: str = "") -> str:
        done = self.run(*arguments, text=text)
        assert done.returncode == 0, done.stderr
        return done.stdout


def up(folder: Path, progress: RecordedProgress | None = None) -> ManagementPlane:
    return management.up(folder, VERSION, PATHS, progress or RecordedProgress())


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagementPlane]:
    """A plane that the tests of this module share; whatever becomes of it, nothing is left of it in the end."""
    folder = tmp_path_factory.mktemp("labs") / "shared"
    made = up(folder)
    try:
        yield made
    finally:
        last = managementstate.load(folder)
        management.down(folder, RecordedProgress(), purge=True)
    assert not folder.exists()
    assert last is not None
    assert not any(processes.is_running(process) for process in last.processes.values())


@pytest.fixture
def kubectl(plane: ManagementPlane, tmp_path: Path) -> Client:
    return Client(plane.kubeconfig, tmp_path)


def as_user(plane: ManagementPlane, home: Path, name: str, *groups: str) -> Client:
    """Somebody with a certificate of the plane's own authority, as `kubeconfig user` makes it."""
    ctx = plan.context(plane.folder, Version.parse(plane.version), plane.ports, RecordedProgress())
    config = home / f"{name.replace(':', '-')}.conf"
    config.write_text(kubeconfigs.user(ctx, client_name=name, organizations=groups))
    return Client(config, home)


def test_every_check_of_the_api_server_passes_and_the_status_says_so(plane: ManagementPlane, kubectl: Client) -> None:
    answer = kubectl("get", "--raw", "/readyz?verbose")
    assert "[+]poststarthook/rbac/bootstrap-roles ok" in answer
    assert "[-]" not in answer
    assert status.status(plane.folder).healthy
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"] == VERSION


def test_a_namespace_gets_its_service_account_and_the_root_certificate_and_goes_with_all_it_has(kubectl: Client) -> None:
    kubectl("create", "namespace", "team")
    for made in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
        kubectl("wait", "--namespace=team", "--for=create", made, "--timeout=60s")
    assert kubectl("create", "token", "default", "--namespace=team").count(".") == 2
    kubectl("delete", "namespace", "team", "--timeout=60s")
    assert "NotFound" in kubectl.run("get", "configmap", "kube-root-ca.crt", "--namespace=team").stderr


def test_what_an_object_owns_is_collected_after_it(kubectl: Client) -> None:
    kubectl("create", "configmap", "owner")
    uid = kubectl("get", "configmap", "owner", "--output=jsonpath={.metadata.uid}")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [reference]}}
    kubectl("apply", "--filename=-", text=json.dumps(owned))
    kubectl("delete", "configmap", "owner")
    kubectl("wait", "--for=delete", "configmap/owned", "--timeout=60s")


def test_custom_resources_are_checked_against_their_schema(kubectl: Client) -> None:
    kubectl("apply", "--filename=-", text=WIDGETS)
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=30s")
    kubectl("apply", "--filename=-", text=WIDGET % 3)
    assert kubectl("get", "widget", "first", "--output=jsonpath={.spec.size}") == "3"
    assert "should be greater than or equal to 1" in kubectl.run("apply", "--filename=-", text=WIDGET % 0).stderr


def test_a_user_may_only_do_what_a_role_allows(plane: ManagementPlane, kubectl: Client, tmp_path: Path) -> None:
    jane = as_user(plane, tmp_path, "jane")
    refused = jane.run("auth", "can-i", "list", "configmaps")
    assert (refused.returncode, refused.stdout.strip()) == (1, "no")
    kubectl("create", "clusterrolebinding", "jane", "--clusterrole=view", "--user=jane")
    assert jane("auth", "can-i", "list", "configmaps").strip() == "yes"
    assert 'User "jane" cannot list resource "secrets"' in jane.run("get", "secrets").stderr


def test_a_kubelet_may_not_register_another_node(plane: ManagementPlane, tmp_path: Path) -> None:
    kubelet = as_user(plane, tmp_path, "system:node:one", "system:nodes")
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}}'
    kubelet("create", "--filename=-", text=node % "one")
    assert 'node "one" is not allowed to modify node "two"' in kubelet.run("create", "--filename=-", text=node % "two").stderr


def test_etcd_lets_nobody_in_without_a_certificate(plane: ManagementPlane) -> None:
    stranger = status.Endpoint(address="127.0.0.1", port=plane.ports["etcd"], path="/readyz", context=status.client_without_trust())
    assert "certificate required" in status.ask(stranger)


def test_up_where_all_is_well_changes_nothing(plane: ManagementPlane) -> None:
    files = {path: path.stat().st_mtime_ns for path in (plane.folder / "management.json", plane.kubeconfig)}
    progress = RecordedProgress()
    assert up(plane.folder, progress) == plane
    assert progress.lines == [f"[management] The management plane in {plane.folder} is up and healthy: nothing to do"]
    assert {path: path.stat().st_mtime_ns for path in files} == files


@pytest.mark.parametrize("victim", plan.PROGRAMS)
def test_only_the_program_that_was_killed_is_started_again(victim: str, plane: ManagementPlane, kubectl: Client) -> None:
    before = up(plane.folder).processes
    # A controller manager that has not yet started all of its controllers ends together with the API server.
    kubectl("create", "namespace", f"before-{victim}")
    kubectl("wait", f"--namespace=before-{victim}", "--for=create", "serviceaccount/default", "--timeout=60s")
    os.kill(before[victim].pid, signal.SIGKILL)
    after = up(plane.folder).processes
    assert [name for name in plan.PROGRAMS if before[name] != after[name]] == [victim]
    assert status.status(plane.folder).healthy
    kubectl("get", "serviceaccount", "default", f"--namespace=before-{victim}")


def test_a_kubeconfig_that_was_lost_is_made_again(plane: ManagementPlane, kubectl: Client) -> None:
    plane.kubeconfig.unlink()
    assert not status.status(plane.folder).healthy
    assert up(plane.folder).processes == up(plane.folder).processes
    assert plane.kubeconfig.stat().st_mode & 0o777 == 0o600
    kubectl("get", "namespaces")


def test_a_plane_keeps_its_data_and_its_users_over_down_and_up(plane: ManagementPlane, kubectl: Client, tmp_path: Path) -> None:
    jane = as_user(plane, tmp_path, "jane")
    kubectl("create", "configmap", "kept")
    management.down(plane.folder, RecordedProgress())
    assert not any(program.running for program in status.status(plane.folder).programs)
    assert up(plane.folder).ports == plane.ports
    kubectl("get", "configmap", "kept")
    assert '"username":"jane"' in jane("auth", "whoami", "--output=json").replace(" ", "")


def test_a_port_that_was_taken_meanwhile_is_given_up(plane: ManagementPlane, kubectl: Client) -> None:
    management.down(plane.folder, RecordedProgress())
    port, progress = plane.ports["kube-apiserver"], RecordedProgress()
    with socket.create_server(("127.0.0.1", port)):
        moved = up(plane.folder, progress)
    assert moved.ports["kube-apiserver"] != port
    assert progress.warnings[0].startswith(f"[management] Port {port} of kube-apiserver is taken by another program")
    kubectl("get", "namespaces")


def test_two_planes_side_by_side_know_nothing_of_each_other(plane: ManagementPlane, kubectl: Client, tmp_path: Path) -> None:
    other = up(tmp_path / "other")
    try:
        current = up(plane.folder)
        assert not set(other.ports.values()) & set(current.ports.values())
        Client(other.kubeconfig, tmp_path)("create", "namespace", "only-there")
        assert "NotFound" in kubectl.run("get", "namespace", "only-there").stderr
    finally:
        management.down(other.folder, RecordedProgress(), purge=True)
    assert status.status(plane.folder).healthy
    assert not other.folder.exists()


@pytest.mark.parametrize("moment", ["Starting the API server", "Waiting for the controller manager"])
def test_what_a_killed_up_has_left_is_ended_by_down(moment: str, tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    script = f"""
import os, signal
from pathlib import Path
from e2e.test_management import PATHS, VERSION
from lab.recorded_progress import RecordedProgress
from slipway.lab.management import plane as management

class Fatal(RecordedProgress):
    def say(self, text):
        if {moment!r} in text:
            os.kill(os.getpid(), signal.SIGKILL)

management.up(Path({str(folder)!r}), VERSION, PATHS, Fatal())
"""
    tests = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": tests}, check=False, timeout=90)
    assert done.returncode == -signal.SIGKILL
    state = managementstate.load(folder)
    assert state is not None
    left = [process for process in state.processes.values() if processes.is_running(process)]
    assert left
    management.down(folder, RecordedProgress(), purge=True)
    assert not any(processes.is_running(process) for process in left)
    assert not folder.exists()


def test_lab_down_ends_a_management_plane_that_is_all_the_lab_has() -> None:
    lab = LabCommands(f"plane-{os.getpid() % 10000}")
    lab.run("management", "up", "--kubernetes-version", VERSION)
    (before,) = json.loads(lab.run("management", "status", "-o", "json").stdout)
    assert before["healthy"] is True
    state = managementstate.load(Path(before["folder"]))
    assert state is not None
    assert "removed" in lab.run("down").stdout
    assert not Path(before["folder"]).parent.exists()
    assert not any(processes.is_running(process) for process in state.processes.values())
