"""The whole reconciler on an API server; the end-to-end tests run these on the real one.

Behaviours of Cluster API's kubeadmconfig_controller_test.go and kubeadmconfig_controller_controlplane_version_test.go are among them.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fleet.world import CA_PAIR, World, preserving_crd
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CONFIG_MAP,
    CONTROL_PLANE_GROUP,
    CORE_EVENT,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_POOL,
    SECRET,
    Kind,
)
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.fleet import certificates
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.bootstrap.status import InputError
from slipway.fleet.bootstrap.version import VersionUnreadableError
from slipway.kube.aio import PatchType
from slipway.runtime.objects import DONE, Result

pytestmark = [pytest.mark.asyncio, pytest.mark.upstream_table]

TTL = timedelta(hours=2)
CHECK = Result(TTL.total_seconds() / 3)
VERSION_CONDITION = "ControlPlaneKubernetesVersionAvailable"


def files(data: str) -> dict[str, str]:
    """write_files of a cloud-config."""
    assert data.startswith("## template: jinja\n#cloud-config\n")
    document = goyaml.load(data)[0].value
    return {file["path"]: file["content"] for file in document["write_files"]}


def bootstrap_token(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]
    return found


# Workers.


async def test_a_worker_gets_its_data(world: World) -> None:
    await world.ready()
    await world.machine("w")
    assert await world.reconcile(world.reconciler(), "w") == CHECK
    config = await world.config("w")
    assert config["status"]["initialization"] == {"dataSecretCreated": True}
    assert config["status"]["dataSecretName"] == "w"
    assert config["status"]["observedGeneration"] == config["metadata"]["generation"]
    conditions = [(condition["type"], condition["status"], condition["reason"]) for condition in config["status"]["conditions"]]
    assert conditions == [
        ("Ready", "True", "Ready"),
        ("CertificatesAvailable", "True", "Available"),
        (VERSION_CONDITION, "True", "VersionFromControlPlane"),
        ("DataSecretAvailable", "True", "Available"),
        ("Paused", "False", "NotPaused"),
    ]
    older = config["status"]["deprecated"]["v1beta1"]["conditions"]
    assert [(condition["type"], condition["status"]) for condition in older] == [
        ("Ready", "True"),
        ("CertificatesAvailable", "True"),
        ("DataSecretAvailable", "True"),
    ]
    discovery = bootstrap_token(config)
    assert discovery["apiServerEndpoint"] == "10.0.0.1:6443"
    assert discovery["caCertHashes"] == certificates.ca_hashes(CA_PAIR.certificate)
    assert "unsafeSkipCAVerification" not in discovery


async def test_the_data_secret_is_what_the_contract_says(world: World) -> None:
    await world.ready()
    config = await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    secret = await world.client.get(SECRET, "w", world.namespace)
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "c"}
    assert secret["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfig",
            "name": "w",
            "uid": config["metadata"]["uid"],
            "controller": True,
        }
    ]
    assert sorted(secret["data"]) == ["format", "value"]
    assert b64decode(secret["data"]["format"]) == b"cloud-config"


async def test_only_the_discovery_of_a_workers_spec_is_changed(world: World) -> None:
    await world.ready()
    before = await world.machine("w", {"joinConfiguration": {"nodeRegistration": {"name": "x"}}, "verbosity": 5})
    await world.reconcile(world.reconciler(), "w")
    after = await world.config("w")
    del after["spec"]["joinConfiguration"]["discovery"]
    assert after["spec"] == before["spec"]


async def test_a_second_reconcile_writes_nothing(world: World) -> None:
    await world.ready()
    await world.machine("w")
    reconciler = world.reconciler()
    await world.reconcile(reconciler, "w")
    config, secret, tokens = await world.config("w"), await world.client.get(SECRET, "w", world.namespace), await world.tokens()
    for again in (reconciler, world.reconciler()):
        assert await world.reconcile(again, "w") == CHECK
        assert await world.config("w") == config
        assert await world.client.get(SECRET, "w", world.namespace) == secret
        assert await world.tokens() == tokens


async def test_an_event_soon_after_costs_no_request(world: World) -> None:
    await world.ready()
    await world.machine("w")
    asked: list[str] = []
    reconciler = world.reconciler(on_request=lambda verb, code, seconds: asked.append(verb))
    await world.reconcile(reconciler, "w")
    # The CRD and the control plane, the lock, the CA, the kubeconfig; then token, spec, data and status.
    assert asked == ["get", "get", "get", "get", "get", "create", "patch", "create", "patch"]
    asked.clear()
    await world.machine("w2")
    await world.reconcile(reconciler, "w2")
    assert asked == ["get", "create", "patch", "create", "patch"]
    asked.clear()
    assert await world.cache.get(KUBEADM_CONTROL_PLANE, "cp", world.namespace)
    assert await world.reconcile(reconciler, "w") == CHECK
    assert asked == []


async def test_a_worker_joins_with_the_version_of_the_control_plane(world: World) -> None:
    await world.ready("v1.35.4")
    await world.machine("w", version="v1.30.0")
    await world.reconcile(world.reconciler(), "w")
    written = files(await world.data("w"))
    assert written["/run/cluster-api/kubeadm-version/version"] == "v1.35.4\n"
    # kubeadm's v1beta4 came with 1.31, and the Machine alone would get v1beta3.
    assert "apiVersion: kubeadm.k8s.io/v1beta4" in written["/run/kubeadm/kubeadm-join-config.yaml"]
    condition = await world.condition("w", VERSION_CONDITION)
    assert condition["message"] == "Join data is for Kubernetes v1.35.4, read from KubeadmControlPlane cp"


async def test_the_setting_machine_makes_the_data_for_the_machines_version(world: World) -> None:
    await world.ready("v1.35.4")
    await world.machine("w", version="v1.30.0")
    await world.reconcile(world.reconciler(BootstrapOptions(join_version="machine")), "w")
    written = files(await world.data("w"))
    assert "apiVersion: kubeadm.k8s.io/v1beta3" in written["/run/kubeadm/kubeadm-join-config.yaml"]
    assert written["/run/cluster-api/kubeadm-version/version"] == "v1.35.4\n"
    assert VERSION_CONDITION not in [condition["type"] for condition in (await world.config("w"))["status"]["conditions"]]


async def test_the_version_file_can_be_switched_off(world: World) -> None:
    await world.ready()
    await world.machine("w")
    await world.reconcile(world.reconciler(BootstrapOptions(version_file=False)), "w")
    assert "/run/cluster-api/kubeadm-version/version" not in files(await world.data("w"))


async def test_a_version_file_of_the_users_own_is_left_alone(world: World) -> None:
    await world.ready()
    await world.machine("w", {"files": [{"path": "/run/cluster-api/kubeadm-version/version", "content": "mine"}]})
    await world.reconcile(world.reconciler(), "w")
    assert (await world.data("w")).count("kubeadm-version/version") == 1


async def test_ignition_has_the_version_file_too(world: World) -> None:
    await world.ready("v1.35.4")
    await world.machine("w", {"format": "ignition"})
    await world.reconcile(world.reconciler(), "w")
    data = await world.data("w")
    assert '"path":"/run/cluster-api/kubeadm-version/version"' in data
    secret = await world.client.get(SECRET, "w", world.namespace)
    assert b64decode(secret["data"]["format"]) == b"ignition"


async def version_from_the_machine(world: World, message: str) -> None:
    await world.certificates()
    await world.kubeconfig()
    await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    condition = await world.condition("w", VERSION_CONDITION)
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "VersionFromMachine", message)
    assert files(await world.data("w"))["/run/cluster-api/kubeadm-version/version"] == "v1.34.0\n"


async def test_without_a_control_plane_the_machines_version_counts(world: World) -> None:
    await world.cluster(reference=False)
    await version_from_the_machine(
        world, "Join data is for Kubernetes v1.34.0 of the Machine w, because the Cluster has no controlPlaneRef"
    )


async def test_without_a_version_of_the_control_plane_the_machines_counts(world: World) -> None:
    # A KubeadmControlPlane always has one.
    kind = Kind(CONTROL_PLANE_GROUP, "v1beta2", "TestControlPlane", "testcontrolplanes")
    await world.install_crds(preserving_crd(kind))
    await world.cluster(reference=False, controlPlaneRef={"apiGroup": kind.group, "kind": kind.kind, "name": "cp"})
    await world.client.create(kind, {"metadata": {"name": "cp", "namespace": world.namespace}, "spec": {"replicas": 1}})
    await version_from_the_machine(
        world, "Join data is for Kubernetes v1.34.0 of the Machine w, because TestControlPlane cp has no version"
    )


async def test_a_control_plane_that_cannot_be_read_fails_the_reconcile_visibly(world: World) -> None:
    await world.cluster()
    await world.certificates()
    await world.kubeconfig()
    await world.machine("w")
    reconciler = world.reconciler()
    with pytest.raises(VersionUnreadableError, match=f"failed to read control plane version from KubeadmControlPlane {world.namespace}/cp"):
        await world.reconcile(reconciler, "w")
    condition = await world.condition("w", VERSION_CONDITION)
    assert (condition["status"], condition["reason"]) == ("False", "ControlPlaneVersionUnreadable")
    assert 'kubeadmcontrolplanes.controlplane.cluster.x-k8s.io "cp" not found' in condition["message"]
    data = await world.condition("w", "DataSecretAvailable")
    assert data["message"].startswith("Failed to determine the Kubernetes version to join with: failed to read control plane version")
    config = await world.config("w")
    assert "observedGeneration" not in config["status"]
    assert "joinConfiguration" not in config.get("spec", {})
    assert await world.tokens() == []
    assert await world.client.find(SECRET, "w", world.namespace) is None
    # And when it is there, all is well.
    await world.control_plane("v1.35.0")
    await world.reconcile(reconciler, "w")
    assert (await world.condition("w", VERSION_CONDITION))["status"] == "True"
    assert (await world.condition("w", "Ready"))["status"] == "True"


async def test_templates_get_the_version_in_both_forms(world: World) -> None:
    await world.ready("v1.35.4")
    await world.secret("script", {"text": b"fetch {{ .controlPlane.version }}"})
    await world.machine(
        "w",
        {
            "files": [
                {"path": "/a", "content": "{{ .KubernetesVersion }}", "contentFormat": "go-template"},
                {"path": "/b", "contentFrom": {"secret": {"name": "script", "key": "text"}}, "contentFormat": "Template"},
                {"path": "/c", "content": "{{ .controlPlane.version }}"},
            ]
        },
    )
    await world.reconcile(world.reconciler(), "w")
    written = files(await world.data("w"))
    assert (written["/a"], written["/b"], written["/c"]) == ("v1.35.4\n", "fetch v1.35.4\n", "{{ .controlPlane.version }}\n")


async def test_a_template_that_fails_is_told_by_the_condition_and_makes_no_token(world: World) -> None:
    await world.ready()
    await world.machine("w", {"files": [{"path": "/a", "content": "{{ .controlPlane.version.x }}", "contentFormat": "Template"}]})
    with pytest.raises(OperatorError, match=r"Failed to prepare spec\.files"):
        await world.reconcile(world.reconciler(), "w")
    condition = await world.condition("w", "DataSecretAvailable")
    assert (condition["status"], condition["reason"]) == ("False", "NotAvailable")
    assert condition["message"].startswith(
        'Failed to prepare spec.files: failed to render templates: failed to execute template for file "/a"'
    )
    assert await world.tokens() == []


async def test_a_secret_that_a_file_needs_and_that_is_not_there_is_told(world: World) -> None:
    await world.ready()
    await world.machine("w", {"files": [{"path": "/a", "contentFrom": {"secret": {"name": "none", "key": "k"}}}]})
    reconciler = world.reconciler()
    with pytest.raises(OperatorError, match="secret not found"):
        await world.reconcile(reconciler, "w")
    await world.secret("none", {"k": b"here"})
    await world.reconcile(reconciler, "w")
    assert files(await world.data("w"))["/a"] == "here\n"


# A control plane that changes.


async def test_data_that_no_host_has_read_is_rendered_anew_for_a_new_control_plane(world: World) -> None:
    await world.ready("v1.34.0")
    await world.machine("w")
    reconciler = world.reconciler()
    await world.reconcile(reconciler, "w")
    before = bootstrap_token(await world.config("w"))
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": "v1.35.0"}})
    assert await world.reconcile(reconciler, "w") == CHECK
    assert files(await world.data("w"))["/run/cluster-api/kubeadm-version/version"] == "v1.35.0\n"
    # A host that had read the old data at this very moment must be able to join all the same.
    assert bootstrap_token(await world.config("w")) == before
    assert len(await world.tokens()) == 1
    condition = await world.condition("w", VERSION_CONDITION)
    assert condition["message"] == (
        "Join data is for Kubernetes v1.35.0, read from KubeadmControlPlane cp; "
        "rendered anew, as the control plane had v1.34.0 before and no host had used the data yet"
    )
    # The note stays.
    await world.reconcile(world.reconciler(), "w")
    assert await world.condition("w", VERSION_CONDITION) == condition


async def test_data_that_cannot_be_rendered_anew_stands_and_the_conditions_say_so(world: World) -> None:
    await world.ready("v1.34.0")
    await world.secret("motd", {"text": b"hello"})
    source = {"secret": {"name": "motd", "key": "text"}}
    await world.machine("w", {"files": [{"path": "/etc/motd", "contentFrom": source}]})
    reconciler = world.reconciler()
    await world.reconcile(reconciler, "w")
    before = await world.data("w")
    await world.client.delete(SECRET, "motd", world.namespace)
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": "v1.35.0"}})
    with pytest.raises(OperatorError, match="secret not found"):
        await world.reconcile(reconciler, "w")
    assert await world.data("w") == before
    condition = await world.condition("w", VERSION_CONDITION)
    assert (condition["status"], condition["reason"]) == ("False", "RenderingFailed")
    assert condition["message"].startswith(
        "Join data is for Kubernetes v1.34.0, and could not be rendered anew: Failed to prepare spec.files"
    )
    condition = await world.condition("w", "DataSecretAvailable")
    assert (condition["status"], condition["message"].partition(",")[0]) == ("True", "The data is for Kubernetes v1.34.0")
    await world.secret("motd", {"text": b"hello"})
    await world.reconcile(reconciler, "w")
    assert "v1.35.0" in await world.data("w")
    assert "rendered anew, as the control plane had v1.34.0 before" in (await world.condition("w", VERSION_CONDITION))["message"]
    assert (await world.condition("w", "DataSecretAvailable"))["message"] == ""


async def test_the_version_condition_goes_when_the_machines_version_decides(world: World) -> None:
    await world.ready()
    await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    await world.joined("w")
    await world.reconcile(world.reconciler(BootstrapOptions(join_version="machine")), "w")
    conditions = (await world.config("w"))["status"]["conditions"]
    assert VERSION_CONDITION not in [condition["type"] for condition in conditions]


@pytest.mark.parametrize("state", ["provisioned", "joined"])
async def test_data_that_a_host_has_read_stays_as_it_is(world: World, state: str) -> None:
    await world.ready("v1.34.0")
    await world.machine("w")
    reconciler = world.reconciler()
    await world.reconcile(reconciler, "w")
    before = await world.data("w")
    await (world.provisioned("w") if state == "provisioned" else world.joined("w"))
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"spec": {"version": "v1.35.0"}})
    await world.reconcile(reconciler, "w")
    await world.reconcile(world.reconciler(), "w")
    assert await world.data("w") == before


async def test_control_planes_are_watched_once_a_cluster_refers_to_one(world: World) -> None:
    await world.ready()
    await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    [watch] = world.watched
    assert watch.kind == KUBEADM_CONTROL_PLANE
    assert watch.requests is not None
    found = await eventually(lambda: world.cache.get(watch.kind, "cp", world.namespace), "the control plane is cached")
    assert list(await watch.requests(found, world.cache)) == [(world.namespace, "w")]


# Tokens.


async def test_a_token_is_a_secret_of_the_workload_cluster(world: World) -> None:
    await world.ready()
    config = await world.machine("w")
    now = datetime(2030, 1, 1, tzinfo=UTC)
    await world.reconcile(world.reconciler(now=lambda: now), "w")
    [token] = await world.tokens()
    data = {key: b64decode(value).decode() for key, value in token["data"].items()}
    assert token["type"] == "bootstrap.kubernetes.io/token"
    assert f"{data['token-id']}.{data['token-secret']}" == bootstrap_token(await world.config("w"))["token"]
    assert data["expiration"] == "2030-01-01T02:00:00Z"
    assert data["auth-extra-groups"] == "system:bootstrappers:kubeadm:default-node-token"
    assert (data["usage-bootstrap-authentication"], data["usage-bootstrap-signing"]) == ("true", "true")
    assert token["metadata"]["annotations"]["bootstrap.slipway.io/kubeadmconfig-uid"] == config["metadata"]["uid"]


async def test_a_token_is_refreshed_while_its_machine_has_no_node_and_removed_when_it_has(world: World) -> None:
    await world.ready()
    await world.machine("w")
    start = datetime.now(UTC).replace(microsecond=0)
    moment = [start]
    reconciler = world.reconciler(now=lambda: moment[0])
    await world.reconcile(reconciler, "w")

    async def ends() -> datetime:
        [token] = await world.tokens()
        return datetime.fromisoformat(b64decode(token["data"]["expiration"]).decode())

    moment[0] = start + TTL / 6 - timedelta(seconds=1)
    assert await world.reconcile(reconciler, "w") == CHECK
    assert await ends() == start + TTL
    moment[0] = start + TTL / 3
    assert await world.reconcile(reconciler, "w") == CHECK
    assert await ends() == moment[0] + TTL
    # Provisioned is not joined.
    moment[0] += TTL / 3
    await world.provisioned("w")
    assert await world.reconcile(world.reconciler(now=lambda: moment[0]), "w") == CHECK
    assert await ends() == moment[0] + TTL
    await world.joined("w")
    assert await world.reconcile(reconciler, "w") == DONE
    assert await world.tokens() == []


async def test_a_token_that_ended_while_nobody_looked_is_the_same_again(world: World) -> None:
    await world.ready()
    await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    [token] = await world.tokens()
    await world.client.delete(SECRET, token["metadata"]["name"], "kube-system")
    data = await world.data("w")
    assert await world.reconcile(world.reconciler(), "w") == CHECK
    [again] = await world.tokens()
    assert (again["data"]["token-id"], again["data"]["token-secret"]) == (token["data"]["token-id"], token["data"]["token-secret"])
    assert await world.data("w") == data


async def test_a_token_of_the_users_own_that_is_gone_is_an_error(world: World) -> None:
    await world.ready()
    await world.machine("w", {"joinConfiguration": {"discovery": {"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}}})
    await world.reconcile(world.reconciler(), "w")
    with pytest.raises(OperatorError, match="failed to get bootstrap token secret in order to refresh it"):
        await world.reconcile(world.reconciler(), "w")
    assert (await world.condition("w", "Ready"))["status"] == "True"
    assert await world.tokens() == []


async def test_a_token_of_a_kubeadmconfig_that_is_deleted_goes_with_it(world: World) -> None:
    await world.ready()
    await world.machine("w")
    reconciler = world.reconciler()
    await world.reconcile(reconciler, "w")
    await world.client.delete(KUBEADM_CONFIG, "w", world.namespace)
    assert await world.reconcile(reconciler, "w") == DONE
    assert await world.tokens() == []


async def test_the_token_of_a_pool_is_rotated_and_its_data_with_it(world: World) -> None:
    await world.ready()
    await world.pool("p")
    start = datetime.now(UTC)
    moment = [start]
    reconciler = world.reconciler(now=lambda: moment[0])
    await world.reconcile(reconciler, "p")
    first = bootstrap_token(await world.config("p"))["token"]
    await world.patch(MACHINE_POOL, "p", {"status": {"nodeRefs": [{"name": "n"}]}}, subresource="status")
    moment[0] = start + TTL / 2 - timedelta(seconds=2)
    await world.reconcile(reconciler, "p")
    assert bootstrap_token(await world.config("p"))["token"] == first
    moment[0] = start + TTL / 2 + timedelta(seconds=2)
    assert await world.reconcile(reconciler, "p") == CHECK
    second = bootstrap_token(await world.config("p"))["token"]
    assert second != first
    assert second in await world.data("p")
    assert len(await world.tokens()) == 2
    # A pool that lost its token gets another one.
    await world.client.delete(SECRET, f"bootstrap-token-{second[:6]}", "kube-system")
    await world.reconcile(world.reconciler(now=lambda: moment[0]), "p")
    assert bootstrap_token(await world.config("p"))["token"] not in (first, second)


# Discovery that users chose.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"bootstrapToken": {"apiServerEndpoint": "bar.com:6443"}}, {"apiServerEndpoint": "bar.com:6443"}),
        ({"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}, {"token": "abcdef.0123456789abcdef"}),
        ({"bootstrapToken": {"caCertHashes": ["sha256:" + "a" * 64]}}, {"caCertHashes": ["sha256:" + "a" * 64]}),
    ],
)
async def test_what_users_say_about_discovery_stays(world: World, given: dict[str, Any], expected: dict[str, Any]) -> None:
    await world.ready()
    await world.machine("w", {"joinConfiguration": {"discovery": given}})
    await world.reconcile(world.reconciler(), "w")
    found = bootstrap_token(await world.config("w"))
    assert expected.items() <= found.items()
    assert {"apiServerEndpoint", "token", "caCertHashes"} == found.keys()


async def test_discovery_by_a_kubeconfig_is_completed_and_written_to_the_host(world: World) -> None:
    await world.ready()
    user = {"exec": {"command": "/usr/bin/bootstrap"}}
    await world.machine("w", {"joinConfiguration": {"discovery": {"file": {"kubeConfigPath": "/k.yaml", "kubeConfig": {"user": user}}}}})
    assert await world.reconcile(world.reconciler(), "w") == CHECK
    discovery = (await world.config("w"))["spec"]["joinConfiguration"]["discovery"]
    assert discovery["file"]["kubeConfig"]["cluster"] == {
        "server": "https://10.0.0.1:6443",
        "certificateAuthorityData": b64encode(CA_PAIR.certificate).decode(),
    }
    assert "server: https://10.0.0.1:6443" in files(await world.data("w"))["/k.yaml"]
    assert await world.tokens() == []
    assert await world.reconcile(world.reconciler(), "w") == DONE


async def test_a_join_waits_for_the_endpoint(world: World) -> None:
    await world.cluster(endpoint=False)
    await world.control_plane("v1.35.0")
    await world.certificates()
    await world.machine("w")
    assert await world.reconcile(world.reconciler(), "w") == Result(10.0)
    assert (await world.condition("w", "DataSecretAvailable"))["message"] == "Waiting for Cluster spec.controlPlaneEndpoint to be set"


# Waiting.


async def test_nothing_happens_without_an_owner_or_a_cluster(world: World) -> None:
    await world.client.create(KUBEADM_CONFIG, {"metadata": {"name": "alone", "namespace": world.namespace}})
    await world.machine("w")
    for name in ("alone", "w", "no-such-config"):
        assert await world.reconcile(world.reconciler(), name) == DONE
    assert not (await world.config("w")).get("status")


async def test_data_waits_for_the_infrastructure_of_the_cluster(world: World) -> None:
    await world.cluster(provisioned=False)
    await world.machine("w")
    assert await world.reconcile(world.reconciler(), "w") == DONE
    condition = await world.condition("w", "DataSecretAvailable")
    assert (condition["status"], condition["reason"]) == ("False", "NotAvailable")
    assert condition["message"] == "Waiting for Cluster status.infrastructureReady to be true"
    ready = await world.condition("w", "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "NotReady")
    older = (await world.config("w"))["status"]["deprecated"]["v1beta1"]["conditions"]
    assert [(condition["type"], condition["status"], condition["reason"], condition["severity"]) for condition in older] == [
        ("Ready", "False", "WaitingForClusterInfrastructure", "Info"),
        ("DataSecretAvailable", "False", "WaitingForClusterInfrastructure", "Info"),
    ]


async def test_workers_wait_for_the_control_plane(world: World) -> None:
    await world.cluster(initialized=False)
    await world.machine("w")
    assert await world.reconcile(world.reconciler(), "w") == Result(30.0)
    assert (await world.condition("w", "DataSecretAvailable"))["message"] == "Waiting for Cluster control plane to be initialized"


@pytest.mark.parametrize("by", ["cluster", "annotation"])
async def test_a_paused_kubeadmconfig_is_left_alone_and_says_why(world: World, by: str) -> None:
    await world.ready()
    await world.machine("w")
    if by == "cluster":
        await world.patch(CLUSTER, "c", {"spec": {"paused": True}})
        message = "Cluster spec.paused is set to true"
    else:
        await world.patch(KUBEADM_CONFIG, "w", {"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}})
        message = "KubeadmConfig has the cluster.x-k8s.io/paused annotation"
    reconciler = world.reconciler()
    assert await world.reconcile(reconciler, "w") == DONE
    condition = await world.condition("w", "Paused")
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Paused", message)
    assert await world.client.find(SECRET, "w", world.namespace) is None
    if by == "cluster":
        await world.patch(CLUSTER, "c", {"spec": {"paused": None}})
    else:
        await world.patch(KUBEADM_CONFIG, "w", {"metadata": {"annotations": None}})
    await world.reconcile(reconciler, "w")
    assert (await world.condition("w", "Paused"))["status"] == "False"
    assert (await world.condition("w", "Ready"))["status"] == "True"


# After a move, and other people's hands.


async def test_the_status_is_restored_after_a_move(world: World) -> None:
    await world.ready()
    await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    await world.patch(MACHINE, "w", {"spec": {"bootstrap": {"dataSecretName": "w"}}})
    await world.patch(KUBEADM_CONFIG, "w", {"status": None}, subresource="status")
    secret = await world.client.get(SECRET, "w", world.namespace)
    reconciler = world.reconciler()
    assert await world.reconcile(reconciler, "w") == DONE
    status = (await world.config("w"))["status"]
    assert (status["dataSecretName"], status["initialization"]) == ("w", {"dataSecretCreated": True})
    assert (await world.condition("w", "Ready"))["status"] == "True"
    assert await world.reconcile(reconciler, "w") == CHECK
    assert await world.client.get(SECRET, "w", world.namespace) == secret


async def test_the_data_secret_becomes_the_kubeadmconfigs_again(world: World) -> None:
    await world.ready()
    config = await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    stale = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": "w", "uid": config["metadata"]["uid"]}
    await world.patch(SECRET, "w", {"metadata": {"ownerReferences": [stale]}})
    await world.reconcile(world.reconciler(), "w")
    secret = await world.client.get(SECRET, "w", world.namespace)
    assert secret["metadata"]["ownerReferences"] == [{**stale, "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "controller": True}]


async def test_a_data_secret_that_something_else_controls_is_an_error(world: World) -> None:
    await world.ready()
    config = await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "w", "uid": config["metadata"]["uid"], "controller": True}
    await world.patch(SECRET, "w", {"metadata": {"ownerReferences": [other]}})
    with pytest.raises(
        OperatorError,
        match="bootstrap Secret w, it is already controlled by ConfigMap w",
    ):
        await world.reconcile(world.reconciler(), "w")


@pytest.mark.parametrize("control_plane", [False, True])
async def test_a_secret_of_a_users_own_is_never_written_over(world: World, control_plane: bool) -> None:
    await world.ready() if not control_plane else await world.cluster(initialized=False, reference=False)
    mine = {"metadata": {"name": "w", "namespace": world.namespace}, "type": "Opaque", "data": {"text": b64encode(b"mine").decode()}}
    await world.client.create(SECRET, mine)
    source = {"secret": {"name": "w", "key": "text"}}
    await world.machine("w", {"files": [{"path": "/etc/motd", "contentFrom": source}]}, control_plane=control_plane)
    with pytest.raises(OperatorError, match="was not made for the KubeadmConfig w and is left as it is: it is of type Opaque"):
        await world.reconcile(world.reconciler(), "w")
    secret = await world.client.get(SECRET, "w", world.namespace)
    assert (secret["data"], secret["metadata"].get("ownerReferences")) == (mine["data"], None)
    condition = await world.condition("w", "DataSecretAvailable")
    assert condition["status"] == "False"
    assert condition["message"].startswith(f"Failed to create bootstrap data: the Secret {world.namespace}/w was not made for")
    # Another machine may initialize the cluster.
    assert await world.lock() is None


async def test_a_data_secret_that_was_deleted_before_a_host_read_it_is_made_again(world: World) -> None:
    await world.ready()
    await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    data = await world.data("w")
    await world.client.delete(SECRET, "w", world.namespace)
    await world.reconcile(world.reconciler(), "w")
    assert await world.data("w") == data
    assert len(await world.tokens()) == 1
    await world.joined("w")
    await world.client.delete(SECRET, "w", world.namespace)
    await world.reconcile(world.reconciler(), "w")
    assert await world.client.find(SECRET, "w", world.namespace) is None


async def test_a_conflict_is_resolved_without_a_second_token(world: World) -> None:
    await world.ready()
    await world.machine("w")
    reconciler = world.reconciler()
    await world.settle()
    # Somebody labels it between our reading and our writing.
    await world.patch(KUBEADM_CONFIG, "w", {"metadata": {"labels": {"other": "hand"}}})
    await reconciler.reconcile((await world.cache.get(KUBEADM_CONFIG, "w", world.namespace)).request)  # type: ignore[union-attr]
    config = await world.config("w")
    assert config["metadata"]["labels"]["other"] == "hand"
    assert config["status"]["dataSecretName"] == "w"
    assert len(await world.tokens()) == 1


async def test_a_ca_that_is_gone_is_told_by_the_condition(world: World) -> None:
    await world.ready()
    await world.client.delete(SECRET, "c-ca", world.namespace)
    await world.machine("w")
    with pytest.raises(OperatorError, match=f"there is no Secret {world.namespace}/c-ca"):
        await world.reconcile(world.reconciler(), "w")
    condition = await world.condition("w", "CertificatesAvailable")
    assert (condition["status"], condition["reason"]) == ("Unknown", "InternalError")
    older = (await world.config("w"))["status"]["deprecated"]["v1beta1"]["conditions"]
    assert ("CertificatesAvailable", "CertificatesCorrupted", "Error") in [
        (condition["type"], condition.get("reason"), condition.get("severity")) for condition in older
    ]
    assert await world.tokens() == []


async def test_a_workload_cluster_without_a_kubeconfig_is_told_by_the_condition(world: World) -> None:
    await world.cluster()
    await world.control_plane("v1.35.0")
    await world.certificates()
    await world.machine("w")
    with pytest.raises(OperatorError, match="failed to create new bootstrap token: cannot reach the workload cluster"):
        await world.reconcile(world.reconciler(), "w")
    assert f"there is no Secret {world.namespace}/c-kubeconfig" in (await world.condition("w", "DataSecretAvailable"))["message"]


async def test_failures_are_told_by_an_event(world: World) -> None:
    await world.cluster()
    await world.machine("w")
    with pytest.raises(OperatorError):
        await world.reconcile(world.reconciler(), "w")

    async def told() -> list[dict[str, Any]]:
        events = await world.client.list(CORE_EVENT, world.namespace)
        return [event for event in events if event["involvedObject"]["name"] == "w"]

    [event] = await eventually(told, "there is an Event")
    assert (event["type"], event["reason"]) == ("Warning", "BootstrapFailed")


async def test_a_crd_without_the_contract_label_is_named(world: World) -> None:
    if world.strict:
        pytest.skip("the CRDs are not ours to change there")
    await world.cluster()
    await world.control_plane("v1.35.0")
    await world.certificates()
    await world.machine("w")
    name = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"
    labels = (await world.client.get(CUSTOM_RESOURCE_DEFINITION, name))["metadata"]["labels"]

    async def label(wanted: dict[str, str] | None) -> None:
        await world.client.patch(CUSTOM_RESOURCE_DEFINITION, name, "", {"metadata": {"labels": wanted}}, type=PatchType.MERGE)

    await label(None)
    try:
        with pytest.raises(VersionUnreadableError, match=f"the CustomResourceDefinition {name} says by no label"):
            await world.reconcile(world.reconciler(), "w")
    finally:
        # The server may be that of other tests, too.
        await label(labels)


# Control planes.


async def test_the_first_control_plane_machine_takes_the_lock_and_gets_init_data(world: World) -> None:
    await world.cluster(initialized=False)
    await world.control_plane("v1.35.0")
    await world.certificates()
    await world.machine("cp-0", {"clusterConfiguration": {"certificatesDir": "/pki"}}, control_plane=True, version="v1.35.0")
    assert await world.reconcile(world.reconciler(), "cp-0") == DONE
    config = await world.config("cp-0")
    assert config["spec"]["clusterConfiguration"] == {"certificatesDir": "/pki", "controlPlaneEndpoint": "10.0.0.1:6443"}
    written = files(await world.data("cp-0"))
    assert {
        "/pki/ca.crt",
        "/pki/ca.key",
        "/pki/etcd/ca.crt",
        "/pki/etcd/ca.key",
        "/pki/sa.key",
        "/pki/front-proxy-ca.key",
    } <= written.keys()
    assert written["/pki/ca.crt"] == CA_PAIR.certificate.decode()
    kubeadm = written["/run/kubeadm/kubeadm.yaml"]
    assert "clusterName: c\n" in kubeadm
    assert "kubernetesVersion: v1.35.0\n" in kubeadm
    assert "podSubnet: 192.168.0.0/16\n" in kubeadm
    lock = await world.lock()
    assert lock is not None
    assert lock["data"] == {"lock-information": '{"machineName":"cp-0"}'}
    assert lock["metadata"]["ownerReferences"][0]["kind"] == "Cluster"


async def test_a_cluster_that_is_made_anew_at_once_has_none_of_the_certificates_of_the_one_before(world: World) -> None:
    await world.ready()
    reconciler = world.reconciler()
    await world.machine("old", control_plane=True)
    await world.reconcile(reconciler, "old")
    assert files(await world.data("old"))["/etc/kubernetes/pki/ca.crt"] == CA_PAIR.certificate.decode()
    other = certificates.generate(certificates.CA, "ECDSA-P256", 10, datetime.now(UTC))
    await world.client.delete(SECRET, "c-ca", world.namespace)
    await world.secret("c-ca", {"tls.crt": other.certificate, "tls.key": other.key})
    await world.cluster_status(initialized=False)
    await world.machine("new", control_plane=True)
    await world.reconcile(reconciler, "new")
    assert files(await world.data("new"))["/etc/kubernetes/pki/ca.crt"] == other.certificate.decode()


async def test_a_first_control_plane_that_is_restored_runs_the_script_before_kubeadm(world: World) -> None:
    await world.cluster(initialized=False)
    await world.control_plane("v1.35.0")
    await world.certificates()
    spec = {"preKubeadmCommands": ["echo mine"], "initConfiguration": {"nodeRegistration": {"ignorePreflightErrors": ["Swap"]}}}
    await world.machine("cp-0", spec, control_plane=True, version="v1.35.0")
    patch = {"metadata": {"annotations": {"slipway.io/restore-secret": "c-restore"}}}
    await world.client.patch(KUBEADM_CONFIG, "cp-0", world.namespace, patch, type=PatchType.MERGE)
    with pytest.raises(InputError, match="there is no script to restore etcd with in the Secret"):
        await world.reconcile(world.reconciler(), "cp-0")
    secret = {"metadata": {"name": "c-restore", "namespace": world.namespace}, "stringData": {"script": "#!/bin/sh\necho restored\n"}}
    await world.client.create(SECRET, secret)
    assert await world.reconcile(world.reconciler(), "cp-0") == DONE
    data = await world.data("cp-0")
    written = files(data)
    assert written["/etc/slipway/restore-etcd.sh"] == "#!/bin/sh\necho restored\n"
    assert "- Swap\n  - DirAvailable--var-lib-etcd\n" in written["/run/kubeadm/kubeadm.yaml"]
    mine, script, kubeadm = (data.rindex(text) for text in ("echo mine", "/etc/slipway/restore-etcd.sh", "kubeadm init"))
    assert mine < script < kubeadm
    # The spec says what the control plane wants, not how this one machine got its data.
    assert (await world.config("cp-0"))["spec"]["preKubeadmCommands"] == ["echo mine"]


async def test_exactly_one_control_plane_machine_initializes(world: World) -> None:
    await world.cluster(initialized=False, reference=False)
    await world.machine("cp-0", control_plane=True)
    await world.machine("cp-1", control_plane=True)
    reconciler = world.reconciler()
    assert await world.reconcile(reconciler, "cp-0") == DONE
    assert await world.reconcile(reconciler, "cp-1") == Result(30.0)
    assert (await world.condition("cp-1", "DataSecretAvailable"))["message"] == "Waiting for Cluster control plane to be initialized"
    assert await world.client.find(SECRET, "cp-1", world.namespace) is None


async def test_the_lock_goes_when_the_control_plane_is_there(world: World) -> None:
    await world.cluster(initialized=False)
    await world.control_plane("v1.35.0")
    await world.certificates()
    await world.machine("cp-0", control_plane=True)
    reconciler = world.reconciler()
    await world.reconcile(reconciler, "cp-0")
    await world.cluster_status(initialized=True)
    await world.reconcile(reconciler, "cp-0")
    assert await world.lock() is None


async def test_the_first_join_releases_the_lock(world: World) -> None:
    await world.ready()
    lock = {"metadata": {"name": "c-lock", "namespace": world.namespace}, "data": {"lock-information": '{"machineName":"cp-0"}'}}
    await world.client.create(CONFIG_MAP, lock)
    await world.machine("w")
    await world.reconcile(world.reconciler(), "w")
    assert await world.lock() is None


async def test_a_failed_init_releases_the_lock(world: World) -> None:
    await world.cluster(initialized=False)
    await world.machine("cp-0", control_plane=True)
    with pytest.raises(OperatorError, match="missing certificate"):
        await world.reconcile(world.reconciler(), "cp-0")
    assert await world.lock() is None
    older = (await world.config("cp-0"))["status"]["deprecated"]["v1beta1"]["conditions"]
    assert ("CertificatesAvailable", "CertificatesGenerationFailed", "Warning") in [
        (condition["type"], condition.get("reason"), condition.get("severity")) for condition in older
    ]


@pytest.mark.parametrize(
    ("additions", "message"),
    [
        ("storage: &a\n  <<: *a\n", "yaml: anchor 'a' value contains itself"),
        (f"a: {'[' * 20_000}", "yaml: line 1: exceeded max depth of 300"),
        (f"version: {'1' * 5_000}", "line 1: cannot unmarshal !!str `1111111...` into int"),
        ("a: 1\n" * 6_000, 'line 2: mapping key "a" already defined at line 1'),
    ],
)
async def test_ignition_additions_that_cannot_be_read_are_told_by_the_condition_and_release_the_lock(
    world: World, additions: str, message: str
) -> None:
    await world.cluster(initialized=False)
    await world.certificates()
    spec = {"format": "ignition", "ignition": {"containerLinuxConfig": {"additionalConfig": additions}}}
    await world.machine("cp-0", spec, control_plane=True)
    with pytest.raises(OperatorError, match=re.escape(message)):
        await world.reconcile(world.reconciler(), "cp-0")
    condition = await world.condition("cp-0", "DataSecretAvailable")
    assert condition["status"] == "False"
    assert message in condition["message"]
    assert await world.lock() is None


async def test_data_that_fits_into_no_secret_is_told_before_it_is_written(world: World) -> None:
    await world.cluster(initialized=False)
    await world.certificates()
    await world.secret("large", {"k": b"a" * 600_000})
    source = {"secret": {"name": "large", "key": "k"}}
    await world.machine("cp-0", {"files": [{"path": path, "contentFrom": source} for path in ("/a", "/b")]}, control_plane=True)
    with pytest.raises(OperatorError, match="a Secret holds at most 1048576"):
        await world.reconcile(world.reconciler(), "cp-0")
    assert await world.lock() is None


async def test_without_a_control_plane_object_certificates_are_made_once(world: World) -> None:
    await world.cluster(initialized=False, reference=False)
    config = await world.machine("cp-0", {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}}, control_plane=True)
    await world.reconcile(world.reconciler(), "cp-0")
    secrets = {}
    for purpose in ("ca", "etcd", "sa", "proxy"):
        secret = secrets[purpose] = await world.client.get(SECRET, f"c-{purpose}", world.namespace)
        assert secret["type"] == "cluster.x-k8s.io/secret"
        assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "c"}
        assert secret["metadata"]["ownerReferences"][0]["uid"] == config["metadata"]["uid"]
        assert sorted(secret["data"]) == ["tls.crt", "tls.key"]
    await world.client.delete(SECRET, "cp-0", world.namespace)
    await world.reconcile(world.reconciler(), "cp-0")
    for purpose, secret in secrets.items():
        assert await world.client.get(SECRET, f"c-{purpose}", world.namespace) == secret
    ca = b64decode(secrets["ca"]["data"]["tls.crt"]).decode()
    assert files(await world.data("cp-0"))["/etc/kubernetes/pki/ca.crt"] == ca


async def test_another_control_plane_machine_joins_with_its_own_version(world: World) -> None:
    await world.ready("v1.35.0")
    before = await world.machine("cp-1", {"joinConfiguration": {"nodeRegistration": {"name": "x"}}}, control_plane=True, version="v1.30.0")
    assert await world.reconcile(world.reconciler(), "cp-1") == CHECK
    config = await world.config("cp-1")
    join = config["spec"]["joinConfiguration"]
    assert join.pop("controlPlane") == {}
    assert join.pop("discovery")["bootstrapToken"]["token"]
    assert config["spec"] == before["spec"]
    written = files(await world.data("cp-1"))
    assert "apiVersion: kubeadm.k8s.io/v1beta3" in written["/run/kubeadm/kubeadm-join-config.yaml"]
    assert "controlPlane:" in written["/run/kubeadm/kubeadm-join-config.yaml"]
    assert written["/etc/kubernetes/pki/ca.key"] == CA_PAIR.key.decode()
    assert "/run/cluster-api/kubeadm-version/version" not in written


async def test_external_etcd_needs_its_certificates_and_no_key_of_its_ca(world: World) -> None:
    await world.cluster(initialized=False, reference=False)
    external = {"endpoints": ["https://10.0.0.9:2379"], "caFile": "/e/ca.crt", "certFile": "/e/client.crt", "keyFile": "/e/client.key"}
    await world.machine("cp-0", {"clusterConfiguration": {"etcd": {"external": external}}}, control_plane=True)
    reconciler = world.reconciler()
    with pytest.raises(OperatorError, match="external certificate not found"):
        await world.reconcile(reconciler, "cp-0")
    for condition in ("DataSecretAvailable", "Ready"):
        told = await world.condition("cp-0", condition)
        assert told["status"] == "False"
        assert "external certificate not found: there is no Secret" in told["message"]
    await world.secret("c-etcd", {"tls.crt": CA_PAIR.certificate})
    await world.secret("c-apiserver-etcd-client", {"tls.crt": b"client\n", "tls.key": b"key\n"})
    await world.reconcile(reconciler, "cp-0")
    written = files(await world.data("cp-0"))
    assert written["/e/ca.crt"] == CA_PAIR.certificate.decode()
    assert (written["/e/client.crt"], written["/e/client.key"]) == ("client\n", "key\n")
    assert not any(path.startswith("/etc/kubernetes/pki/etcd") for path in written)


async def test_a_worker_that_is_configured_as_a_control_plane_is_refused(world: World) -> None:
    await world.ready()
    await world.machine("w", {"joinConfiguration": {"controlPlane": {}}})
    with pytest.raises(OperatorError, match=r"Machine is a Worker, but JoinConfiguration\.ControlPlane is set"):
        await world.reconcile(world.reconciler(), "w")
    assert await world.tokens() == []
