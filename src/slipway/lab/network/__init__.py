"""The network of a lab."""
