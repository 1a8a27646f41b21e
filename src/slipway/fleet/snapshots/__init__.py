"""Snapshots of workload clusters' etcd that outlive the nodes: taken, kept where the operator says, and restored."""
