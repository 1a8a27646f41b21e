"""``bootstrap.cluster.x-k8s.io``: KubeadmConfig and its template, in both versions, and what of kubeadm's configuration they hold."""
