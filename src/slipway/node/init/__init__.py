"""``init``: a machine becomes the first control plane of a cluster.  phases.py is the story."""

from slipway.node.init.options import InitOptions
from slipway.node.init.phases import PHASES, perform, prepare, run
from slipway.node.init.result import InitResult

__all__ = ["PHASES", "InitOptions", "InitResult", "perform", "prepare", "run"]
