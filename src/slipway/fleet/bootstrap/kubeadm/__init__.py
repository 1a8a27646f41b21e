"""kubeadm's configuration documents, as the release of the cluster reads them."""
