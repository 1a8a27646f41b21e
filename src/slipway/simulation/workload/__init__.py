"""A simulated workload cluster: its API behind the cluster's endpoint, its etcd, and what controllers do in every cluster."""
