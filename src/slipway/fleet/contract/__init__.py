"""What every provider of Cluster API shares: facts of the cluster, references, conditions, patches.  It knows no provider."""
