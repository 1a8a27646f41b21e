"""TLS from certificates and keys that are in memory, for clients of the API server and of etcd, and for servers of our own.

Python's ssl reads a certificate and its key from a path only; they are handed over through a file that has no name
on any disk, so that a private key is never left behind by a program that was killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    import ssl


def client_context(server: str, *, ca: bytes = b"", certificate: bytes = b"", key: bytes = b"", insecure: bool = False) -> ssl.SSLContext:
    """What a client of ``server`` trusts and shows.  Without ``ca`` the authorities of the machine are trusted."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca:
        try:
            context.load_verify_locations(cadata=ca.decode())
        except (ssl.SSLError, ValueError) as error:
            raise OperatorError(f"the CA certificate with which {server} is to be verified cannot be read: {error}") from None
    else:
        context.load_default_certs()
    if certificate or key:
        show(context, certificate + b"\n" + key, f"the client certificate and key for {server}")
    return context


def server_context(certificate: bytes, key: bytes, whose: str) -> ssl.SSLContext:
    """What a server shows; ``whose`` it is goes into the error.  Clients need no certificate."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    show(context, certificate + b"\n" + key, whose)
    return context


def show(context: ssl.SSLContext, pair: bytes, whose: str) -> None:
    """Show a certificate with its key from the next connection on; ``whose`` they are goes into the error."""
    import os
    import ssl

    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as memory:
            memory.write(pair)
        # An encrypted key would make OpenSSL ask at the terminal: an empty password makes it fail instead.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=b"")
    except (ssl.SSLError, ValueError) as error:
        raise OperatorError(f"{whose} cannot be used together: {error}") from None
    finally:
        os.close(descriptor)
