"""What each kind of object waits for: the links of the chain that an explanation tells."""
