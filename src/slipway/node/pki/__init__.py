"""The certificates and keys of a node: what there is to be, the files, their renewal and their copies."""
