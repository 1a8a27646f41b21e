"""The controllers of machines: Cluster, Machine, MachineSet, MachineDeployment and MachineHealthCheck of ``cluster.x-k8s.io``."""
