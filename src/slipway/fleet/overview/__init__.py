"""What there is in a management cluster, and how it stands: read from its objects, and told as plain values that anybody can show."""
