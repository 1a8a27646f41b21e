"""What a kubeconfig says about the way to a cluster, with every form that Kubernetes documents for files of that kind."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.kube.connection import Connection, from_kubeconfig

SOURCE = "/etc/kubernetes/admin.conf"


def document(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a@b",
        "contexts": [{"name": "a@b", "context": {"cluster": "b", "user": "a"}}],
        "clusters": [{"name": "b", "cluster": cluster}],
        "users": [{"name": "a", "user": user}],
    }


def connection(cluster: dict[str, Any], user: dict[str, Any], **files: bytes) -> Connection:
    def read(path: str) -> bytes:
        try:
            return files[path.replace("/", "_").replace(".", "_")]
        except KeyError:
            raise FileNotFoundError(2, "No such file or directory") from None

    return from_kubeconfig(document(cluster, user), read, source=SOURCE)


def data(text: str) -> str:
    return b64encode(text.encode()).decode()


def test_data_in_the_file_is_decoded() -> None:
    made = connection(
        {"server": "https://h:6443/", "certificate-authority-data": data("ca"), "tls-server-name": "other"},
        {"client-certificate-data": data("crt"), "client-key-data": data("key")},
    )
    assert made == Connection(server="https://h:6443", ca=b"ca", client_certificate=b"crt", client_key=b"key", tls_server_name="other")


def test_files_are_read_from_where_the_kubeconfig_is() -> None:
    made = connection(
        {"server": "https://h", "certificate-authority": "pki/ca.crt"},
        {"client-certificate": "/var/c.pem", "client-key": "/var/c.pem", "tokenFile": "/run/token"},
        _etc_kubernetes_pki_ca_crt=b"ca",
        _var_c_pem=b"both",
        _run_token=b"secret\n",
    )
    assert (made.ca, made.client_certificate, made.client_key, made.token) == (b"ca", b"both", b"both", "secret")


def test_data_comes_before_a_file_and_a_token_before_its_file() -> None:
    made = connection(
        {"server": "https://h", "certificate-authority": "/none", "certificate-authority-data": data("ca")},
        {"token": "t", "tokenFile": "/none"},
    )
    assert (made.ca, made.token) == (b"ca", "t")


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({"server": ""}, {}, 'the kubeconfig file /etc/kubernetes/admin.conf has no server for the cluster "b"'),
        (
            {"server": "https://h", "certificate-authority-data": "?"},
            {},
            'certificate-authority-data of the cluster "b" in the kubeconfig file',
        ),
        (
            {"server": "https://h"},
            {"client-key": "/none"},
            "cannot read /none, which client-key of the kubeconfig file /etc/kubernetes/admin.conf names: No such file or directory",
        ),
        ({"server": "https://h"}, {"exec": {"command": "aws"}}, 'is authenticated by "exec", and only client certificates and tokens'),
    ],
)
def test_an_error_names_the_file_and_the_field(cluster: dict[str, Any], user: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        connection(cluster, user)
    assert message in caught.value.message


# What client-go 0.35.4 does not load ("cannot unmarshal … into Go struct field …"): a guess would be about trust or identity.
@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        (
            {"insecure-skip-tls-verify": "false"},
            {},
            'of the cluster "b" in the kubeconfig file FILE must be true or false, without quotes, and is text',
        ),
        (
            {"insecure-skip-tls-verify": "true"},
            {},
            'of the cluster "b" in the kubeconfig file FILE must be true or false, without quotes, and is text',
        ),
        ({"insecure-skip-tls-verify": 1}, {}, 'of the cluster "b" in the kubeconfig file FILE must be true or false, and is a number'),
        ({"tls-server-name": 5}, {}, 'of the cluster "b" in the kubeconfig file FILE must be text, and is a number: put it in quotes'),
        ({"proxy-url": ["http://p"]}, {}, 'of the cluster "b" in the kubeconfig file FILE must be text, and is a list'),
        ({"server": {}}, {}, 'of the cluster "b" in the kubeconfig file FILE must be text, and is a mapping'),
        (
            {"certificate-authority": 5},
            {},
            'of the cluster "b" in the kubeconfig file FILE must be text, and is a number: put it in quotes',
        ),
        (
            {"certificate-authority-data": 5555},
            {},
            'of the cluster "b" in the kubeconfig file FILE must be text, and is a number: put it in quotes',
        ),
        ({}, {"token": 12345}, 'of the user "a" in the kubeconfig file FILE must be text, and is a number: put it in quotes'),
        ({}, {"token": True}, 'of the user "a" in the kubeconfig file FILE must be text, and is a boolean: put it in quotes'),
        ({}, {"tokenFile": 5}, 'of the user "a" in the kubeconfig file FILE must be text, and is a number: put it in quotes'),
        ({}, {"client-key-data": False}, 'of the user "a" in the kubeconfig file FILE must be text, and is a boolean: put it in quotes'),
    ],
)
def test_a_field_of_another_type_is_refused_and_its_value_not_told(cluster: dict[str, Any], user: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        connection({"server": "https://h", **cluster}, user)
    (field,) = {**cluster, **user}
    assert caught.value.message == f"{field} {message.replace('FILE', SOURCE)}"


@pytest.mark.parametrize("trust", [{"certificate-authority-data": data("ca")}, {"certificate-authority": "/etc/kubernetes/pki/ca.crt"}])
def test_a_ca_and_no_verification_exclude_each_other(trust: dict[str, str]) -> None:
    with pytest.raises(OperatorError) as caught:
        connection({"server": "https://h", "insecure-skip-tls-verify": True, **trust}, {})
    assert caught.value.message == (
        'insecure-skip-tls-verify of the cluster "b" in the kubeconfig file /etc/kubernetes/admin.conf is true, and there is a '
        "certificate-authority as well: remove insecure-skip-tls-verify so that the server is verified with it"
    )


@pytest.mark.parametrize(("value", "insecure"), [(True, True), (False, False), (None, False)])
def test_verification_is_off_only_where_the_file_says_so(value: bool | None, insecure: bool) -> None:
    made = connection({"server": "https://h", "insecure-skip-tls-verify": value, "certificate-authority-data": ""}, {"token": None})
    assert (made.insecure, made.token) == (insecure, "")


def test_data_may_be_broken_into_lines() -> None:
    assert connection({"server": "https://h", "certificate-authority-data": "Y2\r\nE=\n"}, {}).ca == b"ca"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"clusters": {"b": {}}}, "clusters in the kubeconfig file /etc/kubernetes/admin.conf must be a list, and is a mapping"),
        (
            {"users": [{"name": "a", "user": "me"}]},
            'the user "a" of the kubeconfig file /etc/kubernetes/admin.conf must be a mapping, and is text',
        ),
        (
            {"current-context": 5},
            "current-context in the kubeconfig file /etc/kubernetes/admin.conf must be text, and is a number: put it in quotes",
        ),
    ],
)
def test_an_entry_of_another_shape_is_refused(broken: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        from_kubeconfig({**document({"server": "https://h"}, {}), **broken}, str.encode, source=SOURCE)
    assert caught.value.message == message


def test_another_context_may_be_chosen_and_must_be_there() -> None:
    both = document({"server": "https://h"}, {})
    both["contexts"].append({"name": "second", "context": {"cluster": "b"}})
    assert from_kubeconfig(both, str.encode, source=SOURCE, context="second").server == "https://h"
    with pytest.raises(OperatorError, match='has no "third" among its contexts'):
        from_kubeconfig(both, str.encode, source=SOURCE, context="third")
    with pytest.raises(OperatorError, match="has no current-context"):
        from_kubeconfig({**both, "current-context": ""}, str.encode, source=SOURCE)
