"""Bootstrap data of Cluster API's own bootstrap provider, as recorded, and of others, made fit for a host; PyYAML is the judge."""

from __future__ import annotations

import gzip
import re
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.fleet.baremetal.plans.bootstrapdata import BootstrapDataError, HostFile, Resolved, resolve

GOLDEN = Path(__file__).parents[3] / "golden" / "bootstrapdata" / "v1.14.2"
RECORDED = sorted(path for path in GOLDEN.glob("cloud-*.value"))
# A file whose first line is indented deeper than the next one breaks the document that upstream's provider puts it into.
BROKEN = [path for path in RECORDED if "    content: |\n        indented\n      not" in path.read_text()]
NODE_KINDS = ("InitConfiguration", "JoinConfiguration")
PROVIDER_ID = "baremetal:///rack-1"

JOIN = """\
## template: jinja
#cloud-config

write_files:
-   path: /etc/motd
    content: |
      {% if ds.meta_data.instance_id %}
      {{ ds.meta_data["instance_id"] }}
      {% endif %}
-   path: /run/kubeadm/kubeadm-join-config.yaml
    owner: root:root
    permissions: '0640'
    content: |
      ---
      apiVersion: kubeadm.k8s.io/v1beta4
      discovery:
        bootstrapToken:
          apiServerEndpoint: 10.0.0.9:6443
          token: abcdef.0123456789abcdef
      kind: JoinConfiguration
      nodeRegistration:
        kubeletExtraArgs:
        - name: node-labels
          value: a=b
        name: '{{ ds.meta_data.local_hostname }}'
runcmd:
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml {{ ds.nothing }}
"""
CONFIGURATION = '"apiVersion: kubeadm.k8s.io/v1beta4\\nkind: JoinConfiguration\\n"'


def resolved(text: str | bytes, data_format: str = "cloud-config", files: tuple[HostFile, ...] = ()) -> Resolved:
    value = text.encode() if isinstance(text, str) else text
    return resolve(value, data_format, hostname="node-1", provider_id=PROVIDER_ID, files=files)


def loaded(user_data: bytes | str) -> dict[str, Any]:
    text = user_data.decode() if isinstance(user_data, bytes) else user_data
    # What cloud-init's rendering would do to the one expression outside of quotes.
    found: dict[str, Any] = yaml.safe_load(re.sub(r"\{\{ ds\.nothing \}\}", "x", text))
    return found


