"""The Helm chart with the real Helm on a real API server: linted, rendered, installed, upgraded with a version more, removed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from e2e.planes import VERSION, management_plane, programs, real_server
from lab.recorded_progress import RecordedProgress

from slipway import __version__
from slipway.api.machinery.yaml import goyaml
from slipway.fleet import registry
from slipway.fleet.manifests import Installation, manifests
from slipway.lab.programs import obtain

pytestmark = real_server
CHART = Path(__file__).parents[2] / "charts/slipway"
SPACE = "cpaas-system"
REPOSITORY = "tkestack/baremetal-base-image"
# The values of the guide, word for word.
FIRST: dict[str, Any] = {
    "global": {"registry": {"address": "registry.example.com:5000"}},
    "provider": {"imageCatalog": {"images": {"v1.33.7-2": {"repository": REPOSITORY, "tag": "v0.0.0-beta-1.33.7-2"}}}},
}
ADDED = {"v1.34.5": {"repository": REPOSITORY, "tag": "v0.0.0-dev.0-1.34.5"}}
DIGEST = f"registry.example.com:5000/{REPOSITORY}@sha256:{'0123456789abcdef' * 4}"


@cache
def helm_program() -> Path:
    return obtain.obtain(VERSION, ["helm"], progress=RecordedProgress())["helm"].path


def run(*command: str | Path, ok: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout if ok else done.stderr


def helm(*arguments: str | Path, ok: bool = True) -> str:
    return run(helm_program(), *arguments, ok=ok)


def rendered(*arguments: str) -> list[dict[str, Any]]:
    documents = goyaml.load(helm("template", "slipway", CHART, *arguments))
    return [document.value for document in documents if isinstance(document.value, dict)]


def named(made: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in made if each["kind"] == kind}


def declared(*names: str, namespace: str = "slipway-system") -> list[dict[str, Any]]:
    """What `slipway manager manifests` prints."""
    found = registry.declarations(registry.chosen(names))
    return manifests(
        Installation(
            rules=found.rules,
            crds=found.crds,
            webhooks=found.webhooks,
            controllers=found.names,
            image=f"slipway:v{__version__}",
            leases=found.leases,
            works_with_providers=found.works_with_providers,
            namespace=namespace,
        )
    )


def permissions(made: list[dict[str, Any]], kind: str) -> set[tuple[str, ...]]:
    return {
        (each["metadata"].get("namespace", ""), verb, group, resource, name)
        for each in made
        if each["kind"] == kind
        for rule in each.get("rules") or []
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
    }


def effective(found: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Without what is allowed for a name and for all objects, too."""
    return {each for each in found if not each[4] or (*each[:4], "") not in found}


def test_the_chart_is_as_helm_wants_charts_to_be() -> None:
    helm("lint", "--strict", CHART)


@pytest.mark.parametrize("controllers", [(registry.ALL,), ("baremetal", "inventory")])
def test_replicas_that_share_the_work_get_the_leases_of_their_division(controllers: tuple[str, ...]) -> None:
    chosen = f"controllers={json.dumps(list(controllers))}"
    made = rendered("--namespace=slipway-system", "--set=shards=3", "--set-json", chosen)
    division = registry.division_leases(registry.chosen(controllers), "slipway-system", 3)
    got = {each for each in permissions(made, "Role") if each[3] == "leases" and each[0] == "slipway-system"}
    assert {(lease.namespace, "update", "coordination.k8s.io", "leases", lease.name) for lease in division} <= got
    assert ("slipway-system", "list", "coordination.k8s.io", "leases", "") in got
    (deployment,) = named(made, "Deployment").values()
    assert "--shards=3" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize(
    ("controllers", "namespace"),
    [((registry.ALL,), "slipway-system"), (("bootstrap", "inventory"), "slipway-system"), (("inventory",), SPACE)],
)
def test_the_chart_brings_what_the_command_would_install(controllers: tuple[str, ...], namespace: str) -> None:
    wanted = declared(*controllers, namespace=namespace)
    made = rendered("--namespace", namespace, "--set", f"controllers={{{','.join(controllers)}}}")
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ServiceAccount"):
        assert named(made, kind) == named(wanted, kind)
    ours = {name: crd["spec"] for name, crd in named(made, "CustomResourceDefinition").items()}
    assert ours == {name: crd["spec"] for name, crd in named(wanted, "CustomResourceDefinition").items()}
    for kind in ("ClusterRole", "Role"):
        assert effective(permissions(made, kind)) == effective(permissions(wanted, kind))
    services = named(made, "Service")
    assert {name: each["spec"]["ports"] for name, each in services.items()} == {
        name: each["spec"]["ports"] for name, each in named(wanted, "Service").items()
    }
    (ours_pod,) = (each["spec"]["template"] for each in named(made, "Deployment").values())
    (wanted_pod,) = (each["spec"]["template"] for each in named(wanted, "Deployment").values())
    container = wanted_pod["spec"]["containers"][0]
    container["imagePullPolicy"] = "IfNotPresent"
    container["args"] = [
        arg if not arg.startswith("--controllers=") else f"--controllers={','.join(controllers)}" for arg in container["args"]
    ]
    assert ours_pod == wanted_pod
    namespaces = set(named(wanted, "Namespace")) - {namespace}
    assert set(named(made, "Namespace")) == namespaces


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"images": {"1.34.5": {"repository": "a", "tag": "b"}}}, "1.34.5"),
        ({"images": {"v1.34.5": {"repository": "a"}}}, "tag"),
        ({"data": {"v1.34.5": "two words"}}, "v1.34.5"),
    ],
)
def test_an_entry_that_is_no_good_is_refused_before_anything_is_installed(values: dict[str, Any], sentence: str) -> None:
    given = json.dumps(values)
    assert sentence in helm("template", "slipway", CHART, "--set-json", f"provider.imageCatalog={given}", ok=False)


