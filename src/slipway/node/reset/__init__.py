"""``reset``: a machine leaves its cluster and is as it was before.  phases.py is the story."""
