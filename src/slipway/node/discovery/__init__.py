"""How a joining machine finds out where a cluster is and whom to trust."""
