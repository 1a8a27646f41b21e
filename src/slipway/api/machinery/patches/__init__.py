"""Patches of JSON documents: JSON patch, and the strategic merge of Kubernetes."""
