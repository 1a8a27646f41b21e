"""The hosts of a provider: how one is seen, claimed and given back, and the pools that they wait in."""
