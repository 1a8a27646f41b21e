"""``upgrade``: a cluster, then node after node, goes to another version.  phases.py is the story."""

from slipway.node.upgrade.options import UpgradeOptions
from slipway.node.upgrade.phases import APPLY_PHASES, NODE_PHASES, perform, prepare, run
from slipway.node.upgrade.result import UpgradeResult

__all__ = ["APPLY_PHASES", "NODE_PHASES", "UpgradeOptions", "UpgradeResult", "perform", "prepare", "run"]
