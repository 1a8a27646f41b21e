"""What a manager needs of a cluster, as manifests, and their installation."""

from __future__ import annotations

from typing import Any

import pytest
from runtime.widgets import CRD, SPACE, WIDGET, api_client

from slipway.api.cluster.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    LEASE,
    MUTATING_WEBHOOK_CONFIGURATION,
    SECRET,
    VALIDATING_WEBHOOK_CONFIGURATION,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import manifests as made
from slipway.fleet import registry
from slipway.fleet.manifests import Installation
from slipway.kube.aio import PatchType
from slipway.runtime import apply, rbac
from slipway.runtime.manager import Lease
from slipway.runtime.rbac import rule
from slipway.runtime.webhook.admission import Defaulter, Validator, Verdict

HOOKS: list[Validator | Defaulter] = [
    Validator(WIDGET, lambda request: Verdict(), ("CREATE",)),
    Defaulter(WIDGET, lambda request: request.object or {}),
]
INSIDE = Installation(
    rules=[rule(WIDGET, *rbac.READ), rule(WIDGET, "patch", subresource="status")],
    crds=[CRD],
    webhooks=HOOKS,
    controllers=("bootstrap",),
    image="slipway:v1",
    leases=[Lease("capi-kubeadm-bootstrap-system", "kubeadm-bootstrap-manager-leader-election-capi")],
    namespace="e-manager",
    provider="bootstrap-kubeadm",
)
OUTSIDE = INSIDE._replace(webhook_url="https://192.0.2.1:9443/")


def _by_kind(installation: Installation) -> dict[str, dict[str, Any]]:
    return {manifest["kind"]: manifest for manifest in made.manifests(installation)}


def test_the_order_of_an_installation() -> None:
    assert [manifest["kind"] for manifest in made.manifests(INSIDE)] == [
        "Namespace",
        "Namespace",
        "CustomResourceDefinition",
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


def test_a_manager_outside_of_the_cluster_has_no_deployment() -> None:
    kinds = _by_kind(OUTSIDE)
    assert "Deployment" not in kinds
    assert "Service" not in kinds
    assert kinds["ValidatingWebhookConfiguration"]["webhooks"][0]["clientConfig"] == {
        "url": "https://192.0.2.1:9443/validate-e-test-slipway-io-v1-widget"
    }
    assert kinds["CustomResourceDefinition"]["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://192.0.2.1:9443/convert"}},
    }


def test_a_webhook_as_cluster_apis_own_are() -> None:
    """The fields of bootstrap/kubeadm/config/webhook/manifests.yaml, 1.14.2."""
    (hook,) = _by_kind(INSIDE)["ValidatingWebhookConfiguration"]["webhooks"]
    assert hook == {
        "name": "validation.widget.e.test.slipway.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"namespace": "e-manager", "name": "slipway-webhook", "path": "/validate-e-test-slipway-io-v1-widget", "port": 443}
        },
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "rules": [
            {
                "apiGroups": ["e.test.slipway.io"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["widgets"],
                "scope": "Namespaced",
            }
        ],
    }


