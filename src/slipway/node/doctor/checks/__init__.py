"""What can be wrong with a node: each module has kinds of findings, and a pure function of the facts that finds them."""
