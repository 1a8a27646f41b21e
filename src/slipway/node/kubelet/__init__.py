"""The kubelet's files and its service."""
