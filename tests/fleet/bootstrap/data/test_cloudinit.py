"""cloud-config; the golden files are what Cluster API's own packages wrote."""

from __future__ import annotations

import copy
import re

import pytest
from cases.bootstrapdata import cases, certificates, ours, recorded

from slipway.fleet.bootstrap.data import data as bootstrapdata

pytestmark = pytest.mark.recorded

CASES = cases("cloudinit")


@pytest.mark.parametrize("name", CASES)
def test_a_cloud_config_is_byte_by_byte_that_of_cluster_api(name: str) -> None:
    spec = copy.deepcopy(CASES[name]["spec"])
    assert ours(CASES[name]) == recorded(name)
    assert CASES[name]["spec"] == spec, "the spec was changed"


def test_certificates_come_before_files_and_files_before_kubeadms_configuration() -> None:
    name = "cloud-init-everything-1.35"
    paths = re.findall("^-   path: (.*)$", ours(CASES[name]).value, re.MULTILINE)
    files = [file["path"] for file in CASES[name]["spec"]["files"]]
    own = ["/run/kubeadm/kubeadm.yaml", "/run/cluster-api/placeholder"]
    assert paths == [file["path"] for file in certificates(name)] + files + own


def test_the_uninitialized_taint_is_in_the_data_and_not_in_the_spec() -> None:
    spec = {"joinConfiguration": {"nodeRegistration": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}}
    data = bootstrapdata.join_worker(spec, version="v1.35.4", files=[], users=[])
    assert b"key: node.cluster.x-k8s.io/uninitialized" in data.value
    assert spec["joinConfiguration"]["nodeRegistration"]["taints"] == [{"key": "a", "effect": "NoSchedule"}]