def test_what_values_say_reaches_the_manager() -> None:
    made = rendered(
        *("--namespace", SPACE, "--set", "global.registry.address=registry.example.com", "--set", "extraArgs={--v=4}"),
        *("--set", "registration.url=https://192.0.2.1:8443", "--set", "registration.service.type=NodePort"),
        *("--set", "provider.imageCatalog.namespace=images", "--set", "provider.aliveImage=slipway/alive:v1"),
        *("--set", "controllers={inventory,baremetal}"),
    )
    (deployment,) = named(made, "Deployment").values()
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"registry.example.com/slipway:v{__version__}"
    assert container["args"][-4:] == [
        "--registration-url=https://192.0.2.1:8443",
        "--catalog-namespace=images",
        "--alive-image=registry.example.com/slipway/alive:v1",
        "--v=4",
    ]
    assert named(made, "Service")["slipway-registration"]["spec"]["type"] == "NodePort"
    assert named(made, "ConfigMap")["elemental-image-catalog"]["metadata"]["namespace"] == "images"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with management_plane(tmp_path_factory.mktemp("management")) as plane:
        yield plane.kubeconfig


def test_a_release_is_installed_and_upgraded_with_a_version_more(kubeconfig: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    where = ("--kubeconfig", kubeconfig, "--namespace", SPACE)

    def kubectl(*arguments: str) -> str:
        return run(programs()["kubectl"], "--kubeconfig", kubeconfig, *arguments)

    def catalog() -> dict[str, str]:
        found: dict[str, str] = json.loads(kubectl("-n", SPACE, "get", "configmap", "elemental-image-catalog", "-o", "json"))["data"]
        return found

    values.write_text(json.dumps(FIRST))
    helm("install", "slipway", CHART, "--create-namespace", "--values", values, *where)
    first = {"v1.33.7-2": f"registry.example.com:5000/{REPOSITORY}:v0.0.0-beta-1.33.7-2"}
    assert catalog() == first
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/machineinventories.elemental.cattle.io")

    # What the manager writes when it runs, and what an operator adds: the guide's option B, word for word.
    webhook = '[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"LS0tLS1CRUdJTi0tLS0t"}]'
    validating = f"validatingwebhookconfiguration/slipway-validating-webhooks-{SPACE}"
    kubectl("patch", validating, "--type=json", "-p", webhook)
    patch = f'[{{"op":"add","path":"/data/v1.34.9","value":"{DIGEST}"}}]'
    kubectl("-n", SPACE, "patch", "configmap", "elemental-image-catalog", "--type=json", f"-p={patch}")
    assert catalog() == {**first, "v1.34.9": DIGEST}

    provider = {"imageCatalog": {"images": {**FIRST["provider"]["imageCatalog"]["images"], **ADDED}}}
    values.write_text(json.dumps({**FIRST, "provider": provider}))
    helm("upgrade", "slipway", CHART, "--values", values, *where)
    assert catalog() == {**first, "v1.34.9": DIGEST, "v1.34.5": f"registry.example.com:5000/{REPOSITORY}:v0.0.0-dev.0-1.34.5"}
    assert "LS0tLS1CRUdJTi0tLS0t" in kubectl("get", validating, "-o", "json")
    listed = kubectl("-n", SPACE, "get", "configmap", "elemental-image-catalog", "-o", "yaml")
    assert "v1.34.5: registry.example.com:5000" in listed

    helm("uninstall", "slipway", *where)
    assert len(catalog()) == 3
    kubectl("get", "crd", "machineinventories.elemental.cattle.io")
    assert "slipway-manager" not in kubectl("-n", SPACE, "get", "deployments", "-o", "name")
