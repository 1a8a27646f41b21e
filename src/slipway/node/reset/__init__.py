"""``reset``: what init and join did to a machine is undone, as far as that can be.  phases.py is the story."""

from slipway.node.reset.options import ResetOptions
from slipway.node.reset.phases import PHASES, perform, prepare, run
from slipway.node.reset.result import ResetResult

__all__ = ["PHASES", "ResetOptions", "ResetResult", "perform", "prepare", "run"]
