"""How kubeadm completes a component's configuration: its own value where a user set none, a warning where another was set."""

from __future__ import annotations

from typing import Any


class Preferences:
    """Fills one configuration, and collects what to warn of."""

    def __init__(self, kind: str, value: dict[str, Any]) -> None:
        self._kind, self._value = kind, value
        self.warnings: list[str] = []

    def prefer(self, path: str, preferred: Any, *, empty: tuple[Any, ...] = (None, "")) -> None:
        """Set the field at a dotted path where it is empty; warn where it has another value."""
        *parents, name = path.split(".")
        owner = self._value
        for parent in parents:
            owner = owner.setdefault(parent, {})
        current = owner.get(name)
        if any(current is blank or (type(current) is type(blank) and current == blank) for blank in empty):
            owner[name] = preferred
        elif current != preferred:
            self.warn(path, preferred, current)

    def warn(self, path: str, preferred: Any, current: Any) -> None:
        self.warnings.append(
            f'The recommended value for "{path}" in "{self._kind}" is: {_shown(preferred)}; the provided value is: {_shown(current)}'
        )


def _shown(value: Any) -> str:
    """As Go's ``%v`` shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, value))}]"
    return str(value)
