"""Waiting for a control plane, and telling why it does not come up."""
