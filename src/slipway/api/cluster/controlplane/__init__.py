"""``controlplane.cluster.x-k8s.io``: KubeadmControlPlane and its template."""
