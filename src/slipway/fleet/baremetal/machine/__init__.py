"""The life of a BaremetalMachine: a host is claimed, made a node, looked after, cleaned and given back."""
