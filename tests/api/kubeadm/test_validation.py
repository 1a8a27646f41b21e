"""Validation, row by row as in kubeadm's app/apis/kubeadm/validation/validation_test.go (1.35.4).

Rows that can be written as a file are compared with the real program's words in tests/node/config/test_load.py; here
are all of them against the functions, with the outcome that kubeadm's test expects.
"""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.kubeadm import internal
from slipway.api.kubeadm.addresses import parse_host_port, split_host_port
from slipway.api.kubeadm.validation import formats, rules
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import ConfigurationError, UsageError
from slipway.api.machinery.fieldpath import Path, aggregate
from slipway.api.machinery.version import Version
from slipway.api.releases import SUPPORTED_MINORS, Release, release_for

pytestmark = pytest.mark.upstream_table

RELEASE = release_for(Version(1, 35, 4))
AT = Path("field")
SOCKET = "unix:///some/path"
TOKEN = "abcdef.1234567890123456"


def no_warning(text: str) -> None:
    raise AssertionError(f"unexpected warning: {text}")


@pytest.mark.parametrize(
    ("token", "valid"),
    [("772ef5.6b6baab1d4a0a171", True), (".6b6baab1d4a0a171", False), ("772ef5.", False), ("abcdef.1234567890123456@foobar", False)],
)
def test_token(token: str, valid: bool) -> None:
    assert (rules.validate_token(token, AT) == []) == valid


@pytest.mark.parametrize(("usages", "valid"), [([], True), (["signing", "authentication"], True), (["something else"], False)])
def test_token_usages(usages: list[str], valid: bool) -> None:
    assert (rules.validate_token_usages(usages, AT) == []) == valid


@pytest.mark.parametrize(
    ("usages", "groups", "valid"),
    [
        (["some usage"], ["some group"], False),
        (["authentication"], ["some group"], False),
        (["authentication"], ["system:bootstrappers:anygroup"], True),
    ],
)
def test_token_groups(usages: list[str], groups: list[str], valid: bool) -> None:
    assert (rules.validate_token_groups(usages, groups, AT) == []) == valid


@pytest.mark.parametrize(
    ("name", "valid"),
    [("", False), ("INVALID-NODENAME", False), ("invalid-nodename-", False), ("invalid-node?name", False), ("valid-nodename", True)],
)
def test_node_registration(name: str, valid: bool) -> None:
    options = internal.NodeRegistrationOptions(name=name, cri_socket=SOCKET)
    assert (rules.validate_node_registration(options, AT) == []) == valid


@pytest.mark.parametrize(
    ("names", "valid"),
    [
        ([], True),
        (["1,2,,3"], False),
        (["my-hostname", "???&?.garbage"], False),
        (["my-hostname", "my.subdomain", "1.2.3.4"], True),
        (["my-hostname2", "my.other.subdomain", "10.0.0.10"], True),
        (["my-hostname", "my.subdomain", "2001:db8::4"], True),
        (["my-hostname2", "my.other.subdomain", "2001:db8::10"], True),
        (["*.my-hostname2", "*.my.other.subdomain"], True),
        (["**.my-hostname2", "my.other.subdomain"], False),
        (["*.*.my-hostname2", "my.other.subdomain"], False),
        (["a.*.my-hostname2", "my.other.subdomain"], False),
        (["*", "my.other.subdomain", "2001:db8::10"], False),
    ],
)
def test_cert_sans(names: list[str], valid: bool) -> None:
    assert (rules.validate_cert_sans(names, AT) == []) == valid


@pytest.mark.parametrize(
    ("address", "valid"),
    [
        ("", False),
        ("1234", False),
        ("1.2", False),
        ("1.2.3.4/16", False),
        ("1.2.3.4", True),
        ("2001:db8::1", True),
        ("2001:db8::1/64", False),
        ("2001:xb8::", False),
        ("2001::db8::", False),
    ],
)
def test_ip(address: str, valid: bool) -> None:
    assert (formats.validate_ip(address, AT) == []) == valid


