"""What Prometheus is told of a fleet: its hosts, pools, plans and rollouts, and what waits for what."""
