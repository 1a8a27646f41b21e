"""Argv in, text out: one small module a command, and the parser that reads argv as pflag does. No logic."""
