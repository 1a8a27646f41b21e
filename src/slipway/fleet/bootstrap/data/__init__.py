"""Bootstrap data: what a machine gets to become a node, and the Secret that it is kept in."""
