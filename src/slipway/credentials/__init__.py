"""Keys, certificates and bootstrap tokens as values: made, read and judged the same way on a node and in a management cluster."""
