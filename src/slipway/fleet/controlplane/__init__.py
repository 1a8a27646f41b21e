"""KubeadmControlPlane: a cluster's control plane as machines that are made, replaced and repaired one at a time."""
