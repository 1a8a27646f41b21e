"""Validation rules in CEL, the Common Expression Language, as CustomResourceDefinitions have them in ``x-kubernetes-validations``.

A small compiler of our own, since neither of the libraries for Python knows the functions, the types and the cost of Kubernetes' dialect
(docs/embedded.md has the figures).  The way of an expression: :mod:`tokens`, :mod:`syntax` with :mod:`macros`, :mod:`checker` with the
types that :mod:`shapes` reads from schemas and the functions of :mod:`library`, then :mod:`program`, which makes Python functions of it
from those of :mod:`steps`.  :mod:`rules` evaluates the rules of a whole schema, :mod:`definitions` refuses the wrong ones.
"""
