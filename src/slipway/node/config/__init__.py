"""From files, flags and the machine to the configuration that commands work from."""
