"""Command lines: what a command is, its flags, and a parser that behaves as pflag does."""
