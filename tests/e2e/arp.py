"""Who answers for an address on a network segment: asked by ARP twenty times a second, and everything heard written down."""

from __future__ import annotations

import json
import select
import socket
import struct
import subprocess
import threading
import time
from itertools import pairwise
from typing import NamedTuple, Self

_ETH_P_ALL, _ETH_P_ARP = 3, b"\x08\x06"
_REQUEST = 1
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_PERIOD = 0.05


class Heard(NamedTuple):
    """A packet that says who has the address."""

    at: float
    mac: str
    gratuitous: bool


class Owners:
    """Asks while the block runs.  ``heard`` is all that was said, ``doubled`` the questions that two hosts answered."""

    def __init__(self, bridge: str, address: str) -> None:
        self.heard: list[Heard] = []
        self.doubled: list[tuple[float, frozenset[str]]] = []
        self.asked = 0
        self._address = socket.inet_aton(address)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        self._socket.bind((bridge, 0))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()

    @property
    def owner(self) -> str:
        """Who answered last, within the last half second; nobody is empty."""
        last = self.heard[-1] if self.heard else None
        return last.mac if last is not None and time.monotonic() - last.at < 0.5 else ""

    def silence(self, since: float) -> float:
        """The longest time without an answer from a moment on."""
        times = [since, *(heard.at for heard in self.heard if heard.at > since), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(times))

    def announced(self, mac: str, since: float) -> bool:
        """Whether a host said without being asked that the address is its."""
        return any(heard.gratuitous and heard.mac == mac for heard in self.heard if heard.at > since)

    def _run(self) -> None:
        own: bytes = self._socket.getsockname()[4]
        question = b"\xff" * 6 + own + _ETH_P_ARP + _ARP.pack(1, 0x0800, 6, 4, _REQUEST, own, bytes(4), bytes(6), self._address)
        while not self._stop.is_set():
            self._socket.send(question)
            self.asked += 1
            answers = self._listen(time.monotonic() + _PERIOD)
            if len(answers) > 1:
                self.doubled.append((time.monotonic(), answers))

    def _listen(self, until: float) -> frozenset[str]:
        """Those who answered the question, and not those who only announced themselves: an owner may leave and another one come."""
        answers = set()
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._socket], [], [], left)[0]:
                break
            frame = self._socket.recv(2048)
            if frame[12:14] != _ETH_P_ARP or len(frame) < 14 + _ARP.size:
                continue
            _, _, _, _, _, mac, sender, _, target = _ARP.unpack_from(frame, 14)
            if sender == self._address:
                said = Heard(time.monotonic(), mac.hex(":"), target == self._address)
                self.heard.append(said)
                if not said.gratuitous:
                    answers.add(said.mac)
        return frozenset(answers)


def bridge_of(network: str) -> str:
    """The bridge that has an address in a network such as ``10.88.0.``."""
    shown = subprocess.run(["ip", "-json", "address"], capture_output=True, text=True, check=True).stdout
    links = [link for link in json.loads(shown) for found in link.get("addr_info", ()) if found.get("local", "").startswith(network)]
    assert len(links) == 1, f"one bridge of {network} is wanted, and there are {[link['ifname'] for link in links]}"
    return str(links[0]["ifname"])
