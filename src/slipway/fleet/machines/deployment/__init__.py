"""The MachineDeployment controller: MachineSets for a template that changes, one rollout step after another."""
