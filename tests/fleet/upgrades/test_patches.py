"""The edits of the upgrade guide: the version, and in the same edit the tags that are pinned."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fleet.upgrades.rolls import NEW, NEWEST, plane, workers

from slipway.fleet.upgrades.patches import Tags, edit
from slipway.fleet.upgrades.steps import Patch


def kcp(dns: str = "", etcd: str = "") -> dict[str, Any]:
    configuration: dict[str, Any] = {"dns": {"imageTag": dns}} if dns else {}
    if etcd:
        configuration["etcd"] = {"local": {"imageTag": etcd}}
    return {"metadata": {"name": "cp"}, "spec": {"kubeadmConfigSpec": {"clusterConfiguration": configuration}}}


def test_workers_get_the_literal_patch_of_the_guide() -> None:
    found = edit(Patch(workers(), NEW), kcp())
    assert found.command("cpaas-system") == (
        'kubectl -n cpaas-system patch machinedeployment w --type=merge -p \'{"spec": {"template": {"spec": {"version": "v1.35.4"}}}}\''
    )


# The tags of each kubeadm: its constants DefaultEtcdVersion and CoreDNSVersion.
@pytest.mark.parametrize(
    ("dns", "etcd", "version", "changed"),
    [
        ("", "", NEW, None),
        ("v1.12.1", "3.6.5-0", NEW, {"dns": {"imageTag": "v1.13.1"}, "etcd": {"local": {"imageTag": "3.6.6-0"}}}),
        ("v1.12.1", "", NEW, {"dns": {"imageTag": "v1.13.1"}}),
        ("", "3.6.5-0", NEWEST, {"etcd": {"local": {"imageTag": "3.6.8-0"}}}),
        ("v1.13.1", "3.6.6-0", NEW, None),
        ("v1.14.9", "3.7.0-0", NEW, None),
    ],
    ids=["none", "both", "dns", "etcd", "right-already", "newer-already"],
)
def test_pinned_tags_follow_the_version_in_the_same_edit(dns: str, etcd: str, version: str, changed: dict[str, Any] | None) -> None:
    found = edit(Patch(plane(), version), kcp(dns, etcd))
    kubeadm = {"kubeadmConfigSpec": {"clusterConfiguration": changed}} if changed else {}
    assert found.body == {"spec": {"version": version, **kubeadm}}
    assert found.notes == ()


def test_tags_of_somebodys_own_stay_and_are_told() -> None:
    found = edit(Patch(plane(), NEW), kcp("v1.12.1-corp3", "3.6.5-0"))
    assert json.dumps(found.body).count("imageTag") == 1
    assert found.notes == (
        "dns.imageTag is v1.12.1-corp3, a tag of somebody's own, and stays: where v1.35.4 needs another one, say --dns-image-tag",
    )


def test_tags_that_are_asked_for_are_taken_as_they_are() -> None:
    found = edit(Patch(plane(), NEW), kcp("v1.12.1-corp3"), Tags("v1.13.1-corp1", "3.6.6-corp"))
    assert found.body["spec"]["kubeadmConfigSpec"]["clusterConfiguration"] == {
        "dns": {"imageTag": "v1.13.1-corp1"},
        "etcd": {"local": {"imageTag": "3.6.6-corp"}},
    }


def test_of_a_version_that_is_not_known_here_pinned_tags_stay_and_are_told() -> None:
    found = edit(Patch(plane(), "v1.99.0"), kcp("v1.12.1"))
    assert found.body == {"spec": {"version": "v1.99.0"}}
    assert "is not known here; say --dns-image-tag" in found.notes[0]
