"""``infrastructure.cluster.x-k8s.io``: the kinds of the bare-metal provider."""
