"""Admission and conversion webhooks, called as kube-apiserver calls them."""