@pytest.mark.parametrize(("port", "valid"), [(-1234, False), (0, False), (1, True), (300, True), (65535, True), (65538, False)])
def test_port(port: int, valid: bool) -> None:
    endpoint = internal.APIEndpoint(advertise_address="1.2.3.4", bind_port=port)
    assert (formats.validate_endpoint(endpoint, AT) == []) == valid


@pytest.mark.parametrize(
    ("subnets", "minimum", "valid"),
    [
        ("", 0, False),
        ("10.0.0.16/12", 10, True),
        ("2001:db8::/98", 10, True),
        ("1.2.3.4,2001:db8::/98", 0, False),
        ("2001:db8::1,10.0.0.16/12", 0, False),
        ("10.0.0.16/29,2001:db8::/98", 10, False),
        ("10.0.0.16/12,2001:db8::/125", 10, False),
        ("10.0.0.16/12,192.168.0.0/16", 10, False),
        ("2001:db8::/98,2005:db8::/98", 10, False),
        ("10.0.0.16/12,2001:db8::/98", 10, True),
        ("10.0.0.16/12,2001:db8::/98,192.168.0.0/16", 10, False),
        ("10.0.0.16/12,2001:db8::/98,192.168.0.0/16,a.b.c.d/24", 10, False),
    ],
)
def test_subnets(subnets: str, minimum: int, valid: bool) -> None:
    assert (formats.validate_subnets(subnets, minimum, AT, no_warning) == []) == valid


IPV4_MASK, IPV6_MASK = "node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6"


@pytest.mark.parametrize(
    ("subnet", "arguments", "valid"),
    [
        ("10.0.0.16/29", {}, False),
        ("10.0.0.16/24", {IPV4_MASK: "23"}, False),
        ("2001:db8::1/112", {}, False),
        ("2001:db8::1/64", {IPV6_MASK: "24"}, False),
        ("2001:db8::1/12", {}, False),
        ("2001:db8::1/64", {IPV6_MASK: "120"}, False),
        ("10.0.0.16/12", {}, True),
        ("2001:db8::/48", {}, True),
        ("10.0.0.16/29,2001:db8::/48", {}, False),
        ("10.0.0.16/24,2001:db8::/48", {IPV4_MASK: "23"}, False),
        ("2001:db8::1/112,10.0.0.16/16", {}, False),
        ("10.0.0.16/16,2001:db8::1/64", {IPV6_MASK: "24"}, False),
        ("2001:db8::1/12,10.0.0.16/16", {}, False),
        ("10.0.0.16/16,2001:db8::1/64", {IPV6_MASK: "120"}, False),
        ("2001:db8::/48,10.0.0.16/12", {}, True),
        # TestGetClusterNodeMask: which mask is the node's, seen in what fits.
        ("10.0.0.0/23", {"node-cidr-mask-size": "21", IPV4_MASK: "23"}, True),
        ("10.0.0.0/24", {"node-cidr-mask-size": "21", IPV4_MASK: "23"}, False),
        ("2001:db8::/83", {IPV6_MASK: "83"}, True),
        ("2001:db8::/84", {IPV6_MASK: "83"}, False),
        ("10.0.0.0/8", {IPV4_MASK: "aa"}, False),
        ("2001:db8::/64", {"node-cidr-mask-size": "23"}, True),
        ("2001:db8::/65", {"node-cidr-mask-size": "23"}, False),
        ("2001:db8::/48", {"node-cidr-mask-size": "23", IPV6_MASK: "a83"}, False),
    ],
)
def test_pod_subnet_and_node_mask(subnet: str, arguments: dict[str, str], valid: bool) -> None:
    cluster = internal.ClusterConfiguration()
    cluster.controller_manager.extra_args = [internal.Arg(name=name, value=value) for name, value in arguments.items()]
    assert (formats.validate_pod_subnet_node_mask(subnet, cluster, AT) == []) == valid


