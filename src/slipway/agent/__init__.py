"""The agent of a bare-metal host: registers it, watches its one plan Secret, runs plans and reports what came of them.

To be read first: ``plan.decision``, which says what comes next, and ``loop``, which does it.
"""
