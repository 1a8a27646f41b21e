"""Preflight: what should hold on a machine before anything on it is changed.

``check`` runs checks and tells the outcome; ``machine``, ``runtime``, ``externaletcd``, ``extraargs`` and ``proxies`` are
the checks; ``workflows`` says which of them a command runs; ``earlier`` recognises what a run that was killed left behind.
"""