def kubeadm(user_data: bytes) -> list[dict[str, Any]]:
    """kubeadm's documents of all files."""
    texts = [file.get("content", "") for file in loaded(user_data)["write_files"] if file["path"].startswith("/run/kubeadm/")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


@pytest.mark.parametrize("path", [path for path in RECORDED if path not in BROKEN], ids=lambda path: path.stem)
def test_upstreams_data_gets_the_provider_id_and_the_hostname_and_nothing_else_changes(path: Path) -> None:
    value = path.read_bytes()
    made = resolved(value).user_data

    before, after = loaded(value), loaded(made)
    assert after.pop("hostname") == "node-1"
    assert after.pop("preserve_hostname") is False
    for document, was in zip(kubeadm(made), kubeadm(value), strict=True):
        if document["kind"] in NODE_KINDS:
            registration, its = document["nodeRegistration"], was.setdefault("nodeRegistration", {})
            its["criSocket"] = its.get("criSocket") or "unix:///var/run/containerd/containerd.sock"
            if document["apiVersion"].endswith("v1beta4"):
                assert {"name": "provider-id", "value": PROVIDER_ID} in registration["kubeletExtraArgs"]
                registration["kubeletExtraArgs"] = [each for each in registration["kubeletExtraArgs"] if each["name"] != "provider-id"]
            else:
                assert registration["kubeletExtraArgs"].pop("provider-id") == PROVIDER_ID
            for each in (registration, its):
                each["kubeletExtraArgs"] = each.get("kubeletExtraArgs") or None
        assert document == was
    for files in (before["write_files"], after["write_files"]):
        files[:] = [file if not file["path"].startswith("/run/kubeadm/") else file["path"] for file in files]
    assert after == before


def test_upstreams_data_that_cloud_init_could_not_read_is_told_before_a_host_boots_with_it() -> None:
    assert BROKEN
    for path in BROKEN:
        with pytest.raises(yaml.YAMLError):
            loaded(path.read_text())
        with pytest.raises(BootstrapDataError, match="this is not valid YAML"):
            resolved(path.read_bytes())


def test_lines_that_are_not_ours_stay_as_they_are() -> None:
    made = resolved(JOIN).user_data.decode().split("\n")
    mended = JOIN.index("    content: |\n      ---")
    assert made[: JOIN[:mended].count("\n")] == JOIN[:mended].split("\n")[:-1]
    assert "        name: '{{ ds.meta_data.local_hostname }}'" in made
    assert "  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml {{ ds.nothing }}" in made


def test_the_bootstrap_token_is_found() -> None:
    assert resolved(JOIN).token == "abcdef.0123456789abcdef"


def test_a_provider_id_that_is_there_is_replaced() -> None:
    other = JOIN.replace("name: node-labels\n          value: a=b", "name: provider-id\n          value: somewhere://else")
    assert kubeadm(resolved(other).user_data)[0]["nodeRegistration"]["kubeletExtraArgs"] == [{"name": "provider-id", "value": PROVIDER_ID}]


def test_a_provider_id_that_is_there_is_replaced_in_the_older_version_too() -> None:
    older = JOIN.replace("v1beta4", "v1beta3").replace(
        "- name: node-labels\n          value: a=b", 'provider-id: aws:///i\n          v: "4"'
    )
    older = older.replace("        provider-id", "          provider-id")
    registration = kubeadm(resolved(older).user_data)[0]["nodeRegistration"]
    assert registration["kubeletExtraArgs"] == {"provider-id": PROVIDER_ID, "v": "4"}


def test_a_socket_that_is_set_stays() -> None:
    other = JOIN.replace("nodeRegistration:\n", "nodeRegistration:\n        criSocket: unix:///run/crio.sock\n")
    assert kubeadm(resolved(other).user_data)[0]["nodeRegistration"]["criSocket"] == "unix:///run/crio.sock"


def test_files_of_ours_come_last_and_nothing_in_them_is_taken_for_jinja() -> None:
    content = b"{{ not jinja }} {% raw"
    made = resolved(JOIN, files=(HostFile("/etc/keepalived/keepalived.conf", content, "0600"),)).user_data
    file = loaded(made)["write_files"][-1]
    assert (file["path"], file["permissions"], b64decode(file["content"])) == ("/etc/keepalived/keepalived.conf", "0600", content)
    assert b"{{ not jinja" not in made


def test_a_hostname_that_is_there_is_replaced_whatever_stands_around_it() -> None:
    files = (HostFile("/etc/x", b"x"),)
    last = JOIN.partition("runcmd:")[0]
    for text in (f"{JOIN}hostname: other\n", f"{last}hostname: other\npreserve_hostname: true\n"):
        made = loaded(resolved(text, files=files).user_data)
        assert (made["hostname"], made["preserve_hostname"]) == ("node-1", False)
        assert made["write_files"][-1]["path"] == "/etc/x"


@pytest.mark.parametrize("encoding", ["b64", "gz+b64"])
def test_an_encoded_configuration_stays_encoded(encoding: str) -> None:
    text = JOIN.partition("      ---\n")[2].partition("runcmd:")[0].replace("\n      ", "\n").strip()
    packed = gzip.compress(text.encode()) if encoding.startswith("gz") else text.encode()
    data = (
        f"#cloud-config\nwrite_files:\n  - encoding: {encoding}\n    content: {b64encode(packed).decode()}\n"
        "    path: /run/kubeadm/kubeadm-join-config.yaml\nruncmd: [kubeadm join]\n"
    )
    file = loaded(resolved(data).user_data)["write_files"][0]
    raw = b64decode(file["content"])
    document = yaml.safe_load(gzip.decompress(raw) if encoding.startswith("gz") else raw)
    assert {"name": "provider-id", "value": PROVIDER_ID} in document["nodeRegistration"]["kubeletExtraArgs"]
    assert (file["encoding"], file["path"]) == (encoding, "/run/kubeadm/kubeadm-join-config.yaml")


def test_line_ends_of_windows_are_read() -> None:
    assert loaded(resolved(JOIN.replace("\n", "\r\n")).user_data)["hostname"] == "node-1"


@pytest.mark.parametrize(
    ("text", "data_format", "says"),
    [
        (b"{}", "ignition", 'of the format "ignition"'),
        (b"\xff\xfe", "cloud-config", "byte 0 is not UTF-8"),
        (b"#!/bin/sh\necho\n", "cloud-config", "is no cloud-config"),
        (b"#cloud-config\nwrite_files: [\n", "cloud-config", "this is not valid YAML"),
        (b"#cloud-config\n- a\n", "cloud-config", "not one YAML mapping"),
        (b"#cloud-config\n", "cloud-config", "not one YAML mapping"),
        (b"#cloud-config\nruncmd: [a]\n", "cloud-config", "no kubeadm configuration"),
        (b"#cloud-config\nwrite_files: many\n", "cloud-config", "no kubeadm configuration"),
        (b"## template: jinja\n#cloud-config\n{% if x %}\nruncmd: [a]\n{% endif %}\n", "", "Jinja must stand inside of values"),
        (JOIN.replace("name: '{{", "name: {{").replace("}}'", "}}").encode(), "", "the bootstrap data cannot be used"),
        (
            JOIN.replace("kubeletExtraArgs:\n        - name: node-labels\n          value: a=b", "kubeletExtraArgs: [a]").encode(),
            "",
            "is not what",
        ),
        (JOIN.replace("v1beta4", "v1beta3").encode(), "", "nodeRegistration of the JoinConfiguration in the bootstrap data is not what"),
        (f"#cloud-config\nwrite_files:\n- {{path: /run/content, content: {CONFIGURATION}}}\n".encode(), "", "on a line of its own"),
        (f'#cloud-config\nwrite_files:\n- "content": {CONFIGURATION}\n  path: /run/x\n'.encode(), "", "on a line of its own"),
        (b"#cloud-config\nwrite_files: [{path: x, content: 'kind: JoinConfiguration\n\n  apiVersion: kubeadm.k8s.io/v1beta4'}]\n", "", ""),
    ],
)
def test_data_that_cannot_be_used_is_told_with_a_sentence(text: bytes, data_format: str, says: str) -> None:
    with pytest.raises(BootstrapDataError) as error:
        resolved(text, data_format)
    assert says in error.value.message
