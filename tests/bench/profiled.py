"""Runs ``slipway`` under Python's profiler: ``profiled.py FILE WORDS``.  The program's own end would take the figures with it."""

from __future__ import annotations

import cProfile
import sys
import time

from slipway.cli.main import main

if __name__ == "__main__":
    # What others take of the processor is not ours.
    profile = cProfile.Profile(time.process_time)
    code = profile.runcall(main, sys.argv[2:])
    profile.dump_stats(sys.argv[1])
    sys.exit(code)
