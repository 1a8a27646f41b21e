"""The Cluster: what it consists of, how it is, and how it goes."""
