"""Objects of Cluster API's groups in another version of their group: the one function that a conversion webhook needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import versions
from slipway.api.cluster.addons.conversion import CONVERSIONS as ADDONS
from slipway.api.cluster.bootstrap.conversion import CONVERSIONS as BOOTSTRAP
from slipway.api.cluster.controlplane.conversion import CONVERSIONS as CONTROL_PLANE
from slipway.api.cluster.core.conversion import CONVERSIONS as CORE
from slipway.api.cluster.kinds import ADDONS_GROUP, BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, CORE_GROUP
from slipway.api.cluster.versions import ConversionError

if TYPE_CHECKING:
    from slipway.api.cluster.versions import Lookup
    from slipway.api.machinery.objects import Manifest

_GROUPS = {BOOTSTRAP_GROUP: BOOTSTRAP, CORE_GROUP: CORE, CONTROL_PLANE_GROUP: CONTROL_PLANE, ADDONS_GROUP: ADDONS}


def convert(manifest: Manifest, api_version: str, lookup: Lookup | None = None) -> Manifest:
    """The object in the wanted version; ConversionError (an OperatorError) where there is none.  What is given stays as it is.

    ``lookup`` says which apiVersion a kind has by the contract label of its CRD: v1beta1 names it in references, v1beta2 does not.
    Without it, objects that refer to others have no v1beta1 form.
    """
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    if group not in _GROUPS:
        raise ConversionError(
            f"{manifest.get('kind')} {manifest.get('apiVersion')} cannot be converted to {api_version}: "
            f"only objects of {', '.join(_GROUPS)} are converted here"
        )
    try:
        return versions.convert(manifest, api_version, _GROUPS[group], lookup)
    except RecursionError:
        raise ConversionError(f"{manifest.get('kind')} cannot be converted to {api_version}: it is nested too deeply") from None
