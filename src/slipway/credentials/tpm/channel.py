"""The way to a TPM: a command goes out as bytes, and its response comes back (TPM 2.0 Library, part 1, section 18).

A TPM is a character device of the kernel, best ``/dev/tpmrm0``, which forgets what a program left in it; or a stream socket
as swtpm offers it: the path of a Unix socket, or ``tcp://host:port``.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import time
from typing import Protocol

from slipway.api.machinery.errors import OperatorError

_MAX_RESPONSE = 4096
_SOCKET_SECONDS = 60.0
_SESSIONS, _NO_SESSIONS = 0x8002, 0x8001
_PASSWORD_SESSION = 0x40000009
_STARTUP = 0x144
_SUCCESS, _INITIALIZE, _RETRY, _YIELDED, _TESTING = 0x000, 0x100, 0x922, 0x908, 0x90A
_TRIES = 20
_WAIT_SECONDS = 0.05
_ADVICE = {
    0x085: "the endorsement hierarchy is switched off: switch it on in the firmware's set-up",
    0x08E: "a hierarchy has a password: clear the TPM in the firmware's set-up",
    0x0A2: "a hierarchy has a password: clear the TPM in the firmware's set-up",
    0x09F: "what it was given is not for this TPM, or was changed",
    0x902: "it has no room for another key: stop what else uses the TPM, or take /dev/tpmrm0",
    0x921: "it is locked after wrong passwords: wait, or reset the lockout",
}
"""By codes without the number of the handle, session or parameter that they are about."""


class TPMError(OperatorError):
    """The TPM cannot be reached, or refused a command."""


class ResponseError(TPMError):
    """A refusal, with the TPM's own code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Stream(Protocol):
    """What bytes go out to and come in from."""

    def exchange(self, command: bytes) -> bytes: ...

    def close(self) -> None: ...


def open_stream(path: str) -> Stream:
    try:
        if path.startswith("tcp://"):
            host, _, port = path.removeprefix("tcp://").rpartition(":")
            return _Socket(socket.create_connection((host.strip("[]"), int(port)), _SOCKET_SECONDS))
        if stat.S_ISSOCK(os.stat(path).st_mode):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(_SOCKET_SECONDS)
            connection.connect(path)
            return _Socket(connection)
        return _Device(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except (OSError, ValueError) as error:
        raise TPMError(f"the TPM at {path} cannot be opened: {error}") from error


class _Device:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def exchange(self, command: bytes) -> bytes:
        # The kernel takes a command by one write and gives its response by one read.
        os.write(self._descriptor, command)
        return os.read(self._descriptor, _MAX_RESPONSE)

    def close(self) -> None:
        os.close(self._descriptor)


class _Socket:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def exchange(self, command: bytes) -> bytes:
        self._connection.sendall(command)
        head = self._exactly(10)
        return head + self._exactly(min(int.from_bytes(head[2:6], "big"), _MAX_RESPONSE) - len(head))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._connection.recv(count - len(data))
            if not more:
                raise OSError("the connection was closed in the middle of a response")
            data += more
        return data

    def close(self) -> None:
        self._connection.close()


class Channel:
    """Commands to one TPM."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stream = open_stream(path)

    def close(self) -> None:
        self._stream.close()

    def run(self, name: str, code: int, handles: tuple[int, ...], parameters: bytes = b"", sessions: tuple[int, ...] = ()) -> bytes:
        """The response to a command, after its head.

        ``sessions`` authorize the command's handles in order, each an empty password where it is zero.  A response to a
        command with sessions has the size of its parameters after its handles.
        """
        try:
            result, body = self._patiently(code, handles, parameters, sessions)
        except OSError as error:
            raise TPMError(f"the TPM at {self._path} did not answer {name}: {error}") from error
        if result != _SUCCESS:
            advice = _ADVICE.get(result & 0xBF if result & 0x80 else result)
            raise ResponseError(
                f"the TPM at {self._path} refused {name} with code 0x{result:03x}" + (f": {advice}" if advice else ""), result
            )
        return body

    def _patiently(self, code: int, handles: tuple[int, ...], parameters: bytes, sessions: tuple[int, ...]) -> tuple[int, bytes]:
        """Again while the TPM is busy; and after its start, where nothing but us is there to start it."""
        for _ in range(_TRIES):
            result, body = self._once(code, handles, parameters, sessions)
            if result == _INITIALIZE and code != _STARTUP:
                self.run("Startup", _STARTUP, (), struct.pack(">H", 0))
            elif result in (_RETRY, _YIELDED, _TESTING):
                time.sleep(_WAIT_SECONDS)
            else:
                break
        return result, body

    def _once(self, code: int, handles: tuple[int, ...], parameters: bytes, sessions: tuple[int, ...]) -> tuple[int, bytes]:
        body = b"".join(struct.pack(">I", handle) for handle in handles)
        if sessions:
            # The session, no nonce, "continue", no password.
            area = b"".join(struct.pack(">IHBH", session or _PASSWORD_SESSION, 0, 1, 0) for session in sessions)
            body += struct.pack(">I", len(area)) + area
        body += parameters
        head = struct.pack(">HII", _SESSIONS if sessions else _NO_SESSIONS, 10 + len(body), code)
        response = self._stream.exchange(head + body)
        if len(response) < 10 or int.from_bytes(response[2:6], "big") != len(response):
            raise OSError(f"a response of {len(response)} bytes is no response of a TPM")
        return int.from_bytes(response[6:10], "big"), response[10:]
