"""A long run: many simulated clusters rolled up and down while things go wrong, and what must never be watched from outside."""
