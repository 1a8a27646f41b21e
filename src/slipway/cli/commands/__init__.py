"""One module a command: argv in, text out."""
