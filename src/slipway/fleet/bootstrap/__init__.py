"""The kubeadm bootstrap provider: from a KubeadmConfig to the data that a new host boots with."""
