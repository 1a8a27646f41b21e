"""A rehearsal of an upgrade: the objects of a real management cluster, the real controllers, and simulated hosts in the machines' place."""
