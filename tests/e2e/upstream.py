"""A management plane with Cluster API on it: upstream's managers, ours, and lab hosts as the infrastructure.

The infrastructure provider is the smallest that keeps the contract: its machines are lab hosts that cloud-init brings up with
the bootstrap data, so everything behind it, from the kubelet to etcd, is real.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from e2e import planes
from e2e.labcli import LabCommands
from fleet.lives import Authority, Life, life
from lab.recorded_progress import RecordedProgress
from support.ports import free_port
from support.waiting import eventually_blocking

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import BOOTSTRAP_GROUP
from slipway.credentials import keys, x509
from slipway.credentials.profile import SERVER_AUTH, Profile
from slipway.lab.management import plane as management
from slipway.lab.programs import gobuild

Manifest = dict[str, Any]
CLUSTER_API = "v1.14.2"
CONTRACT = {"cluster.x-k8s.io/v1beta2": "v1beta2"}
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
_SOURCES = {"core": "core", "control-plane": "controlplane/kubeadm", "bootstrap": "bootstrap/kubeadm"}
_BASES = tuple(f"{folder}/config/crd/bases" for folder in _SOURCES.values())
_MANAGERS = {"core": "cluster-api-core", "bootstrap": "cluster-api-bootstrap", "control-plane": "cluster-api-control-plane"}


class Running:
    """A manager that runs as a process of this machine."""

    def __init__(self, name: str, command: list[str], log: Path, environment: dict[str, str], health: str) -> None:
        self.name = name
        self.log = log
        self.health = health
        with log.open("ab") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment)

    def stop(self, *, patience: float = 20) -> int:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def await_health(self, patience: float = 60) -> None:
        from urllib.error import URLError
        from urllib.request import urlopen

        deadline, why = time.monotonic() + patience, ""
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"{self.name} ended: {self.log.read_text()[-3000:]}"
            try:
                if urlopen(f"http://{self.health}/readyz", timeout=2).status == 200:
                    return
            except (URLError, OSError) as error:
                why = str(error)
            time.sleep(0.2)
        raise AssertionError(f"{self.name} is not ready: {why}\n{self.log.read_text()[-3000:]}")


class Plane:
    """An API server with the CRDs of Cluster API; what is started on it ends with it."""

    def __init__(self, folder: Path, address: str | None = None, others: Mapping[str, Path] = MappingProxyType({})) -> None:
        self.folder = folder
        self.plane = planes.start(folder / "plane", address, others)
        self.kubeconfig = self.plane.kubeconfig
        self.environment = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(folder), "PATH": os.defpath}
        self.running: list[Running] = []
        self.webhook_ports: dict[str, int] = {}
        """Where each manager of upstream serves its webhooks."""

    def restart(self) -> None:
        """The API server goes away for a moment, with everything in etcd kept."""
        management.down(self.folder / "plane", RecordedProgress())
        planes.start(self.folder / "plane")

    def kubectl(self, *words: str, text: str = "", check: bool = True) -> str:
        done = subprocess.run(
            [planes.programs()["kubectl"], *words],
            input=text,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not check or done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def apply(self, *manifests: Manifest) -> None:
        text = yaml.safe_dump_all(manifests)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)

    def get(self, what: str, *names: str, namespace: str = "default") -> Any:
        return json.loads(self.kubectl("-n", namespace, "get", what, *names, "-o", "json"))

    def find(self, what: str, name: str, namespace: str = "default") -> Manifest | None:
        text = self.kubectl("-n", namespace, "get", what, name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text else None

    def items(self, what: str, namespace: str = "default") -> list[Manifest]:
        return list(self.get(what, namespace=namespace)["items"])

    def patch_status(self, what: str, name: str, status: Manifest, namespace: str = "default") -> None:
        self.kubectl(
            *("-n", namespace, "patch", what, name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})),
        )

    def until(self, said: str, probe: Callable[[], Any], patience: float = 120) -> Any:
        """What ``probe`` returns once that is something."""
        return eventually_blocking(probe, lambda: f"{said}\n{self.told()}", patience, pause=0.5)

    def told(self) -> str:
        """The last words of every manager, and the conditions of what they manage."""
        words = [f"--- {each.name}\n{each.log.read_text()[-2500:]}" for each in self.running]
        shown = self.kubectl("get", "clusters,machines,kubeadmconfigs,kubeadmcontrolplanes", "-A", "-o", "yaml", check=False)
        return "\n".join([*words, shown[-6000:]])

    def install_crds(self, *, bootstrap: str = "upstream") -> None:
        """Upstream's CRDs, and of the bootstrap provider either upstream's or ours."""
        source = gobuild.module_source(gobuild.CLUSTER_API, CLUSTER_API)
        folders = _BASES if bootstrap == "upstream" else _BASES[:-1]
        found = [yaml.safe_load(path.read_text()) for folder in folders for path in sorted((source / folder).glob("*.yaml"))]
        if bootstrap != "upstream":
            found += [crd for crd in crds.crds() if crd["spec"]["group"] == BOOTSTRAP_GROUP]
        for crd in [*found, *infrastructure_crds()]:
            crd["metadata"].setdefault("labels", {}).update(CONTRACT)
            crd["metadata"].pop("creationTimestamp", None)
        self.apply(*found, *infrastructure_crds())
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")

    def start_upstream(self, name: str, *flags: str) -> Running:
        port, health = free_port(), f"127.0.0.1:{free_port()}"
        self.webhook_ports[name] = port
        command = [
            *(str(gobuild.build(_MANAGERS[name], CLUSTER_API)), f"--kubeconfig={self.kubeconfig}", f"--webhook-port={port}"),
            *(f"--health-addr={health}", f"--diagnostics-address=127.0.0.1:{free_port()}", "--insecure-diagnostics"),
            *(f"--webhook-cert-dir={self._webhook_certificate(name)}", *flags),
            "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
        ]
        return self._start(f"upstream-{name}", command, health)

    def install_webhooks(self, name: str) -> None:
        """Have the API server ask a manager of upstream that runs; without this, what it would default has to be written out."""
        source = gobuild.module_source(gobuild.CLUSTER_API, CLUSTER_API) / _SOURCES[name] / "config/webhook/manifests.yaml"
        authority = base64.b64encode((self.folder / f"{name}-webhook" / "ca.crt").read_bytes()).decode()
        configurations = list(yaml.safe_load_all(source.read_text()))
        for configuration in configurations:
            configuration["metadata"]["name"] = f"upstream-{name}-{configuration['metadata']['name']}"
            for webhook in configuration["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {"url": f"https://127.0.0.1:{self.webhook_ports[name]}{path}", "caBundle": authority}
        self.apply(*configurations)

    def install_conversion(self, name: str) -> None:
        """Have the API server ask a manager of upstream that runs for the other versions of its kinds."""
        source = gobuild.module_source(gobuild.CLUSTER_API, CLUSTER_API) / _SOURCES[name] / "config/crd/bases"
        authority = base64.b64encode((self.folder / f"{name}-webhook" / "ca.crt").read_bytes()).decode()
        client = {"url": f"https://127.0.0.1:{self.webhook_ports[name]}/convert", "caBundle": authority}
        patch = json.dumps(
            {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}}}
        )
        for path in sorted(source.glob("*.yaml")):
            crd = yaml.safe_load(path.read_text())
            if len([version for version in crd["spec"]["versions"] if version["served"]]) > 1:
                self.kubectl("patch", "crd", crd["metadata"]["name"], "--type=merge", "-p", patch)

    def kubeconfig_of(self, account: str, namespace: str) -> Path:
        """A kubeconfig with the rights of a ServiceAccount alone."""
        token = self.kubectl("-n", namespace, "create", "token", account, "--duration=2h").strip()
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
        path = self.folder / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def start_slipway(
        self, *flags: str, name: str = "slipway", kubeconfig: Path | None = None, program: Sequence[str] = ("-m", "slipway")
    ) -> Running:
        health = f"127.0.0.1:{free_port()}"
        command = [
            *(sys.executable, *program, "manager", "run", f"--kubeconfig={kubeconfig or self.kubeconfig}"),
            *(f"--health-addr={health}", "--metrics-bind-address=0", f"--registration-bind-address=127.0.0.1:{free_port()}", *flags),
        ]
        return self._start(name, command, health)

    def life(self, workload: Plane | None = None) -> AbstractAsyncContextManager[Life]:
        """The life of a cluster with simulated infrastructure; without another, this plane is the workload cluster as well."""
        other = workload or self
        pki = other.folder / "plane/etc/kubernetes/pki"
        authority = Authority((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
        connection = planes.connection_of(self.kubeconfig)
        return life(connection, authority, workload=planes.connection_of(other.kubeconfig), told=self.told)

    def _start(self, name: str, command: list[str], health: str) -> Running:
        running = Running(name, command, self.folder / f"{name}.log", {**os.environ, **self.environment}, health)
        self.running.append(running)
        return running

    def _webhook_certificate(self, name: str) -> Path:
        from datetime import UTC, datetime

        from slipway.credentials.profile import DEFAULT_VALIDITY

        folder = self.folder / f"{name}-webhook"
        folder.mkdir(exist_ok=True)
        authority_key, key = keys.generate("ECDSA-P256"), keys.generate("ECDSA-P256")
        valid = x509.period(datetime.now(UTC), DEFAULT_VALIDITY)
        authority = x509.self_signed(Profile(common_name=f"{name}-ca"), authority_key, valid, sha256_key_id=False)
        profile = Profile(common_name=name, usages=(SERVER_AUTH,), dns_names=("localhost",), addresses=("127.0.0.1",))
        certificate = x509.signed(profile, key.public_key(), x509.Authority(authority, authority_key), valid)
        (folder / "ca.crt").write_bytes(x509.pem(authority))
        (folder / "tls.crt").write_bytes(x509.pem(certificate))
        (folder / "tls.key").write_bytes(keys.private_pem(key))
        return folder

    def close(self) -> None:
        for running in reversed(self.running):
            running.stop()
        management.down(self.folder / "plane", RecordedProgress(), purge=True)


@contextmanager
def plane(folder: Path, address: str | None = None, others: Mapping[str, Path] = MappingProxyType({})) -> Iterator[Plane]:
    made = Plane(folder, address, others)
    try:
        yield made
    finally:
        made.close()


def infrastructure_crds() -> list[Manifest]:
    """The kinds of the infrastructure provider: what the contract asks for, and nothing else."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.{INFRASTRUCTURE}", "labels": dict(CONTRACT)},
            "spec": {
                "group": INFRASTRUCTURE,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"},
                "versions": [
                    {
                        "name": "v1beta2",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        }
        for kind in ("LabCluster", "LabMachine", "LabMachineTemplate", "LabClusterTemplate")
    ]


class LabProvider:
    """Lab hosts as machines: a host boots with the bootstrap data of its Machine, and its Node makes it provisioned."""

    def __init__(self, management_plane: Plane, lab: LabCommands, namespace: str = "default") -> None:
        self.plane = management_plane
        self.lab = lab
        self.namespace = namespace
        self.hosts: dict[str, str] = {}
        """The host of each LabMachine."""

    def step(self) -> None:
        """What a reconciler of the provider would do now."""
        for cluster in self.plane.items("labclusters", self.namespace):
            name, status = cluster["metadata"]["name"], cluster.get("status", {})
            if not status.get("initialization", {}).get("provisioned"):
                self.plane.patch_status("labcluster", name, {"initialization": {"provisioned": True}}, self.namespace)
        machines = {machine["spec"]["infrastructureRef"]["name"]: machine for machine in self.plane.items("machines", self.namespace)}
        for lab_machine in self.plane.items("labmachines", self.namespace):
            name = lab_machine["metadata"]["name"]
            if name in machines and not lab_machine.get("status", {}).get("initialization", {}).get("provisioned"):
                self._provision(name, lab_machine["spec"].get("image", ""), machines[name])

    def _provision(self, name: str, image: str, machine: Manifest) -> None:
        secret_name = machine["spec"]["bootstrap"].get("dataSecretName")
        if not secret_name:
            return
        secret = self.plane.get("secret", secret_name, namespace=self.namespace)
        data = base64.b64decode(secret["data"]["value"]).decode()
        host = self.hosts.setdefault(name, f"host-{len(self.hosts) + 1}")
        self.boot(host, image, data)
        self.plane.kubectl(
            *("-n", self.namespace, "patch", "labmachine", name, "--type=merge"),
            *("-p", json.dumps({"spec": {"providerID": f"lab:///{host}"}})),
        )
        self.plane.patch_status("labmachine", name, {"initialization": {"provisioned": True}}, self.namespace)

    def boot(self, host: str, image: str, user_data: str) -> None:
        path = self.plane.folder / f"{host}.user-data"
        path.write_text(user_data)
        self.lab.run("host", "create", host, "--image", image, "--user-data", str(path))
        self.lab.run("host", "start", host)
