"""``cluster.x-k8s.io/v1beta1``: what is served and converted, and never worked with.

What is as in v1beta2 comes from there.  Structs that Go holds by value are printed even when empty (``machinery.strict.encode``).
"""
