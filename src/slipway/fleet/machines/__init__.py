"""Machines and what makes, replaces and watches them: Cluster API's core."""
