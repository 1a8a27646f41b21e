"""The virtual address of a control plane: who shares it, and how its hosts hear of that."""
