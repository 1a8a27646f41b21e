"""Requests and answers: HTTP in front of the registry."""
