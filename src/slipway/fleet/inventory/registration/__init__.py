"""How hosts register: Elemental's protocol, from the address that a host calls to the inventory and the account that it gets."""
