"""``certs renew`` and ``certs check-expiration``, against the real kubeadm's."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from pathlib import Path

import cases.certificate_state as state
import pytest
from cases.certificates import VERSIONS, Machine, cases_with_fast_keys, changed_files, described_tree, read_golden, without_times
from cryptography import x509

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.node.pki import expiration, renewal

pytestmark = [pytest.mark.upstream_table, pytest.mark.recorded]

FOLDER = "etc/kubernetes"


def _made(root: Path, name: str = "ecdsa-p256", version: str = "v1.36.3") -> Machine:
    machine = Machine(root, name, version)
    machine.run("certs all")
    machine.run("kubeconfig all")
    machine.said()
    machine.host.clock += timedelta(seconds=2)
    return machine


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
@pytest.mark.parametrize(("name", "version"), cases_with_fast_keys())
def test_renewal_and_expiration_are_those_of_the_real_kubeadm(name: str, version: str, tmp_path: Path) -> None:
    machine, golden = _made(tmp_path, name, version), read_golden(name, version)
    report = expiration.check(machine.ctx)
    manifest = expiration.manifest(report)
    assert without_times(expiration.table(report)) == golden["check-expiration text"]
    assert without_times(json.dumps(manifest, indent=4) + "\n") == golden["check-expiration json"]
    assert without_times(goyaml.dump(manifest)) == golden["check-expiration yaml"]

    before, described = state.contents(tmp_path), described_tree(tmp_path)
    renewal.renew_all(machine.ctx)
    assert machine.said() == golden["renew"]
    assert changed_files(described, described_tree(tmp_path)) == golden["renewed files"]
    # All but what is never renewed: the authorities, the service account's key, the kubelet's file.
    kept = {path for path, content in state.contents(tmp_path).items() if before[path] == content}
    assert {Path(path).name for path in kept} <= {
        "ca.crt",
        "ca.key",
        "front-proxy-ca.crt",
        "front-proxy-ca.key",
        "sa.key",
        "sa.pub",
        "kubelet.conf",
    }
    assert f"{FOLDER}/kubelet.conf" in kept
    assert f"{FOLDER}/pki/ca.crt" in kept


def test_a_renewed_certificate_has_a_new_key_and_the_names_of_the_old_one(tmp_path: Path) -> None:
    machine = _made(tmp_path, "alternative-names")
    path = tmp_path / FOLDER / "pki/apiserver.crt"
    old = x509.load_pem_x509_certificate(path.read_bytes())
    # A configuration that says something else has no part in it.
    machine.ctx.config.cluster.api_server.cert_sans = ["other.example"]
    renewal.renew(machine.ctx, "apiserver")
    new = x509.load_pem_x509_certificate(path.read_bytes())
    names = [certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value for certificate in (old, new)]
    assert names[0] == names[1]
    assert old.public_key() != new.public_key()
    assert new.not_valid_after_utc - old.not_valid_after_utc == timedelta(seconds=2)


def test_a_kubeconfig_keeps_everything_but_its_credentials(tmp_path: Path) -> None:
    machine = _made(tmp_path)
    path = tmp_path / FOLDER / "admin.conf"
    text = path.read_text().replace(
        "    server: https://10.1.2.3:6443\n", "    proxy-url: http://proxy\n    server: https://elsewhere:6443\n"
    )
    path.write_text(text)
    renewal.renew(machine.ctx, "admin.conf")
    old, new = (goyaml.load(content)[0].value for content in (text, path.read_text()))
    credentials = [document["users"][0].pop("user") for document in (old, new)]
    assert credentials[0] != credentials[1]
    assert old == new


# As each of the real four rewrites such a file.
@pytest.mark.parametrize("version", VERSIONS)
def test_a_rewritten_kubeconfig_has_the_layout_of_its_release(version: str, tmp_path: Path) -> None:
    _made(tmp_path, version="v1.33.13")
    path = tmp_path / FOLDER / "admin.conf"
    assert "\npreferences: {}\n" in path.read_text()
    path.write_text(path.read_text().replace("users:\n", "users:\n- name: zed\n  user:\n    token: abc\n"))
    renewal.renew(Machine(tmp_path, version=version).ctx, "admin.conf")
    text = path.read_text()
    assert ("\npreferences: {}\n" in text) is (version == "v1.33.13")
    assert text.endswith("- name: zed\n  user:\n    token: abc\n")


def test_a_kubeconfig_gets_the_ca_of_today(tmp_path: Path) -> None:
    machine = _made(tmp_path)
    for name in ("ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "apiserver-kubelet-client.crt", "apiserver-kubelet-client.key"):
        (tmp_path / FOLDER / "pki" / name).unlink()
    machine.run("certs all")
    renewal.renew(machine.ctx, "scheduler.conf")
    renewed = goyaml.load((tmp_path / FOLDER / "scheduler.conf").read_text())[0].value
    embedded = base64.b64decode(renewed["clusters"][0]["cluster"]["certificate-authority-data"])
    assert embedded == (tmp_path / FOLDER / "pki/ca.crt").read_bytes()


def test_an_expired_certificate_is_renewed(tmp_path: Path) -> None:
    machine = _made(tmp_path, "validity")
    machine.host.clock += timedelta(days=30)
    renewal.renew(machine.ctx, "front-proxy-client")
    renewed = x509.load_pem_x509_certificate((tmp_path / FOLDER / "pki/front-proxy-client.crt").read_bytes())
    assert renewed.not_valid_after_utc > machine.host.clock


def test_what_is_missing_is_said_and_the_rest_renewed(tmp_path: Path) -> None:
    machine = _made(tmp_path)
    (tmp_path / FOLDER / "super-admin.conf").unlink()
    (tmp_path / FOLDER / "pki/etcd/peer.crt").unlink()
    renewal.renew_all(machine.ctx)
    said = machine.said()
    assert "MISSING! certificate embedded in the kubeconfig file for the super-admin" in said
    assert "MISSING! certificate for etcd nodes to communicate with each other" in said
    assert sum(line.endswith(" renewed") for line in said) == 9
    assert not (tmp_path / FOLDER / "super-admin.conf").exists()
    shown = expiration.table(expiration.check(machine.ctx))
    assert "!MISSING! super-admin.conf" in shown
    assert "!MISSING! etcd-peer" in shown


@pytest.mark.parametrize(
    ("ca", "name", "sentence"),
    [
        ("ca", "apiserver", "Detected external ca, certificate for serving the Kubernetes API can't be renewed"),
        (
            "ca",
            "scheduler.conf",
            "Detected external ca, certificate embedded in the kubeconfig file for the scheduler manager to use can't be renewed",
        ),
        (
            "front-proxy-ca",
            "front-proxy-client",
            "Detected external front-proxy-ca, certificate for the front proxy client can't be renewed",
        ),
        ("etcd/ca", "etcd-server", "Detected external etcd/ca, certificate for serving etcd can't be renewed"),
    ],
)
def test_certificates_of_an_external_ca_cannot_be_renewed(ca: str, name: str, sentence: str, tmp_path: Path) -> None:
    machine = _made(tmp_path)
    (tmp_path / FOLDER / f"pki/{ca}.key").unlink()
    before = state.contents(tmp_path)
    renewal.renew(machine.ctx, name)
    assert machine.said() == [sentence]
    assert state.contents(tmp_path) == before
    external = {item.name for item in expiration.check(machine.ctx).certificates if item.externally_managed}
    assert name in external


def test_with_an_external_etcd_its_certificates_are_not_ours(tmp_path: Path) -> None:
    machine = _made(tmp_path, "external-etcd")
    with pytest.raises(OperatorError, match="etcd-server is not a valid certificate for this cluster"):
        renewal.renew(machine.ctx, "etcd-server")


@pytest.mark.parametrize(
    ("pattern", "replacement", "reason"),
    [
        ("clusters:\n", "clusters: nonsense\nothers:\n", "clusters must be a list of named entries"),
        ("current-context: .*", "current-context: other", 'missing context "other"'),
        ("    cluster: .*", "    cluster: other", 'missing cluster "other"'),
        ("    user: .*", "    user: other", 'missing authInfo "other"'),
        ("certificate-authority-data: .*", 'certificate-authority-data: ""', "does not have an embedded server certificate"),
        ("client-certificate-data: .*", 'client-certificate-data: ""', "does not have an embedded client certificate"),
        ("client-certificate-data: .*", "client-certificate-data: bm9uc2Vuc2U=", "does not contain a valid client certificate"),
        (
            "client-certificate-data: .*",
            "client-certificate-data: '*'",
            "client-certificate-data of /etc/kubernetes/admin.conf is not base64",
        ),
    ],
)
def test_a_kubeconfig_that_cannot_be_renewed_is_left_as_it_is(pattern: str, replacement: str, reason: str, tmp_path: Path) -> None:
    import re

    machine = _made(tmp_path)
    path = tmp_path / FOLDER / "admin.conf"
    path.write_text(re.sub(pattern, replacement, path.read_text()))
    before = state.contents(tmp_path)
    with pytest.raises(OperatorError, match=re.escape(reason)):
        renewal.renew(machine.ctx, "admin.conf")
    assert state.contents(tmp_path) == before


def test_a_certificate_without_purpose_cannot_be_renewed(tmp_path: Path) -> None:
    machine = _made(tmp_path)
    folder = tmp_path / FOLDER / "pki"
    (folder / "front-proxy-client.crt").write_bytes((folder / "front-proxy-ca.crt").read_bytes())
    with pytest.raises(OperatorError, match=r"failed to renew certificate front-proxy-client: .* at least one ExtKeyUsage"):
        renewal.renew(machine.ctx, "front-proxy-client")


# apimachinery's pkg/util/duration/duration_test.go
