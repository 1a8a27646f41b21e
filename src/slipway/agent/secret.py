"""The host's Secret at the API server: watched, read and written, and nothing else is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.agent.plan.decision import PlanSecret
from slipway.api.elemental import plan as plans
from slipway.kube.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.agent.connection import Place
    from slipway.kube.client import Client

_VERSION, _KIND = "v1", "Secret"
# How long a watch lasts, and how long nothing may come on it: API servers send a bookmark every minute.
_WATCH_SECONDS = 3600.0
_SILENCE = 150.0
_CONFLICTS = 12


class SecretGoneError(Exception):
    """The Secret is not there (any more)."""


class _Seen(NamedTuple):
    """The Secret as the server sent it; what is not in its data is written back as it came."""

    rest: dict[str, Any]
    secret: PlanSecret


class SecretClient:
    def __init__(self, client: Client, place: Place) -> None:
        self._client = client
        self._place = place
        self._last: _Seen | None = None
        """What was seen last, by whichever thread."""

    def watch(self, ended: Callable[[], bool]) -> Iterator[PlanSecret | None]:
        """The Secret as it is and whenever it changes, None when it is deleted; ends with the watch, or at a bookmark once it is to."""
        fields = {"metadata.name": self._place.name}
        events = self._client.watch(_VERSION, _KIND, self._place.namespace, fields=fields, timeout=_WATCH_SECONDS, silence=_SILENCE)
        for event in events:
            if ended():
                return
            if event.type in ("ADDED", "MODIFIED"):
                yield self._note(event.object).secret
            elif event.type == "DELETED":
                self._last = None
                yield None

    def read(self) -> PlanSecret | None:
        """The Secret as it is now; None where it is not there."""
        manifest = self._client.get(_VERSION, _KIND, self._place.name, self._place.namespace)
        return None if manifest is None else self._note(manifest).secret

    def update(self, change: Callable[[PlanSecret], dict[str, bytes]]) -> PlanSecret:
        """Write what ``change`` makes of the Secret as it is now; somebody else's write in between is read and decided on again.

        What was seen last is how it is now in nearly every case, and the server refuses the write where it is not: a question less for
        every write.  Questions of hosts are dear, as the server goes through the RoleBindings of all hosts of the namespace for each.
        """
        known = self._last
        for attempt in range(_CONFLICTS):
            asked = known is None
            if known is None:
                known = self._ask()
            secret = known.secret
            wanted = {key: value for key, value in change(secret).items() if secret.data.get(key) != value}
            if wanted:
                try:
                    return self._write(known, wanted)
                except (ConflictError, NotFoundError):
                    if attempt == _CONFLICTS - 1:
                        raise
            elif asked:
                return secret
            known = None
            time.sleep(0.02 * attempt)
        raise AssertionError("unreachable")

    def _ask(self) -> _Seen:
        manifest = self._client.get(_VERSION, _KIND, self._place.name, self._place.namespace)
        if manifest is None:
            raise SecretGoneError(f"the Secret {self._place.namespace}/{self._place.name} is not there")
        return self._note(manifest)

    def _write(self, known: _Seen, wanted: dict[str, bytes]) -> PlanSecret:
        data = plans.wire({**known.secret.data, **wanted})
        written = self._client.update({**known.rest, "data": data, "apiVersion": _VERSION, "kind": _KIND})
        return self._note(written).secret

    def _note(self, manifest: dict[str, Any]) -> _Seen:
        rest = {key: value for key, value in manifest.items() if key != "data"}
        self._last = found = _Seen(rest, seen(manifest))
        return found

    def close(self) -> None:
        self._client.close()


def seen(manifest: dict[str, Any]) -> PlanSecret:
    metadata = manifest.get("metadata") or {}
    return PlanSecret(
        data=plans.plain(manifest.get("data")),
        annotations=metadata.get("annotations") or {},
        resource_version=str(metadata.get("resourceVersion") or ""),
    )
