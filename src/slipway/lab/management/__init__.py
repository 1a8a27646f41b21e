"""A management cluster's control plane, as processes."""
