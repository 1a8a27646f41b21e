"""Ignition configs; the golden files are what Cluster API's own packages, with the transpiler behind them, wrote."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest
from cases.bootstrapdata import cases, certificates, ours, recorded

from slipway.api.machinery.errors import ConfigurationError
from slipway.fleet.bootstrap.data import data

pytestmark = pytest.mark.recorded

CASES = cases("ignition")


@pytest.mark.parametrize("name", CASES)
def test_an_ignition_config_is_byte_by_byte_that_of_cluster_api(name: str) -> None:
    assert ours(CASES[name]) == recorded(name)


def test_the_version_file_comes_before_the_files_and_the_commands_of_the_user() -> None:
    config = json.loads(ours(CASES["ignition-worker-everything-1.34"]).value)
    paths = [file["path"] for file in config["storage"]["files"]]
    version = paths.index("/run/cluster-api/kubeadm-version/version")
    assert version < paths.index("/etc/lines") < paths.index("/etc/kubeadm.sh") < paths.index("/etc/kubeadm.yml")
    assert unquote(config["storage"]["files"][version]["contents"]["source"]) == "data:,v1.35.4\n"


def test_certificates_are_files_of_a_control_plane() -> None:
    name = "ignition-init-minimal-1.35"
    paths = [file["path"] for file in json.loads(ours(CASES[name]).value)["storage"]["files"]]
    assert paths == [file["path"] for file in certificates(name)] + ["/etc/kubeadm.sh", "/etc/kubeadm.yml"]


@pytest.mark.parametrize("section", ["etcd", "flannel"])
def test_sections_of_services_that_are_gone_are_refused_with_their_name(section: str) -> None:
    spec = {"format": "ignition", "ignition": {"containerLinuxConfig": {"additionalConfig": f"{section}: {{name: a}}\n"}}}
    with pytest.raises(ConfigurationError, match=f"the section '{section}'"):
        data.join_worker(spec, version="v1.35.4", files=[], users=[])


def with_additions(text: str) -> data.BootstrapData:
    spec = {"format": "ignition", "ignition": {"containerLinuxConfig": {"additionalConfig": text}}}
    return data.join_worker(spec, version="v1.35.4", files=[], users=[])


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("1" * 400 + "B", "units: invalid 1111"),
        ("8192EB", "units: overflow parsing unit"),
        ("1GiB" * 3_000 + "x", "units: unknown unit"),
    ],
)
def test_a_size_beyond_64_bits_is_refused(size: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        with_additions(f"storage: {{disks: [{{device: /dev/a, partitions: [{{size: {size}}}]}}]}}")


def test_many_partitions_beside_many_unknown_keys_take_linear_time() -> None:
    unknown = "".join(f"k{number}: 1\n" for number in range(1_500))
    config = with_additions(f"{unknown}storage: {{disks: [{{device: /dev/a, partitions: [{','.join(['{}'] * 5_000)}]}}]}}")
    assert len(json.loads(config.value)["storage"]["disks"][0]["partitions"]) == 5_000


def test_of_very_many_errors_two_hundred_are_listed() -> None:
    with pytest.raises(ConfigurationError, match=r"and 4800 more$") as caught:
        with_additions(f"storage: {{disks: [{','.join(['{}'] * 5_000)}]}}")
    assert caught.value.message.count("disk device is required") == 200
