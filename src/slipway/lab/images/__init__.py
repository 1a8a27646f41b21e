"""Container images, made without a registry."""
