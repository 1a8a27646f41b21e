"""The machine behind an interface: files, commands, addresses and the container runtime of a host, real or of a dry run."""
