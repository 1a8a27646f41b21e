"""The real programs that a lab runs, from wherever they can be had."""
