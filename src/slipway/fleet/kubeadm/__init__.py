"""kubeadm in Cluster API: the rules for its specs, and its configuration documents as the release of the cluster reads them."""
