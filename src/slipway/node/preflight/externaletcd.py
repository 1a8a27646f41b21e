"""Checks of an etcd that Slipway does not run: that it answers, and that it is new enough."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.version import Version
from slipway.node.preflight.check import FINE, Check, Findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.kubeadm.internal import ExternalEtcd
    from slipway.host.interface import Host

OLDEST = "3.5.24-0"
"""The oldest version that works, of kubeadm 1.33 to 1.36 (constants.MinExternalEtcdVersion)."""
_TIMEOUT = 10.0
_TRIES = 4
_PAUSE = 5.0
_HOPELESS = (errno.ENETUNREACH, errno.EHOSTUNREACH)
"""Where no packet gets to, none will in a few seconds."""


def version(etcd: ExternalEtcd, endpoints: list[str], *, pause: float = _PAUSE) -> Check:
    """The version of every endpoint; one that does not answer is asked again, as it may just be starting."""

    def find(host: Host) -> Findings:
        if not endpoints:
            return FINE
        missing = [path for path in (etcd.ca_file, etcd.cert_file, etcd.key_file) if path and not host.exists(path)]
        if missing:
            return Findings(errors=(f"couldn't load external etcd's certificates: {missing[0]} doesn't exist",))
        identity = (etcd.cert_file, etcd.key_file) if etcd.cert_file and etcd.key_file else None

        def ask(endpoint: str) -> bytes:
            return host.fetch(f"{endpoint.rstrip('/')}/version", ca=etcd.ca_file, identity=identity, timeout=_TIMEOUT)

        answers = [problem(endpoint, ask, pause) for endpoint in endpoints]
        return Findings(errors=tuple(answer for answer in answers if answer))

    return Check("ExternalEtcdVersion", find, waits=True)


def problem(endpoint: str, ask: Callable[[str], bytes], pause: float) -> str:
    """What is wrong with an endpoint; empty where nothing is."""
    import time

    trouble = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(pause)
        try:
            return judged(ask(endpoint))
        except OSError as error:
            trouble = f"the external etcd at {endpoint} does not tell its version: {error}"
            if error.errno in _HOPELESS:
                break
    return trouble


def judged(answer: bytes) -> str:
    """What is wrong with the version in an answer such as ``{"etcdserver": "3.5.24", …}``."""
    try:
        told = str(msgspec.json.decode(answer, type=dict[str, object]).get("etcdserver", ""))
    except msgspec.DecodeError as error:
        return f"couldn't read the version of the external etcd: {error}"
    try:
        found = Version.parse(told)
    except ValueError as error:
        return f'couldn\'t parse external etcd version "{told}": {error}'
    if found < Version.parse(OLDEST):
        return f"this version of kubeadm only supports external etcd version >= {OLDEST}. Current version: {told}"
    return ""
