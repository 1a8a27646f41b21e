"""``python -m slipway.simulation.soak``, as ``make soak`` runs it."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import OperatorError
from slipway.simulation.soak.faults import KINDS
from slipway.simulation.soak.options import parse
from slipway.simulation.soak.run import main

if __name__ == "__main__":
    try:
        sys.exit(main(parse(sys.argv[1:], KINDS)))
    except OperatorError as error:
        sys.stderr.write(f"error: {error.message}\n")
        sys.exit(2)
