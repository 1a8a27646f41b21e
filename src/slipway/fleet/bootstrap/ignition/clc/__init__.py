"""Container Linux Configs, transpiled as upstream's library does it: here for parity alone."""
