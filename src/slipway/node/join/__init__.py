"""``join``: a machine becomes a node of a cluster that is there.  phases.py is the story."""

from slipway.node.join.options import JoinOptions
from slipway.node.join.phases import PHASES, perform, prepare, run
from slipway.node.join.result import JoinResult

__all__ = ["PHASES", "JoinOptions", "JoinResult", "perform", "prepare", "run"]
