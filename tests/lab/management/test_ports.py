"""Which ports of the loopback address the programs of a lab get."""

from __future__ import annotations

import socket

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.lab.management import ports

NAMES = ("etcd", "kube-apiserver")
AMONG = range(23000, 23004)


def test_ports_on_record_are_kept_while_they_are_free() -> None:
    assert ports.choose(NAMES, {"etcd": 23003, "kube-apiserver": 23000}, "a", lambda _: True, AMONG) == {
        "etcd": 23003,
        "kube-apiserver": 23000,
    }


def test_only_the_port_that_was_taken_is_chosen_anew() -> None:
    chosen = ports.choose(NAMES, {"etcd": 23003, "kube-apiserver": 23000}, "a", lambda port: port != 23003, AMONG)
    assert chosen["kube-apiserver"] == 23000
    assert chosen["etcd"] in (23001, 23002)


def test_each_name_gets_a_port_of_its_own_and_taken_ones_are_passed_over() -> None:
    chosen = ports.choose(NAMES, {}, "a", lambda port: port in (23001, 23003), AMONG)
    assert sorted(chosen.values()) == [23001, 23003]
    assert list(chosen) == list(NAMES)


def test_two_seeds_begin_to_look_in_different_places() -> None:
    here, there = (ports.choose(NAMES, {}, seed, lambda _: True) for seed in ("/labs/one", "/labs/two"))
    assert not set(here.values()) & set(there.values())


def test_a_range_without_a_free_port_is_told_with_its_bounds() -> None:
    with pytest.raises(OperatorError, match=r"no port for kube-apiserver is free on 127\.0\.0\.1 between 23000 and 23003"):
        ports.choose(NAMES, {}, "a", lambda port: port == 23002, AMONG)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_on_which_somebody_listens_is_not_free(address: str) -> None:
    with socket.create_server((address, 0)) as taken:
        port = taken.getsockname()[1]
        assert not ports.is_free(port)
    assert ports.is_free(port)
