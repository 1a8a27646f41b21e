"""``cluster.x-k8s.io``: clusters, their machines, and what makes and watches over machines."""
