"""Existing certificates and keys: what is reused, made anew or refused, against the real kubeadm's decisions."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import cases.certificate_state as state
import pytest
from cases.certificates import VERSIONS, Machine, described_tree, read_golden

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import x509
from slipway.host.dryrun import DryRunHost
from slipway.host.real import RealHost
from slipway.node import kubeconfigs
from slipway.node.pki import copycerts, renewal, store

pytestmark = pytest.mark.recorded

# The real one goes on with these, and the control plane then does not start.  We refuse them.
STRICTER = {"CA is not a CA", "CA with another key", "leaf with another key", "leaf without key"}
# With this it goes on, too, and the API server does not start; we make what is missing.
MENDED = {"service account public key missing": ["etc/kubernetes/pki/sa.pub"]}

# What the sentence must name, by state.
REASONS = {
    "leaf expired": "the certificate has expired: NotBefore: ",
    "leaf not yet valid": "the certificate is not valid yet: NotBefore: ",
    "leaf signed by another CA": "its signature is not that of CN=kubernetes",
    "leaf without its intermediate CA": "it was issued by CN=middle, and CN=kubernetes did not sign it",
    "leaf signed by a leaf": "CN=middle is not a certificate authority",
    "leaf with another key": "/etc/kubernetes/pki/apiserver.key does not match the certificate",
    "leaf without key": "couldn't load the private key file /etc/kubernetes/pki/apiserver.key: No such file or directory",
    "leaf's key without certificate": "couldn't load the certificate file /etc/kubernetes/pki/apiserver.crt: No such file",
    "leaf is not PEM": "/etc/kubernetes/pki/apiserver.crt: data does not contain any valid RSA or ECDSA certificates",
    "leaf missing and CA gone": "couldn't load the certificate file /etc/kubernetes/pki/ca.crt",
    "leaf there and CA gone": "couldn't load the certificate file /etc/kubernetes/pki/ca.crt",
    "leaf missing and CA is not a CA": "certificate ca is not a CA",
    "leaf missing and CA has another key": "/etc/kubernetes/pki/ca.key does not match the certificate",
    "CA's key without certificate": "couldn't load the certificate file /etc/kubernetes/pki/ca.crt",
    "CA is not PEM": "/etc/kubernetes/pki/ca.crt: data does not contain any valid RSA or ECDSA certificates",
    "CA is not a CA": "certificate ca is not a CA",
    "CA with another key": "/etc/kubernetes/pki/ca.key does not match the certificate",
    "external CA, leaf missing": "invalid or incomplete external CA: couldn't load the certificate file /etc/kubernetes/pki/apiserver.crt",
    "external CA, leaf's key missing": "invalid or incomplete external CA: couldn't load the private key file",
    "external CA, kubeconfig missing": "the scheduler.conf file does not exists or it is not valid",
    "external front-proxy CA, leaf missing": "invalid or incomplete external front-proxy CA: couldn't load the certificate file",
    "external etcd CA, leaf missing": "couldn't load the private key file /etc/kubernetes/pki/etcd/ca.key",
    "service account key is not PEM": "/etc/kubernetes/pki/sa.key: data does not contain a valid RSA or ECDSA private key",
    "kubeconfig of another cluster": "does not contain a trusted CA in its current context's cluster",
    "kubeconfig without a CA": "contains an invalid CA cert",
    "kubeconfig without its context": "failed to find CurrentContext in Contexts of the kubeconfig file /etc/kubernetes/admin.conf",
    "kubeconfig without its cluster": "failed to find the given CurrentContext Cluster",
    "kubeconfig is not YAML": "/etc/kubernetes/admin.conf",
    "kubeconfig is empty": "/etc/kubernetes/admin.conf",
    "kubeconfig missing and CA gone": "please run `kubeadm init phase certs ca`",
    "kubeconfig missing and CA has another key": "/etc/kubernetes/pki/ca.key does not match the certificate",
}


def test_the_four_releases_decide_alike() -> None:
    """So that the decisions of one of them can stand for all."""
    recorded = [read_golden("states", version) for version in VERSIONS]
    assert recorded[0].keys() == state.STATES.keys()
    assert recorded == [recorded[0]] * len(VERSIONS)


@pytest.mark.parametrize("name", state.STATES)
def test_files_that_are_there_are_reused_or_refused_as_by_the_real_kubeadm(name: str, tmp_path: Path) -> None:
    phase, change = state.STATES[name]
    expected = read_golden("states", VERSIONS[-1])[name]
    Machine(tmp_path).run("certs all")
    Machine(tmp_path).run("kubeconfig all")
    change(tmp_path / "etc/kubernetes")
    before = state.contents(tmp_path)
    machine = Machine(tmp_path)
    refused = expected["exit code"] != 0 or name in STRICTER
    if refused:
        with pytest.raises(OperatorError) as raised:
            machine.run(phase)
        assert REASONS[name] in raised.value.message
    else:
        machine.run(phase)
        assert machine.said() == expected["said"]
    assert state.changes(before, state.contents(tmp_path)) == MENDED.get(name, expected["changed"])


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("CA expired", "WARNING: could not validate bounds for certificate ca: the certificate has expired"),
        ("leaf with fewer names", "WARNING: the existing certificate apiserver is not valid for cp-1, kubernetes.default"),
        ("kubeconfig with another server", "has an unexpected API Server URL: expected: https://10.1.2.3:6443, got: https://10.7.7.7:6443"),
    ],
)
def test_what_is_reused_in_spite_of_a_flaw_is_warned_of_once(name: str, warning: str, tmp_path: Path) -> None:
    phase, change = state.STATES[name]
    Machine(tmp_path).run("certs all")
    Machine(tmp_path).run("kubeconfig all")
    change(tmp_path / "etc/kubernetes")
    machine = Machine(tmp_path)
    machine.run(phase)
    machine.run(phase)
    assert [line for line in machine.warned() if warning in line] == machine.warned()
    assert len(machine.warned()) == 1


def test_no_key_is_made_where_all_files_are_there(tmp_path: Path) -> None:
    Machine(tmp_path, "default").run("certs all")
    machine = Machine(tmp_path, "default")
    machine.ctx.config.cluster.encryption_algorithm = "an algorithm of which no key can be made"
    machine.run("certs all")


def test_a_dry_run_writes_beside_and_copies_the_authorities_of_the_host(tmp_path: Path) -> None:
    real, dry = tmp_path / "real", tmp_path / "dry"
    Machine(real).run("certs ca")
    Machine(real).run("certs etcd-ca")
    (real / "etc/kubernetes/pki/etcd/ca.key").unlink()
    before = state.contents(real)
    machine = Machine(real)
    machine.ctx.host = DryRunHost(machine.host, str(dry), ("/etc/kubernetes", "/etc/kubernetes/pki"))
    for name in ("ca", "apiserver", "etcd-ca"):
        store.ensure_certificate(machine.ctx, name)
    assert machine.said()[-1] == "[certs] Using existing etcd/ca keyless certificate authority"
    assert state.contents(real) == before
    written = state.contents(dry)
    assert written.keys() == {"ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "etcd/ca.crt"}
    assert written["ca.key"] == before["etc/kubernetes/pki/ca.key"]
    assert (dry / "ca.key").stat().st_mode & 0o777 == 0o600


def _shared(source: Path, target: Path) -> None:
    """Bring the files that control planes share to another machine, as ``upload-certs`` and a join do."""
    key = copycerts.new_certificate_key()
    secret = copycerts.secret(Machine(source).ctx, key, owner_name="bootstrap-token-abcdef", owner_uid="1")
    copycerts.save(Machine(target).ctx, secret, key)


@pytest.mark.parametrize("base_name", ["ca", "apiserver"])
def test_a_run_that_was_killed_between_a_key_and_its_certificate_goes_on_with_both(base_name: str, tmp_path: Path) -> None:
    """A host that dies at the rename is what kill -9 leaves."""

    class Dying(RealHost):
        def rename(self, path: str, target: str) -> None:
            if target.endswith(f"/{base_name}.crt"):
                raise KeyboardInterrupt
            super().rename(path, target)

    machine = Machine(tmp_path)
    alive = machine.ctx.host
    machine.ctx.host = Dying(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        machine.run("certs all")
    machine.ctx.host = alive
    kept = alive.read(f"/etc/kubernetes/pki/{base_name}.key")
    machine.run("certs all")
    assert alive.read(f"/etc/kubernetes/pki/{base_name}.key") == kept
    assert store.load_chain(machine.ctx, base_name)
    assert [path.name for path in tmp_path.rglob(".*")] == []


def test_a_renewal_that_was_killed_between_a_key_and_its_certificate_is_ended_by_the_next_run(tmp_path: Path) -> None:
    class Dying(RealHost):
        def rename(self, path: str, target: str) -> None:
            raise KeyboardInterrupt

    machine = Machine(tmp_path)
    machine.run("certs all")
    alive, machine.ctx.host = machine.ctx.host, Dying(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        renewal.renew(machine.ctx, "apiserver")
    machine.ctx.host = alive
    kept = alive.read("/etc/kubernetes/pki/apiserver.key")
    machine.run("certs all")
    assert alive.read("/etc/kubernetes/pki/apiserver.key") == kept
    assert x509.belongs_to(store.load_chain(machine.ctx, "apiserver")[0], store.load_key(machine.ctx, "apiserver"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_renewed_files_keep_their_owners_and_modes(tmp_path: Path) -> None:
    """Components that do not run as root read their own keys, and an administrator may have let a group read admin.conf."""
    machine = Machine(tmp_path)
    machine.run("certs all")
    machine.run("kubeconfig all")
    folder = tmp_path / "etc/kubernetes"
    files = ["pki/apiserver.key", "pki/apiserver.crt", "admin.conf"]
    for name in files:
        os.chown(folder / name, 4711, 4712)
        (folder / name).chmod(0o640)
    renewal.renew_all(machine.ctx)
    found = [(folder / name).stat() for name in files]
    assert [(status.st_uid, status.st_gid, status.st_mode & 0o7777) for status in found] == [(4711, 4712, 0o640)] * 3


def test_a_public_key_that_is_missing_is_that_of_the_key(tmp_path: Path) -> None:
    """A disk that is full after ``sa.key`` leaves just that."""
    machine = Machine(tmp_path)
    machine.run("certs all")
    public = tmp_path / "etc/kubernetes/pki/sa.pub"
    before = public.read_bytes()
    public.unlink()
    machine.run("certs all")
    assert public.read_bytes() == before


def test_a_joining_control_plane_keeps_what_is_shared_and_makes_the_rest(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    Machine(first).run("certs all")
    _shared(first, second)
    shared = state.contents(second)
    machine = Machine(second)
    machine.ctx.config.node_registration.name = "cp-2"
    assert store.shared_problems(machine.ctx) == []
    store.ensure_for_join(machine.ctx)
    said = machine.said()
    assert said[:3] == [
        '[certs] Using the existing "ca" certificate and key',
        '[certs] Generating "apiserver" certificate and key',
        "[certs] apiserver serving cert is signed for DNS names [cp-2 kubernetes kubernetes.default kubernetes.default.svc "
        "kubernetes.default.svc.cluster.local] and IPs [10.96.0.1 10.1.2.3]",
    ]
    assert said[-2:] == [
        '[certs] Valid certificates and keys now exist in "/etc/kubernetes/pki"',
        '[certs] Using the existing "sa" key',
    ]
    assert {path: content for path, content in state.contents(second).items() if path in shared} == shared
    assert described_tree(second).keys() == described_tree(first).keys()

    kubeconfigs.ensure_for_join(machine.ctx)
    assert machine.said() == [
        f'[kubeconfig] Writing "{name}.conf" kubeconfig file' for name in ("admin", "controller-manager", "scheduler")
    ]


def test_a_joining_control_plane_refuses_a_certificate_for_other_names(tmp_path: Path) -> None:
    Machine(tmp_path).run("certs all")
    machine = Machine(tmp_path)
    machine.ctx.config.node_registration.name = "cp-2"
    with pytest.raises(OperatorError, match=r"certificate apiserver is invalid: .* is not valid for cp-2"):
        store.ensure_for_join(machine.ctx)


@pytest.mark.parametrize("missing", ["apiserver", "etcd/peer", "front-proxy-client"])
def test_a_joining_control_plane_without_the_key_of_a_ca_needs_all_certificates(missing: str, tmp_path: Path) -> None:
    folder = tmp_path / "etc/kubernetes/pki"
    Machine(tmp_path).run("certs all")
    for ca in ("ca", "etcd/ca", "front-proxy-ca"):
        (folder / f"{ca}.key").unlink()
    complete = Machine(tmp_path)
    store.ensure_for_join(complete.ctx)
    assert '[certs] Using the existing "apiserver" certificate and key' in complete.said()
    kubeconfigs.ensure_for_join(complete.ctx)
    assert complete.said()[0] == "[kubeconfig] External CA mode: Using user provided admin.conf"

    (folder / f"{missing}.crt").unlink()
    (folder / f"{missing}.key").unlink()
    with pytest.raises(OperatorError, match="could not load expected certificate"):
        store.ensure_for_join(Machine(tmp_path).ctx)


def test_a_join_without_the_shared_files_says_which_are_missing(tmp_path: Path) -> None:
    Machine(tmp_path).run("certs all")
    folder = tmp_path / "etc/kubernetes/pki"
    for name in ("front-proxy-ca.crt", "sa.pub", "etcd/ca.key"):
        (folder / name).unlink()
    machine = Machine(tmp_path)
    problems = store.shared_problems(machine.ctx)
    assert len(problems) == 2
    assert "/etc/kubernetes/pki/front-proxy-ca.crt" in problems[0]
    assert "/etc/kubernetes/pki/sa.pub" in problems[1]
    assert machine.warned() == ["assuming external key for etcd-ca: /etc/kubernetes/pki/etcd/ca.key does not exist"]


def test_an_expired_authority_vouches_for_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "validity")
    machine.run("certs all")
    later = Machine(tmp_path, "validity")
    later.host.clock += timedelta(hours=43801)
    (tmp_path / "etc/kubernetes/pki/apiserver.crt").unlink()
    (tmp_path / "etc/kubernetes/pki/apiserver.key").unlink()
    later.run("certs apiserver")
    with pytest.raises(OperatorError, match="CN=kubernetes does not vouch for it: the certificate has expired"):
        later.run("certs apiserver")
