"""The addresses of a network interface, asked of the kernel and taken away over AF_NETLINK with nothing but the standard library."""

from __future__ import annotations

# The C module under `socket`, whose own enums and selectors take 5 ms to import: a tenth of what `config` may take.
import _socket as socket
import fcntl
import os
import struct
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NLMSG_ERROR, _NLMSG_DONE, _RTM_NEWADDR, _RTM_DELADDR, _RTM_GETADDR = 2, 3, 20, 21, 22
_REQUEST_DUMP = 0x1 | 0x300
_REQUEST_ACK = 0x1 | 0x4
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_SIOCGIFFLAGS, _IFF_UP = 0x8913, 0x1

_HEADER = struct.Struct("=IHHII")
_ADDRESS = struct.Struct("=BBBBI")
_ATTRIBUTE = struct.Struct("=HH")


def addresses(interface: str) -> list[str]:
    """The addresses of an interface in the kernel's order, IPv4 first; none where it is down.  OSError: no such interface."""
    return [network.rpartition("/")[0] for network in networks(interface)]


def networks(interface: str) -> list[str]:
    """The same, each with the length of its prefix."""
    index = socket.if_nametoindex(interface)
    if not _is_up(interface):
        return []
    found = []
    for kind, body in _dump_addresses():
        if kind != _RTM_NEWADDR:
            continue
        family, length, _, _, owner = _ADDRESS.unpack_from(body)
        if owner == index and family in (socket.AF_INET, socket.AF_INET6):
            attributes = dict(_attributes(body[_ADDRESS.size :]))
            # On a point-to-point link IFA_ADDRESS is the other end.
            packed = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS)
            if packed is not None:
                found.append(f"{socket.inet_ntop(family, packed)}/{length}")
    return found


def remove_address(interface: str, address: str, prefix: int) -> None:
    """Take an IPv4 address away from an interface.  OSError: it does not have it, or we may not."""
    attribute = _ATTRIBUTE.pack(_ATTRIBUTE.size + 4, _IFA_LOCAL) + socket.inet_aton(address)
    body = _ADDRESS.pack(socket.AF_INET, prefix, 0, 0, socket.if_nametoindex(interface)) + attribute
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)) as channel:
        channel.bind((0, 0))
        channel.send(_HEADER.pack(_HEADER.size + len(body), _RTM_DELADDR, _REQUEST_ACK, 1, 0) + body)
        for kind, content in _messages(channel.recv(1 << 16)):
            # An error of number 0 is the acknowledgement.
            if kind == _NLMSG_ERROR and (number := -struct.unpack_from("=i", content)[0]):
                raise OSError(number, os.strerror(number))


def _is_up(interface: str) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as handle:
        answer = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sH22x", interface.encode(), 0))
    flags: int = struct.unpack_from("16xH", answer)[0]
    return bool(flags & _IFF_UP)


def _dump_addresses() -> Iterator[tuple[int, bytes]]:
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)) as channel:
        channel.bind((0, 0))
        body = _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        channel.send(_HEADER.pack(_HEADER.size + len(body), _RTM_GETADDR, _REQUEST_DUMP, 1, 0) + body)
        while True:
            for kind, content in _messages(channel.recv(1 << 16)):
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    number = -struct.unpack_from("=i", content)[0]
                    raise OSError(number, os.strerror(number))
                yield kind, content


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _HEADER.size:
        length, kind, _, _, _ = _HEADER.unpack_from(data)
        yield kind, data[_HEADER.size : length]
        data = data[_aligned(length) :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        yield kind, data[_ATTRIBUTE.size : length]
        data = data[_aligned(length) :]


def _aligned(length: int) -> int:
    return (length + 3) & ~3
