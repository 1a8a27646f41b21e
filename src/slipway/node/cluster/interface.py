"""The cluster behind an interface: what phases ask of the API server.

Phases are written against :class:`Cluster` alone; live.py is the one that is there, dryrun.py the one that is only talked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.api.machinery.version import Version


class Cluster(Protocol):
    """The API server, as far as phases need to know."""

    def apply(self, manifest: Manifest) -> None:
        """Create the object, or update the one that is there."""

    def apply_all(self, manifests: Iterable[Manifest]) -> None:
        """The same for several that do not depend on each other: at once where the cluster is live, in order in a dry run."""

    def create(self, manifest: Manifest) -> Manifest:
        """Create the object; an AlreadyExistsError where one of its name is there."""

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> bool:
        """Delete the object; False where there is none."""

    def patch(self, api_version: str, kind: str, name: str, namespace: str, patch: Manifest) -> None:
        """Change the object by a strategic merge patch."""

    def server_version(self) -> Version:
        """The version of the API server that answers."""

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """The object, or None."""

    def list(
        self, api_version: str, kind: str, namespace: str, labels: Mapping[str, str], fields: Mapping[str, str] | None = None
    ) -> Sequence[Manifest]:
        """The objects of a namespace, or with "" of all of them, that have the labels and the values of fields."""

    def amend_node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[Manifest] = (),
        dropped_annotations: Sequence[str] = (),
    ) -> None:
        """Add labels, annotations and taints to a Node once it has registered; what it has beside them stays."""
