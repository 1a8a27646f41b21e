"""``elemental.cattle.io``: hosts that register, the plans that they run, and the images that they boot from."""
