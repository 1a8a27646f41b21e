"""What a KubeadmControlPlane tells of itself, as functions of what was seen."""
