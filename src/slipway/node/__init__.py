"""One node's life: init, join, upgrade and reset are phase trees; the other modules are the parts that phases use."""
