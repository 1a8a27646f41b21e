"""The virtual address of a control plane ("alive"): keepalived in a static Pod on every control-plane host, with a side car.

keepalived needs no API, so the address is there for the first init and comes back after a reboot of everything.  Which hosts there
are is known before they boot and goes into their user-data (:func:`files`); later changes come by the ConfigMap ``kube-system/alive``
(:func:`config_map`), which the side car watches.
"""

from slipway.workload.alive.keepalived import configuration
from slipway.workload.alive.pod import DEFAULT_IMAGE, files, manifest
from slipway.workload.alive.values import CONFIG_MAP, LEASE, NAMESPACE, Values, ValuesError, config_map, host_values

__all__ = [
    "CONFIG_MAP",
    "DEFAULT_IMAGE",
    "LEASE",
    "NAMESPACE",
    "Values",
    "ValuesError",
    "config_map",
    "configuration",
    "files",
    "host_values",
    "manifest",
]
