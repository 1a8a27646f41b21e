"""The etcd member of a node: its static Pod, its membership, its data."""
