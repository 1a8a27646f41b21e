"""An upgrade of a whole cluster from one place: what is next, the patches that do it, how far it is, and what it must stop for."""