@pytest.mark.parametrize(
    ("subnet", "valid"),
    [
        ("10.0.0.16/2", False),
        ("2001:db8::1/64", False),
        ("10.0.0.16/12", True),
        ("2001:db8::/112", True),
        ("2001:db8::1/112,10.0.0.16/6", False),
        ("2001:db8::1/12,10.0.0.16/16", False),
        ("10.0.0.16/12,2001:db8::/112", True),
        ("2001:db8::/112,10.0.0.16/12", True),
    ],
)
def test_service_subnet_size(subnet: str, valid: bool) -> None:
    cluster = internal.ClusterConfiguration(networking=internal.Networking(service_subnet=subnet, dns_domain="cluster.local"))
    assert (formats.validate_networking(cluster, AT, no_warning) == []) == valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("cp.k8s.io:8081", True),
        ("cp.k8s.io", True),
        ("1.2.3.4:8081", True),
        ("1.2.3.4", True),
        ("[2001:db7::1]:8081", True),
        ("2001:db7::1", True),
        ("1.2.34", True),
        ("a.B.c.d.e", False),
        ("2001:db7:1", False),
        ("1.2.3.4:0", False),
    ],
)
def test_host_port(text: str, valid: bool) -> None:
    assert (formats.validate_host_port(text, AT) == []) == valid


@pytest.mark.parametrize(
    ("address", "port", "valid"),
    [("4.5.6.7", 6443, True), ("2001:db7::2", 6443, True), ("1.2.34", 6443, False), ("2001:db7:1", 6443, False), ("4.5.6.7", 0, False)],
)
def test_api_endpoint(address: str, port: int, valid: bool) -> None:
    assert (formats.validate_endpoint(internal.APIEndpoint(advertise_address=address, bind_port=port), AT) == []) == valid


KEY = "e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204"


@pytest.mark.parametrize(("key", "valid"), [(KEY, True), (f"z{KEY[1:]}", False), ("e6a2", False), ("", True)])
def test_certificate_key(key: str, valid: bool) -> None:
    assert (rules.validate_certificate_key(key, AT) == []) == valid


def init(**changes: Any) -> internal.InitConfiguration:
    config = internal.InitConfiguration(
        local_api_endpoint=internal.APIEndpoint(advertise_address="1.2.3.4", bind_port=6443),
        node_registration=internal.NodeRegistrationOptions(name="valid-nodename", cri_socket=SOCKET),
        cluster=internal.ClusterConfiguration(
            image_repository="registry.k8s.io",
            etcd=internal.Etcd(local=internal.LocalEtcd(data_dir="/some/path")),
            networking=internal.Networking(service_subnet="10.96.0.1/12", dns_domain="cluster.local", pod_subnet="10.0.1.15/16"),
            certificates_dir="/some/other/cert/dir",
            encryption_algorithm="RSA-2048",
        ),
    )
    for path, value in changes.items():
        *parents, last = path.split("__")
        target: Any = config
        for name in parents:
            target = getattr(target, name)
        setattr(target, last, value)
    return config


@pytest.mark.parametrize(
    ("config", "valid"),
    [
        (internal.InitConfiguration(), False),
        (init(cluster__image_repository="", cluster__etcd=internal.Etcd()), False),
        (init(cluster__networking__service_subnet="2001:db8::1/98"), False),
        (init(node_registration=internal.NodeRegistrationOptions()), False),
        (init(cluster__networking__pod_subnet="10.0.1.15"), False),
        (init(), True),
        (
            init(
                local_api_endpoint__advertise_address="1:2:3::4",
                cluster__networking=internal.Networking(service_subnet="2001:db8::1/112", dns_domain="cluster.local"),
                cluster__encryption_algorithm="ECDSA-P256",
            ),
            True,
        ),
        (init(cluster__encryption_algorithm="ECDSA-P384"), True),
    ],
)
def test_init_configuration(config: internal.InitConfiguration, valid: bool) -> None:
    assert (rules.validate_init(config, RELEASE, no_warning) == []) == valid


def join(**changes: Any) -> internal.JoinConfiguration:
    token = internal.BootstrapTokenDiscovery(token=TOKEN, api_server_endpoint="1.2.3.4:6443", ca_cert_hashes=["aaaa"])
    config = internal.JoinConfiguration(
        ca_cert_path="/some/cert.crt",
        discovery=internal.Discovery(bootstrap_token=token, tls_bootstrap_token=TOKEN),
        node_registration=internal.NodeRegistrationOptions(name="aaa", cri_socket=SOCKET),
    )
    for name, value in changes.items():
        setattr(config, name, value)
    return config


