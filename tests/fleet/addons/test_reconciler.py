"""ClusterResourceSets at work: what Clusters get, what is written down, and what is said where it goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256

import pytest
import pytest_asyncio
from fleet.addons.stage import CONFIG, PLACE, Stage

from slipway.api.cluster.kinds import (
    CLUSTER,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    SECRET,
)
from slipway.fleet.addons.reconciler import LOOK_AGAIN, RETRY
from slipway.kube.aio import PatchType

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with Stage() as made:
        yield made


async def test_a_cluster_that_is_chosen_gets_the_manifests(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1) + "---\n" + CONFIG % ("two", 2))
    await stage.resource_set("calico")
    await stage.run()
    assert (await stage.applied("one") or {})["data"] == {"mtu": "1"}
    assert (await stage.applied("two") or {})["data"] == {"mtu": "2"}
    assert await stage.condition() == ("True", "Applied", "")
    assert await stage.deprecated() == ("True", "", "")
    assert await stage.condition(type_="Paused") == ("False", "NotPaused", "")
    assert (await stage.get(CLUSTER_RESOURCE_SET, "cni"))["status"]["observedGeneration"] == 1


async def test_what_was_applied_is_written_down_with_its_hash(stage: Stage) -> None:
    await stage.cluster()
    text = CONFIG % ("one", 1)
    await stage.config_map("calico", text)
    made = await stage.resource_set("calico")
    await stage.run()
    binding = await stage.get(CLUSTER_RESOURCE_SET_BINDING, "c")
    assert binding["spec"]["clusterName"] == "c"
    ((resource,),) = [each["resources"] for each in binding["spec"]["bindings"]]
    assert resource.pop("lastAppliedTime")
    assert resource == {"kind": "ConfigMap", "name": "calico", "applied": True, "hash": f"sha256:{sha256(text.encode()).hexdigest()}"}
    owner = {
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
        "kind": "ClusterResourceSet",
        "name": "cni",
        "uid": made["metadata"]["uid"],
    }
    assert binding["metadata"]["ownerReferences"] == [owner]
    assert (await stage.get(CONFIG_MAP, "calico"))["metadata"]["ownerReferences"] == [owner]


async def test_definitions_and_namespaces_come_before_what_needs_them(stage: Stage) -> None:
    await stage.cluster()
    first = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: made}}"
    text = f"{first}\n---\n{{apiVersion: v1, kind: Namespace, metadata: {{name: made}}}}"
    await stage.config_map("calico", text)
    await stage.resource_set("calico")
    await stage.run()
    assert await stage.remote.find(NAMESPACE, "made") is not None
    assert await stage.remote.find(CONFIG_MAP, "one", "made") is not None


async def test_a_list_of_json_is_taken_too(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", '[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"kube-system"}}]')
    await stage.resource_set("calico")
    await stage.run()
    assert await stage.applied("one") is not None


async def test_objects_without_a_namespace_go_to_default(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}")
    await stage.resource_set("calico")
    await stage.run()
    assert await stage.remote.find(CONFIG_MAP, "one", "default") is not None


async def test_applied_once_is_left_alone(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    await stage.run()
    await stage.config_map("calico", CONFIG % ("one", 2))
    await stage.remote.delete(CONFIG_MAP, "one", "kube-system")
    await stage.run()
    assert await stage.applied("one") is None
    assert await stage.condition() == ("True", "Applied", "")


async def test_applied_once_keeps_what_was_there(stage: Stage) -> None:
    await stage.cluster()
    await stage.remote.create(CONFIG_MAP, {"metadata": {"name": "one", "namespace": "kube-system"}, "data": {"mtu": "mine"}})
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    await stage.run()
    assert (await stage.applied("one") or {})["data"] == {"mtu": "mine"}
    assert await stage.bound() == {"cni": {"calico": True}}


async def test_reconcile_applies_again_what_changed(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico", strategy="Reconcile")
    await stage.run()
    await stage.config_map("calico", CONFIG % ("one", 2))
    await stage.run()
    assert (await stage.applied("one") or {})["data"] == {"mtu": "2"}


async def test_reconcile_takes_nothing_away_that_others_added(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico", strategy="Reconcile")
    await stage.run()
    added = {"metadata": {"finalizers": ["example.com/theirs"]}, "data": {"extra": "x"}}
    await stage.remote.patch(CONFIG_MAP, "one", "kube-system", added, type=PatchType.MERGE)
    await stage.config_map("calico", CONFIG % ("one", 2))
    await stage.run()
    found = await stage.applied("one") or {}
    assert (found["data"], found["metadata"]["finalizers"]) == ({"mtu": "2", "extra": "x"}, ["example.com/theirs"])


async def test_what_is_unchanged_is_not_written_again(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico", strategy="Reconcile")
    await stage.run()
    before = await stage.get(CLUSTER_RESOURCE_SET_BINDING, "c")
    await stage.remote.delete(CONFIG_MAP, "one", "kube-system")
    await stage.run()
    assert await stage.get(CLUSTER_RESOURCE_SET_BINDING, "c") == before
    assert await stage.applied("one") is None


async def test_a_secret_of_the_right_type_is_applied_and_looked_at_again(stage: Stage) -> None:
    await stage.cluster()
    await stage.secret("pull", CONFIG % ("one", 1))
    await stage.resource_set("Secret/pull")
    result = await stage.run()
    assert await stage.applied("one") is not None
    assert result.requeue_after == LOOK_AGAIN


async def test_a_secret_of_another_type_is_refused(stage: Stage) -> None:
    await stage.cluster()
    await stage.secret("pull", CONFIG % ("one", 1), "Opaque")
    await stage.config_map("calico", CONFIG % ("two", 2))
    await stage.resource_set("Secret/pull", "calico")
    await stage.run()
    assert await stage.condition() == (
        "False",
        "WrongSecretType",
        "Secret type of resource pull is not supported: it must be addons.cluster.x-k8s.io/resource-set",
    )
    assert await stage.deprecated() == ("False", "Warning", "WrongSecretType")
    assert await stage.applied("one") is None
    assert "ownerReferences" not in (await stage.get(SECRET, "pull"))["metadata"]
    assert await stage.applied("two") is not None


async def test_a_config_map_that_is_missing_does_not_hold_up_the_others(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("nothing", "calico")
    await stage.run()
    assert await stage.condition() == ("False", "InternalError", "the ConfigMap nothing does not exist")
    assert await stage.deprecated() == ("False", "Warning", "RetrievingResourceFailed")
    assert await stage.applied("one") is not None
    await stage.config_map("nothing", CONFIG % ("late", 1))
    await stage.run()
    assert await stage.condition() == ("True", "Applied", "")
    assert await stage.bound() == {"cni": {"calico": True, "nothing": True}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "manifests.yaml of the ConfigMap bad:1: this is not valid YAML"),
        ("just text", "document 1 in manifests.yaml of the ConfigMap bad is no object"),
        ("kind: ConfigMap", "document 1 in manifests.yaml of the ConfigMap bad has no apiVersion"),
        ("apiVersion: v1", "document 1 in manifests.yaml of the ConfigMap bad has no kind"),
        ("{apiVersion: v1, kind: Pod}", "document 1 in manifests.yaml of the ConfigMap bad, a Pod, has no metadata.name"),
        ("[1", "manifests.yaml of the ConfigMap bad begins as a list of JSON and is none"),
    ],
)
async def test_text_that_is_no_manifest_is_told_and_does_not_hold_up_the_others(stage: Stage, text: str, told: str) -> None:
    await stage.cluster()
    await stage.config_map("bad", text)
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("bad", "calico")
    await stage.run()
    status, reason, message = await stage.condition() or ("", "", "")
    assert (status, reason) == ("False", "NotApplied")
    assert message.startswith(told)
    assert await stage.deprecated() == ("False", "Warning", "ApplyFailed")
    assert await stage.bound() == {"cni": {"calico": True}}


async def test_an_object_that_the_cluster_refuses_does_not_hold_up_the_others(stage: Stage) -> None:
    await stage.cluster()
    unknown = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}}\n---\n"
    await stage.config_map("calico", unknown + CONFIG % ("one", 1))
    await stage.resource_set("calico")
    result = await stage.run()
    assert await stage.applied("one") is not None
    assert await stage.bound() == {"cni": {"calico": False}}
    assert await stage.condition() == (
        "False",
        "NotApplied",
        "Cluster c: ConfigMap calico: the Thing x could not be applied: "
        "the cluster does not serve the kind Thing of example.com/v1, or not yet",
    )
    assert result.requeue_after == RETRY


async def test_objects_of_a_kind_that_the_same_text_defines_come_with_the_next_try(stage: Stage) -> None:
    await stage.cluster()
    names = "{plural: things, singular: thing, kind: Thing, listKind: ThingList}"
    versions = "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]"
    text = (
        "{apiVersion: example.com/v1, kind: Thing, metadata: {name: x, namespace: default}}\n---\n"
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, "
        f"spec: {{group: example.com, scope: Namespaced, names: {names}, versions: {versions}}}}}\n"
    )
    await stage.config_map("calico", text)
    await stage.resource_set("calico")
    await stage.run()
    await stage.run()
    assert await stage.remote.find(CUSTOM_RESOURCE_DEFINITION, "things.example.com") is not None
    assert await stage.bound() == {"cni": {"calico": True}}


async def test_a_cluster_that_cannot_be_reached_is_waited_for_and_holds_up_no_other(stage: Stage) -> None:
    await stage.cluster("a", reachable=False)
    await stage.cluster("c")
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    result = await stage.run()
    status, reason, message = await stage.condition() or ("", "", "")
    assert (status, reason) == ("False", "InternalError")
    assert message.startswith("Cluster a: cannot reach the workload cluster fleet/a: there is no Secret fleet/a-kubeconfig")
    assert await stage.deprecated() == ("False", "Error", "RemoteClusterClientFailed")
    assert await stage.bound("c") == {"cni": {"calico": True}}
    assert result.requeue_after == RETRY
    await stage.kubeconfig("a")
    await stage.run()
    assert await stage.bound("a") == {"cni": {"calico": True}}
    assert await stage.condition() == ("True", "Applied", "")


async def test_a_selector_that_chooses_no_cluster_says_nothing(stage: Stage) -> None:
    await stage.cluster(cni="cilium")
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    await stage.run()
    assert await stage.condition() is None
    assert await stage.client.list(CLUSTER_RESOURCE_SET_BINDING, PLACE) == []


async def test_an_empty_selector_chooses_nothing(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico", clusterSelector={})
    await stage.run()
    assert await stage.applied("one") is None


async def test_a_selector_that_means_nothing_is_told(stage: Stage) -> None:
    await stage.cluster()
    await stage.resource_set("calico", clusterSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    await stage.run()
    assert await stage.condition() == (
        "False",
        "InternalError",
        'spec.clusterSelector cannot be read: "Near" is not a valid label selector operator',
    )
    assert await stage.deprecated() == ("False", "Warning", "ClusterMatchFailed")


async def test_a_set_that_is_paused_does_nothing(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    paused = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
    await stage.client.patch(CLUSTER_RESOURCE_SET, "cni", PLACE, paused, type=PatchType.MERGE)
    await stage.run()
    assert await stage.applied("one") is None
    assert await stage.condition(type_="Paused") == (
        "True",
        "Paused",
        "ClusterResourceSet has the cluster.x-k8s.io/paused annotation",
    )


async def test_two_sets_share_the_binding_of_a_cluster(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.config_map("storage", CONFIG % ("two", 2))
    await stage.resource_set("calico")
    await stage.resource_set("storage", name="csi")
    await stage.run("cni")
    await stage.run("csi")
    assert await stage.bound() == {"cni": {"calico": True}, "csi": {"storage": True}}
    assert [each["name"] for each in (await stage.get(CLUSTER_RESOURCE_SET_BINDING, "c"))["metadata"]["ownerReferences"]] == ["cni", "csi"]


async def test_a_set_that_is_deleted_leaves_every_binding_and_what_it_applied_stays(stage: Stage) -> None:
    await stage.cluster("a")
    await stage.cluster("c")
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.config_map("storage", CONFIG % ("two", 2))
    await stage.resource_set("calico")
    await stage.resource_set("storage", name="csi", clusterSelector={"matchExpressions": [{"key": "cni", "operator": "Exists"}]})
    await stage.run("cni")
    await stage.run("csi")
    # Of one Cluster the set has lost sight meanwhile.
    await stage.client.patch(CLUSTER, "a", PLACE, {"metadata": {"labels": {"cni": "other"}}}, type=PatchType.MERGE)
    await stage.client.delete(CLUSTER_RESOURCE_SET, "cni", PLACE)
    await stage.run("cni")
    assert await stage.client.find(CLUSTER_RESOURCE_SET, "cni", PLACE) is None
    assert await stage.bound("a") == await stage.bound("c") == {"csi": {"storage": True}}
    assert await stage.applied("one") is not None


async def test_the_last_set_takes_the_binding_with_it(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    await stage.run()
    await stage.client.delete(CLUSTER_RESOURCE_SET, "cni", PLACE)
    await stage.run()
    assert await stage.client.find(CLUSTER_RESOURCE_SET_BINDING, "c", PLACE) is None


async def test_a_cluster_that_is_deleted_gets_nothing_and_its_binding_goes(stage: Stage) -> None:
    await stage.cluster()
    await stage.config_map("calico", CONFIG % ("one", 1))
    await stage.resource_set("calico")
    await stage.run()
    await stage.run_binding()
    assert await stage.client.find(CLUSTER_RESOURCE_SET_BINDING, "c", PLACE) is not None
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await stage.client.patch(CLUSTER, "c", PLACE, held, type=PatchType.MERGE)
    await stage.client.delete(CLUSTER, "c", PLACE)
    await stage.run_binding()
    assert await stage.client.find(CLUSTER_RESOURCE_SET_BINDING, "c", PLACE) is None
    await stage.run()
    assert await stage.client.find(CLUSTER_RESOURCE_SET_BINDING, "c", PLACE) is None


async def test_a_binding_of_old_names_its_cluster_from_now_on(stage: Stage) -> None:
    cluster = await stage.cluster()
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c", "uid": cluster["metadata"]["uid"]}
    metadata = {"name": "c", "namespace": PLACE, "ownerReferences": [owner]}
    await stage.client.create(CLUSTER_RESOURCE_SET_BINDING, {"metadata": metadata, "spec": {"clusterName": "c"}})
    await stage.run_binding()
    found = await stage.get(CLUSTER_RESOURCE_SET_BINDING, "c")
    assert found["spec"]["clusterName"] == "c"
    assert not found["metadata"].get("ownerReferences")
