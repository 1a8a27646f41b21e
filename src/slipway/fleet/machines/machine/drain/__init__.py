"""Emptying a Node before its host goes: which Pods go, in which order, and which volumes are waited for."""
