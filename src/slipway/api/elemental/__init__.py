"""``elemental.cattle.io``: hosts that register, the plans that they are given, and the protocol by which they register."""
