"""MachineHealthChecks: which Machines are not well, and whether they may be remediated."""
