"""Programs of a virtual host that a physical one has from its distribution; they run with the host's Python alone."""
