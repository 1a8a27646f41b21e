"""``upgrade``: a cluster, then node after node, goes to another version.  phases.py is the story."""
