"""What speaks against a rollout on bare metal: as refusals and warnings, as a condition, and as a table before an upgrade."""
