"""A server of admission and conversion webhooks, and its certificates."""
