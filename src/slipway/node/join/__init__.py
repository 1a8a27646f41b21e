"""``join``: a machine becomes a node of a cluster that is there.  phases.py is the story."""
