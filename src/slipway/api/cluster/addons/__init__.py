"""The group ``addons.cluster.x-k8s.io``."""
