"""OS images for hosts."""
