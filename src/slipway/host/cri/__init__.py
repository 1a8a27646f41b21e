"""The part of the container runtime interface (CRI v1) that Slipway speaks; made from ``cri.proto``, which says how."""