def control_plane(address: str, port: int) -> internal.JoinControlPlane:
    return internal.JoinControlPlane(local_api_endpoint=internal.APIEndpoint(advertise_address=address, bind_port=port))


@pytest.mark.parametrize(
    ("config", "valid"),
    [
        (internal.JoinConfiguration(), False),
        (
            join(
                discovery=internal.Discovery(
                    bootstrap_token=internal.BootstrapTokenDiscovery(token=f"{TOKEN}@foobar"),
                    file=internal.FileDiscovery(kube_config_path="foo"),
                )
            ),
            False,
        ),
        (join(), True),
        (join(control_plane=control_plane("1.2.3.4", 1234)), True),
        (join(control_plane=control_plane("aaa", 1234)), False),
        (join(control_plane=control_plane("1.2.3.4", -1)), False),
    ],
)
def test_join_configuration(config: internal.JoinConfiguration, valid: bool) -> None:
    assert (rules.validate_join(config, lambda path: False) == []) == valid


@pytest.mark.parametrize(
    ("flags", "valid"),
    [
        (["foo"], True),
        (["config"], True),
        (["config", "ignore-preflight-errors"], True),
        (["config", "skip-token-print"], True),
        (["config", "ignore-preflight-errors", "skip-token-print"], True),
        (["config", "yes"], True),
        (["config", "print-manifest"], True),
        (["config", "ignore-preflight-errors", "foo"], False),
        (["config", "foo"], False),
        (["config", "yes", "foo"], False),
        (["config", "allow-experimental-upgrades"], False),
    ],
)
def test_mixed_arguments(flags: list[str], valid: bool) -> None:
    if valid:
        rules.refuse_mixed_arguments(flags)
    else:
        with pytest.raises(UsageError, match="can not mix '--config' with arguments"):
            rules.refuse_mixed_arguments(flags)


def test_mixed_arguments_are_named_in_order() -> None:
    with pytest.raises(UsageError) as caught:
        rules.refuse_mixed_arguments(["token", "config", "cert-dir", "v"])
    assert caught.value.message == "can not mix '--config' with arguments [cert-dir token]"


@pytest.mark.parametrize("value", [True, False])
def test_unknown_feature_gate(value: bool) -> None:
    (error,) = rules.validate_feature_gates({"Unknown": value}, RELEASE, Path("featureGates"))
    assert error.detail == "Unknown is not a valid feature name."


