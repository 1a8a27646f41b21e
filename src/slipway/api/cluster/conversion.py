"""Objects of Cluster API's groups in another version of their group: the one function that a conversion webhook needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.bootstrap import conversion as bootstrap_conversion
from slipway.api.cluster.bootstrap.conversion import ConversionError
from slipway.api.cluster.kinds import BOOTSTRAP_GROUP

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

_GROUPS = {BOOTSTRAP_GROUP: bootstrap_conversion.convert}


def convert(manifest: Manifest, api_version: str) -> Manifest:
    """The object in the wanted version; ConversionError (an OperatorError) where there is none.  What is given stays as it is."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    if group not in _GROUPS:
        raise ConversionError(
            f"{manifest.get('kind')} {manifest.get('apiVersion')} cannot be converted to {api_version}: "
            f"only objects of {', '.join(_GROUPS)} are converted here"
        )
    try:
        return _GROUPS[group](manifest, api_version)
    except RecursionError:
        raise ConversionError(f"{manifest.get('kind')} cannot be converted to {api_version}: it is nested too deeply") from None
