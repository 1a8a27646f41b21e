"""Objects of the API server, kept at hand and up to date."""
