"""YAML as Go reads and writes it, with the places of everything in it."""
