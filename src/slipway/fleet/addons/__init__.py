"""What new clusters get without a hand: ClusterResourceSets, applied to every Cluster that they choose."""
