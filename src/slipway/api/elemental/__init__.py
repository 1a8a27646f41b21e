"""Elemental's API: the kinds of hosts that register and wait, the plans that they are given, and the protocol that they register by."""
