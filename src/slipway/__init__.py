"""Slipway builds, launches and refits Kubernetes clusters on bare metal, from one node to a fleet."""

__version__ = "0.1.0"

# The newest Kubernetes release that is known; it is here, and not beside the other releases, since `slipway version` must be cheap.
NEWEST_KUBERNETES = "v1.36.3"