@pytest.mark.parametrize(
    ("flags", "config", "expected"),
    [
        ([], [], []),
        ([], ["a"], ["a"]),
        (["a"], [], ["a"]),
        (["a", "b"], ["c", "d"], ["a", "b", "c", "d"]),
        (["a", "b", "a"], ["c", "b"], ["a", "b", "c"]),
        ([], ["all"], ["all"]),
        (["all"], [], ["all"]),
        (["all"], ["all"], ["all"]),
        (["a", "b", "all"], [], None),
        ([], ["a", "b", "all"], None),
        (["a", "b"], ["all"], None),
        (["all"], ["a", "b"], None),
        (["Swap"], ["SWAP"], ["swap"]),
    ],
)
def test_ignored_preflight_errors(flags: list[str], config: list[str], expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(ConfigurationError, match="don't specify individual checks if 'all' is used"):
            rules.ignored_preflight_errors(flags, config)
    else:
        assert rules.ignored_preflight_errors(flags, config) == expected


def discovery_token(**fields: Any) -> internal.Discovery:
    return internal.Discovery(bootstrap_token=internal.BootstrapTokenDiscovery(token=TOKEN, **fields), tls_bootstrap_token=TOKEN)


HASHES = ["sha256:7173b809ca12ec5dee4506cd86be934c4596dd234ee82c0662eac04a8c2c71dc"]


@pytest.mark.parametrize(
    ("discovery", "valid"),
    [
        (
            internal.Discovery(
                bootstrap_token=internal.BootstrapTokenDiscovery(token=TOKEN),
                file=internal.FileDiscovery(kube_config_path="https://url/file.conf"),
            ),
            False,
        ),
        (internal.Discovery(), False),
        (discovery_token(), False),
        (discovery_token(api_server_endpoint="192.168.122.100:6443"), False),
        (discovery_token(api_server_endpoint="192.168.122.100:6443", ca_cert_hashes=HASHES), True),
        (discovery_token(api_server_endpoint="192.168.122.100:6443", ca_cert_hashes=HASHES, unsafe_skip_ca_verification=True), True),
        (discovery_token(api_server_endpoint="192.168.122.100", ca_cert_hashes=HASHES), False),
    ],
)
def test_discovery(discovery: internal.Discovery, valid: bool) -> None:
    assert (rules.validate_discovery(discovery, AT, lambda path: False) == []) == valid


@pytest.mark.parametrize(
    ("location", "valid"),
    [
        ("foo", False),
        ("/foo/bar/file_which_i_believe_not_existing.conf", False),
        ("/there.conf", True),
        ("http://[::1]a", False),
        ("http://url/file.conf", False),
        ("https://u r l/file.conf", False),
        ("https://url/file.conf", True),
    ],
)
def test_discovery_file(location: str, valid: bool) -> None:
    assert (rules.validate_discovery_kubeconfig(location, AT, {"/there.conf"}.__contains__) == []) == valid


@pytest.mark.parametrize(
    ("socket", "valid"), [(SOCKET, True), ("bla:///some/path", False), ("/some/path", False), (":::", False), ("", False)]
)
def test_socket_path(socket: str, valid: bool) -> None:
    assert (rules.validate_socket_path(socket, AT) == []) == valid


@pytest.mark.parametrize(
    ("urls", "https", "valid"),
    [
        (["http://example.com", "https://example.org"], False, True),
        (["https://example.com", "https://example.org"], True, True),
        (["http://example.com", "https://example.org"], True, False),
        (["::://example.com"], False, False),
        (["example.com"], False, False),
    ],
)
def test_urls(urls: list[str], https: bool, valid: bool) -> None:
    assert (rules.validate_urls(urls, https, AT) == []) == valid


def external(*endpoints: str, **files: Any) -> internal.Etcd:
    return internal.Etcd(external=internal.ExternalEtcd(endpoints=list(endpoints), **files))


@pytest.mark.parametrize(
    ("etcd", "valid"),
    [
        (internal.Etcd(), False),
        (internal.Etcd(local=internal.LocalEtcd(data_dir="/some/path"), external=external("10.100.0.1:2379").external), False),
        (external("https://external.etcd1:2379", cert_file="/some/file.crt"), False),
        (external("https://external.etcd1:2379", cert_file="/some/file.crt", key_file="/some/file.key"), False),
        (external("https://external.etcd1:2379", cert_file="/etcd.crt", key_file="/etcd.key", ca_file="/etcd-ca.crt"), True),
        (external("http://10.100.0.1:2379", "http://10.100.0.2:2379"), True),
    ],
)
def test_etcd(etcd: internal.Etcd, valid: bool) -> None:
    assert (rules.validate_etcd(etcd, RELEASE, AT) == []) == valid


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
@pytest.mark.parametrize(
    ("algorithm", "since"),
    [("RSA-2048", 33), ("RSA-3072", 33), ("RSA-4096", 33), ("ECDSA-P256", 33), ("ECDSA-P384", 34), ("foo", 99), ("", 99)],
)
def test_encryption_algorithm(algorithm: str, since: int, minor: int) -> None:
    release: Release = release_for(Version(1, minor, 0))
    assert (rules.validate_encryption_algorithm(algorithm, release, AT) == []) == (minor >= since)


@pytest.mark.parametrize(
    ("repository", "valid"),
    [
        ("a", True),
        ("a.b.c", True),
        ("a.b.c/repo", True),
        ("a:5000", True),
        ("a.b.c:5000", True),
        ("a.b.c:5000/repo", True),
        ("a/b/c", True),
        ("127.0.0.1:5000/repo", True),
        ("", False),
        ("a.b/c\n\t\t\ts", False),
        (" a.b.c", False),
        ("a.b c", False),
        ("a.b.c:5000/", False),
        ("https://a.b.c:5000", False),
        ("a//b/c", False),
        ("a.b.c:5000/test:1.0", False),
    ],
)
def test_image_repository(repository: str, valid: bool) -> None:
    assert (rules.validate_image_repository(repository, AT) == []) == valid


@pytest.mark.parametrize(("path", "valid"), [("/etc/cert/dir", True), ("./tmp", False), ("foo..", False)])
def test_absolute_path(path: str, valid: bool) -> None:
    assert (rules.validate_absolute_path(path, AT) == []) == valid


@pytest.mark.parametrize(("names", "count"), [(["foo"], 0), ([""], 1), (["", ""], 2)])
def test_extra_args(names: list[str], count: int) -> None:
    assert len(rules.validate_extra_args([internal.Arg(name=name, value="x") for name in names], AT)) == count


@pytest.mark.parametrize(
    ("flags", "count"), [([], 0), (["MNT_FORCE", "MNT_DETACH", "MNT_EXPIRE", "UMOUNT_NOFOLLOW"], 0), (["foo", "bar"], 2)]
)
def test_unmount_flags(flags: list[str], count: int) -> None:
    assert len(rules.validate_unmount_flags(flags, AT)) == count


@pytest.mark.parametrize(("policy", "count"), [("", 0), ("foo", 1), ("IfNotPresent", 0)])
def test_image_pull_policy(policy: str, count: int) -> None:
    assert len(rules.validate_image_pull_policy(policy, AT)) == count


@pytest.mark.parametrize(
    ("leaf", "authority", "count"),
    [(None, None, 0), (8760, 87600, 0), (17520, 175200, 2), (2, 1, 1)],
)
def test_certificate_validity(leaf: int | None, authority: int | None, count: int) -> None:
    config = internal.ClusterConfiguration(
        certificate_validity_period=None if leaf is None else Duration.of(hours=leaf),
        ca_certificate_validity_period=None if authority is None else Duration.of(hours=authority),
    )
    assert len(rules.certificate_validity_warnings(config)) == count


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (internal.ResetConfiguration(cri_socket="foo", certificates_dir="bar", unmount_flags=["baz"]), 3),
        (internal.ResetConfiguration(cri_socket=SOCKET, certificates_dir="/foo/bar", unmount_flags=["MNT_FORCE"]), 0),
    ],
)
def test_reset_configuration(config: internal.ResetConfiguration, count: int) -> None:
    assert len(rules.validate_reset(config)) == count


