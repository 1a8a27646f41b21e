"""Preflight: what should hold on a machine before anything on it is changed.

``check`` runs checks and tells the outcome; ``machine``, ``runtime``, ``system``, ``externaletcd`` and ``extraargs`` are the
checks; ``workflows`` says which of them a command runs; ``resume`` recognises what a run that was killed left behind.
"""
