"""What a configuration must be like; every error is found, with its field."""
