"""Hosts and workload clusters that are not there, driven by the production agent: for tests by the hundred, and for demonstrations."""
