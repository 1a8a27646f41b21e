"""Where kubeconfigs are looked for, and how several are one: by client-go's rules."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.kube import kubeconfig


@pytest.mark.parametrize(
    ("environment", "files"),
    [
        ({"HOME": "/home/me"}, ["/home/me/.kube/config"]),
        ({"HOME": "/home/me", "KUBECONFIG": ""}, ["/home/me/.kube/config"]),
        ({"HOME": "/home/me", "KUBECONFIG": "/a"}, ["/a"]),
        ({"HOME": "/home/me", "KUBECONFIG": "/b::a:/b"}, ["/b", "a"]),
        ({}, []),
    ],
)
def test_the_environment_says_where_kubeconfigs_are(environment: dict[str, str], files: list[str]) -> None:
    assert kubeconfig.standard_files(environment) == files


def entries(kind: str, **named: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, kind: fields} for name, fields in named.items()]


# The rules of tools/clientcmd/loader.go, and TestConflictingCurrentContext and TestResolveRelativePaths beside it (client-go 0.35.4).
def test_of_several_kubeconfigs_the_first_to_say_something_wins() -> None:
    one = {"clusters": entries("cluster", red={"server": "https://one"}), "current-context": "first"}
    two = {
        "clusters": entries("cluster", red={"server": "https://two", "tls-server-name": "two"}, blue={"server": "https://blue"}),
        "current-context": "second",
        "users": entries("user", me={"token": "t"}),
    }
    assert kubeconfig.merged({"/one": {"current-context": ""}, "/two": one, "/three": two}) == {
        "current-context": "first",
        "clusters": entries("cluster", red={"server": "https://one"}, blue={"server": "https://blue"}),
        "contexts": [],
        "users": entries("user", me={"token": "t"}),
    }


def test_a_path_in_a_kubeconfig_starts_from_its_own_folder() -> None:
    one = {"clusters": entries("cluster", red={"certificate-authority": "ca.crt"})}
    two = {"users": entries("user", me={"client-certificate": "../me.crt", "client-key": "/keys/me.key", "tokenFile": "token"})}
    merged = kubeconfig.merged({"/a/config": one, "/b/c/config": two})
    assert merged["clusters"] == entries("cluster", red={"certificate-authority": "/a/ca.crt"})
    assert merged["users"] == entries(
        "user", me={"client-certificate": "/b/c/../me.crt", "client-key": "/keys/me.key", "tokenFile": "/b/c/token"}
    )
