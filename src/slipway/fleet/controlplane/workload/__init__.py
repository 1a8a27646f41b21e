"""What a control plane sees and does inside its workload cluster: Nodes, static Pods, etcd members, kubeadm-config and the add-ons."""
