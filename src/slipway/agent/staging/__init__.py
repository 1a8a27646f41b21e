"""The image that the host will boot next, fetched while the host still serves: outside of any plan, and in no plan's way."""
