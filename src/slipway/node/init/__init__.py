"""``init``: a machine becomes the first control plane of a cluster.  phases.py is the story."""
