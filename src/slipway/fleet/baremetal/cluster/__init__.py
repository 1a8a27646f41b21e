"""BaremetalClusters: the endpoint of a control plane, and what others tell on the same object."""
