"""The shared certificates in the Secret ``kubeadm-certs``."""

from __future__ import annotations

import base64
from pathlib import Path

import cases.certificate_state as state
import pytest
from cases.certificates import Machine

from slipway.api.machinery.errors import OperatorError
from slipway.host.dryrun import DryRunHost
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.pki import copycerts

SHARED = {"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key", "etcd-ca.crt", "etcd-ca.key"}


def _secret(machine: Machine, key: str) -> dict[str, object]:
    return copycerts.secret(machine.ctx, key, owner_name="bootstrap-token-abcdef", owner_uid="1234")


def test_a_certificate_key_is_32_random_bytes_in_hexadecimal() -> None:
    keys = {copycerts.new_certificate_key() for _ in range(8)}
    assert len(keys) == 8
    assert {len(bytes.fromhex(key)) for key in keys} == {32}


def test_what_go_encrypted_is_decrypted() -> None:
    # By Go 1.26's crypto/cipher, called as kubeadm's app/util/crypto calls it, with the bytes 0 to 31 as key.
    sealed = bytes.fromhex("3c686c71936573cef7b91ce3ab1cc30aaf37c22c8c4d2be57d2c4c61904cfc24d296ba9bfa2671f05de20cec487214683bae26c673f1")
    assert copycerts.decrypt(sealed, bytes(range(32))) == b"Lorem ipsum dolor sit amet"


@pytest.mark.parametrize("damage", ["key", "text", "short"])
def test_what_does_not_belong_together_is_not_decrypted(damage: str) -> None:
    key = bytes(range(32))
    sealed = copycerts.encrypt(b"content", key)
    if damage == "key":
        key = bytes(32)
    elif damage == "text":
        sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    else:
        sealed = sealed[:11]
    with pytest.raises(ValueError, match=r"authentication failed|less than the nonce"):
        copycerts.decrypt(sealed, key)


def test_the_same_content_is_never_encrypted_alike() -> None:
    key = bytes(range(32))
    assert copycerts.encrypt(b"content", key) != copycerts.encrypt(b"content", key)


def test_a_control_plane_gets_what_another_one_uploaded(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    Machine(first).run("certs all")
    key = copycerts.new_certificate_key()
    secret = _secret(Machine(first), key)
    joining = Machine(second)
    copycerts.save(joining.ctx, secret, key)
    assert joining.said() == ['[download-certs] Saving the certificates to the folder: "/etc/kubernetes/pki"']
    sent, received = state.contents(first), state.contents(second)
    assert {path.removeprefix("etc/kubernetes/pki/").replace("/", "-") for path in received} == SHARED
    assert received == {path: sent[path] for path in received}
    modes = {path.name: path.stat().st_mode & 0o777 for path in second.rglob("*.*") if path.parent.name == "pki"}
    assert modes == {
        "ca.crt": 0o644, "ca.key": 0o600, "front-proxy-ca.crt": 0o644, "front-proxy-ca.key": 0o600, "sa.pub": 0o644, "sa.key": 0o600,
    }  # fmt: skip


def test_the_secret_is_owned_by_the_secret_of_its_token(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run("certs all")
    secret = _secret(machine, copycerts.new_certificate_key())
    assert secret["metadata"] == {
        "name": "kubeadm-certs",
        "namespace": "kube-system",
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "name": "bootstrap-token-abcdef",
                "uid": "1234",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    data = secret["data"]
    assert isinstance(data, dict)
    assert data.keys() == SHARED
    # Nonce and tag are 12 and 16 bytes.
    assert len(base64.b64decode(data["ca.key"])) == len((tmp_path / "etc/kubernetes/pki/ca.key").read_bytes()) + 28


def test_an_external_etcd_sends_its_client_certificate_along(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "external-etcd")
    machine.run("certs all")
    etcd = tmp_path / "etc/etcd"
    etcd.mkdir()
    (etcd / "client.crt").write_bytes((tmp_path / "etc/kubernetes/pki/ca.crt").read_bytes())
    key = copycerts.new_certificate_key()
    secret = _secret(machine, key)
    data = secret["data"]
    assert isinstance(data, dict)
    assert {name for name in data if "etcd" in name} == {"external-etcd-ca.crt", "external-etcd.crt", "external-etcd.key"}
    # Files that are not there are sent as nothing, and nothing is written for them.
    assert data["external-etcd.key"] is None
    other = Machine(tmp_path / "other", "external-etcd")
    copycerts.save(other.ctx, secret, key)
    assert [path.name for path in sorted((tmp_path / "other/etc/etcd").iterdir())] == ["client.crt"]


@pytest.mark.parametrize(
    ("key", "sentence"),
    [("xyz", "error decoding certificate key"), ("00ff", "it has 2 bytes"), ("00" * 32, "error decoding secret data with provided key")],
)
def test_a_wrong_certificate_key_leaves_no_trace(key: str, sentence: str, tmp_path: Path) -> None:
    Machine(tmp_path / "first").run("certs all")
    secret = _secret(Machine(tmp_path / "first"), copycerts.new_certificate_key())
    joining = Machine(tmp_path / "second")
    with pytest.raises(OperatorError, match=sentence):
        copycerts.save(joining.ctx, secret, key)
    assert not (tmp_path / "second").exists()


def test_an_incomplete_secret_is_refused(tmp_path: Path) -> None:
    Machine(tmp_path / "first").run("certs all")
    key = copycerts.new_certificate_key()
    secret = _secret(Machine(tmp_path / "first"), key)
    data = secret["data"]
    assert isinstance(data, dict)
    del data["sa.key"]
    with pytest.raises(OperatorError, match=r"does not include the required certificate or key - name: sa\.key"):
        copycerts.save(Machine(tmp_path / "second").ctx, secret, key)


def test_an_entry_that_is_neither_key_nor_certificate_is_refused(tmp_path: Path) -> None:
    Machine(tmp_path / "first").run("certs all")
    key = copycerts.new_certificate_key()
    secret = _secret(Machine(tmp_path / "first"), key)
    data = secret["data"]
    assert isinstance(data, dict)
    data["ca.crt"] = base64.b64encode(copycerts.encrypt(b"nonsense", bytes.fromhex(key))).decode()
    with pytest.raises(OperatorError, match=r"unknown data found in Secret entry ca\.crt"):
        copycerts.save(Machine(tmp_path / "second").ctx, secret, key)
    assert not (tmp_path / "second").exists()


def test_a_dry_run_shows_no_content(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run("certs all")
    machine.ctx.host = DryRunHost(machine.host, str(tmp_path / "dry"), ("/etc/kubernetes",))
    cluster = DryRunCluster(machine.ctx.progress, machine.ctx.release)
    copycerts.would_upload(machine.ctx, cluster, copycerts.new_certificate_key())
    shown = cluster.get("v1", "Secret", copycerts.SECRET_NAME, copycerts.NAMESPACE)
    assert shown is not None
    assert shown["data"] == dict.fromkeys(SHARED)