@pytest.mark.parametrize(("directory", "policy", "count"), [("foo", "bar", 4), ("/foo/bar", "Always", 0)])
def test_upgrade_configuration(directory: str, policy: str, count: int) -> None:
    patches = internal.Patches(directory=directory)
    config = internal.UpgradeConfiguration(
        apply=internal.UpgradeApplyConfiguration(patches=patches, image_pull_policy=policy),
        node=internal.UpgradeNodeConfiguration(patches=patches, image_pull_policy=policy),
    )
    assert len(rules.validate_upgrade(config)) == count


def test_equal_errors_are_said_once() -> None:
    """As apimachinery's ErrorList.ToAggregate does."""
    errors = rules.validate_cert_sans(["*", "*"], AT)
    assert aggregate(errors) == str(errors[0])


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("a:1", "a", "1"), ("[::1]:2", "::1", "2"), (":3", "", "3"), ("a:", "a", ""), ("[fe80::1%eth0]:1", "fe80::1%eth0", "1")],
)
def test_split_host_port(text: str, host: str, port: str) -> None:
    assert split_host_port(text) == (host, port)


@pytest.mark.parametrize(("text", "expected"), [("2001:db7::1", ("2001:db7::1", "")), ("[::1]:6443", ("::1", "6443")), ("a", ("a", ""))])
def test_parse_host_port(text: str, expected: tuple[str, str]) -> None:
    assert parse_host_port(text) == expected
