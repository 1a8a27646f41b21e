"""Help, man pages and completion, made from the tree of commands."""
