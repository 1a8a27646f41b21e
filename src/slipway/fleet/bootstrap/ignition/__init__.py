"""Bootstrap data as Ignition."""
