"""What every cluster has inside: images, roles, the add-ons, kubeadm's ConfigMaps, and a client of its etcd."""
