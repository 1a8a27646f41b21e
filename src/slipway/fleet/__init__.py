"""The reconcilers of a management cluster, and the decisions that they carry out: bootstrap data, machines, control planes, hosts."""
