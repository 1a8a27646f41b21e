"""How a host becomes known: Elemental's registration protocol, as a client."""