def test_the_service_leads_to_the_deployment() -> None:
    kinds = _by_kind(INSIDE)
    template = kinds["Deployment"]["spec"]["template"]
    container = template["spec"]["containers"][0]
    assert kinds["Service"]["spec"]["selector"] == template["metadata"]["labels"] == kinds["Deployment"]["spec"]["selector"]["matchLabels"]
    assert kinds["Service"]["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}
    assert template["spec"]["serviceAccountName"] == kinds["ServiceAccount"]["metadata"]["name"]
    assert container["image"] == "slipway:v1"
    assert "--leader-elect" in container["args"]


def test_everything_says_whose_it_is() -> None:
    for manifest in made.manifests(INSIDE):
        assert manifest["metadata"]["labels"]["cluster.x-k8s.io/provider"] == "bootstrap-kubeadm"


def test_a_kind_of_one_version_is_not_converted() -> None:
    one = {**CRD, "spec": {**CRD["spec"], "versions": CRD["spec"]["versions"][:1]}}
    assert made.with_conversion(one, INSIDE) == one
    assert made.targets([one], []) == []


def test_permissions_are_what_is_declared_and_what_the_manager_itself_needs() -> None:
    rules = made.cluster_rules(INSIDE.rules, INSIDE.crds, INSIDE.webhooks)

    def allowed(verb: str, group: str, resource: str, name: str = "") -> bool:
        return rbac.allows(rules, verb, group, resource, name)

    assert allowed("watch", WIDGET.group, "widgets")
    assert allowed("patch", WIDGET.group, "widgets/status")
    assert not allowed("patch", WIDGET.group, "widgets")
    assert allowed("create", "", "events")
    assert allowed("patch", "apiextensions.k8s.io", "customresourcedefinitions", "widgets.e.test.slipway.io")
    assert not allowed("patch", "apiextensions.k8s.io", "customresourcedefinitions", "others.example.org")
    assert allowed("get", MUTATING_WEBHOOK_CONFIGURATION.group, MUTATING_WEBHOOK_CONFIGURATION.plural, made.MUTATING)
    assert not allowed("get", VALIDATING_WEBHOOK_CONFIGURATION.group, VALIDATING_WEBHOOK_CONFIGURATION.plural, "another")
    assert not allowed("get", "", "secrets", made.WEBHOOK_SECRET), "its own Secret is a matter of its namespace"
    assert rbac.allows(made.own_rules(), "update", "", SECRET.plural, made.WEBHOOK_SECRET)
    assert not rbac.allows(made.own_rules(), "update", "", SECRET.plural, "another")
    (lease,) = INSIDE.leases
    leading = made.lease_rules(INSIDE.leases)
    assert list(leading) == [lease.namespace]
    assert rbac.allows(leading[lease.namespace], "update", LEASE.group, LEASE.plural, lease.name)
    assert not rbac.allows(leading[lease.namespace], "update", LEASE.group, LEASE.plural, "another")


def test_replicas_that_share_the_work_may_look_at_the_leases_of_their_division_and_hold_them() -> None:
    division = registry.division_leases(("bootstrap",), "e-manager", 2)
    shared = made.manifests(INSIDE._replace(shards=2, division=division))
    (role,) = [each for each in shared if each["kind"] == "Role" and each["metadata"]["namespace"] == "e-manager"]
    leases = [(set(each["verbs"]), each.get("resourceNames")) for each in role["rules"] if "leases" in each["resources"]]
    names = [f"slipway-manager-bootstrap-{sort}-{number}" for sort in ("member", "shard") for number in (0, 1)]
    assert leases == [({"create", "list"}, None), ({"get", "update"}, names)]
    (deployment,) = [each for each in shared if each["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 2
    assert "--shards=2" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_leases_of_shards_are_named_after_the_controllers_unless_it_is_all_of_them() -> None:
    assert registry.division_name(registry.chosen(["all"])) == "slipway-manager"
    assert registry.division_name(("baremetal", "inventory")) == "slipway-manager-inventory-baremetal"
    assert registry.division_leases(("inventory",), "home", 1) == []


def test_with_the_dashboard_come_its_service_its_port_and_a_role_of_its_own() -> None:
    without = {(each["kind"], each["metadata"]["name"]) for each in made.manifests(INSIDE)}
    wanted = made.manifests(INSIDE._replace(dashboard=True))
    added = [each for each in wanted if (each["kind"], each["metadata"]["name"]) not in without]
    name = f"{made.DASHBOARD}-e-manager"
    assert [(each["kind"], each["metadata"]["name"]) for each in added] == [
        ("ClusterRole", name),
        ("ClusterRoleBinding", name),
        ("Role", name),
        ("RoleBinding", name),
        ("Service", made.DASHBOARD_SERVICE),
    ]
    (container,) = next(each for each in wanted if each["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"]
    assert added[-1]["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}
    assert "--dashboard-bind-address=:9444" in container["args"]


def test_the_dashboard_may_read_and_ask_and_change_nothing() -> None:
    verbs = {(verb, resource) for each in made.dashboard_rules() for verb in each.verbs for resource in each.resources}
    assert {resource for verb, resource in verbs if verb not in rbac.READ} == {"tokenreviews", "subjectaccessreviews"}


def test_managers_in_two_namespaces_have_nothing_in_common() -> None:
    """Each has controllers of its own, and kinds with them: one installation must not take from another what it needs."""
    one, other = (
        {
            (manifest["kind"], manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
            for manifest in made.manifests(INSIDE._replace(namespace=namespace, crds=[], works_with_providers=True))
        }
        for namespace in (made.NAMESPACE, "e-manager")
    )
    (lease,) = INSIDE.leases
    assert one & other == {("Namespace", None, lease.namespace)}


def test_no_permission_has_a_wildcard() -> None:
    for manifest in made.manifests(INSIDE):
        for policy in manifest.get("rules") or ():
            assert "*" not in [*policy["apiGroups"], *policy["resources"], *policy["verbs"]]


@pytest.mark.parametrize("url", ["http://host", "host:9443", "https://", "https://host/?a=b"])
def test_a_url_that_no_api_server_calls_is_refused(url: str) -> None:
    with pytest.raises(OperatorError, match="is not a URL at which the API server can call webhooks"):
        made.manifests(INSIDE._replace(webhook_url=url))


@pytest.mark.asyncio
async def test_installing_twice_changes_nothing_the_second_time() -> None:
    async with api_client() as client:
        # A target that no one reaches must not be called by what other tests create: no webhooks here.
        wanted = made.manifests(INSIDE._replace(webhooks=[], crds=[], namespace=SPACE))
        said: list[str] = []
        await apply.install(client, wanted, said.append)
        assert [line for line in said if "Deployment" in line] == [f"Deployment {SPACE}/slipway-manager created"]
        said.clear()
        await apply.install(client, wanted, said.append)
        assert {line.rpartition(" ")[2] for line in said} == {"unchanged"}
        changed = made.manifests(INSIDE._replace(webhooks=[], crds=[], namespace=SPACE, image="slipway:v2"))
        said.clear()
        await apply.install(client, changed, said.append)
        assert [line for line in said if not line.endswith("unchanged")] == [f"Deployment {SPACE}/slipway-manager configured"]
        for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
            await client.delete(kind, made.cluster_wide(made.NAME, SPACE))


@pytest.mark.asyncio
async def test_a_kind_is_served_when_the_installation_is_over() -> None:
    async with api_client() as client:
        crd = await client.get(CUSTOM_RESOURCE_DEFINITION, CRD["metadata"]["name"])
        assert {"type": "Established", "status": "True"}.items() <= next(
            condition for condition in crd["status"]["conditions"] if condition["type"] == "Established"
        ).items()
        assert await client.list(WIDGET, SPACE) == []


@pytest.mark.asyncio
async def test_a_crd_of_another_provider_is_taken_over() -> None:
    """Who had it before may be called by Service: an application alone would leave that beside our URL, which no API server takes."""
    theirs = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": _THEIR_SERVICE}}}
    async with api_client() as client:
        name = CRD["metadata"]["name"]
        await client.patch(CUSTOM_RESOURCE_DEFINITION, name, "", {"spec": {"conversion": theirs}}, type=PatchType.MERGE)
        for installation, ways in ((OUTSIDE, {"url"}), (INSIDE, {"service"}), (OUTSIDE, {"url"})):
            outcome = await apply.apply(client, CUSTOM_RESOURCE_DEFINITION, made.with_conversion(CRD, installation))
            assert outcome is apply.Outcome.CONFIGURED
            crd = await client.get(CUSTOM_RESOURCE_DEFINITION, name)
            assert crd["spec"]["conversion"]["webhook"]["clientConfig"].keys() == ways
        await client.delete(CUSTOM_RESOURCE_DEFINITION, name)


_THEIR_SERVICE = {"namespace": "capi-kubeadm-bootstrap-system", "name": "capi-kubeadm-bootstrap-webhook-service", "path": "/convert"}
