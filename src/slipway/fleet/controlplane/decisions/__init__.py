"""What the planner decides with: rules about machines and etcd members, as functions of values."""
