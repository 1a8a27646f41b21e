"""Whatever a file holds, ``migrate`` gives a file of v1beta4 that it leaves alone afterwards, or a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from api.kubeadm.strategies import objects, plain_values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.api.kubeadm.history import VERSIONS, kinds
from slipway.api.kubeadm.migrate import migrate
from slipway.api.machinery import strict
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.strict import encode
from slipway.api.machinery.yaml import goyaml

KINDS = [(version, kind) for version in VERSIONS for kind in kinds(version)]
COMMON_FIELDS = ("etcd", "conntrack", "featureGates", "logging", "nodeRegistration", "bootstrapTokens", "token", "podManifestPath")
SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def check(text: str) -> None:
    refused = ""
    try:
        migration = migrate(text, "generated.yaml")
    except ConfigurationError as error:
        refused = error.message
    if refused:
        # A sentence names a place: the file, and what in it.
        assert "generated.yaml" in refused
        assert len(refused) > len("generated.yaml") + 20
        return
    for document in goyaml.load(migration.text):
        if document.value["apiVersion"].startswith("kubeadm.k8s.io/"):
            assert document.value["apiVersion"] == "kubeadm.k8s.io/v1beta4"
            _, problems = strict.decode(kinds("v1beta4")[document.value["kind"]], document)
            assert problems == []
    assert migrate(migration.text, "again.yaml").text == migration.text


def with_plausible_tokens(config: Any, data: st.DataObject) -> Any:
    """Most random texts are no bootstrap tokens and no times, and would stop every example at the first check."""
    for token in getattr(config, "bootstrap_tokens", ()):
        token.token = data.draw(st.sampled_from(["abcdef.0123456789abcdef", None]))
        token.expires = data.draw(st.sampled_from(["2030-01-02T03:04:05Z", None]))
    for taint in getattr(getattr(config, "node_registration", None), "taints", None) or ():
        taint.time_added = None
    return config


@pytest.mark.parametrize(("version", "kind"), KINDS)
@SETTINGS
@given(data=st.data())
def test_a_configuration_of_any_version_is_migrated_or_refused_with_a_sentence(version: str, kind: str, data: st.DataObject) -> None:
    config = data.draw(objects(kinds(version)[kind]))
    if data.draw(st.booleans()):
        config = with_plausible_tokens(config, data)
    check(goyaml.dump({"apiVersion": f"kubeadm.k8s.io/{version}", "kind": kind} | encode(config)))


@settings(max_examples=100, deadline=None)
@given(
    documents=st.lists(
        plain_values
        | st.fixed_dictionaries(
            {
                "apiVersion": st.sampled_from(
                    [
                        *(f"kubeadm.k8s.io/{version}" for version in VERSIONS),
                        "kubelet.config.k8s.io/v1beta1",
                        "kubeproxy.config.k8s.io/v1alpha1",
                        "v1",
                        "",
                    ]
                ),
                "kind": st.sampled_from(
                    [*sorted({kind for _, kind in KINDS}), "KubeletConfiguration", "KubeProxyConfiguration", "Pod", ""]
                ),
            },
            optional=dict.fromkeys(COMMON_FIELDS, plain_values),
        ),
        max_size=3,
    )
)
def test_any_documents_are_migrated_or_refused_with_a_sentence(documents: list[Any]) -> None:
    check("---\n".join(goyaml.dump(document) for document in documents))


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_is_migrated_or_refused_with_a_sentence(text: str) -> None:
    check(text)
