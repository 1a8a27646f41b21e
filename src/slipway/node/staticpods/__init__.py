"""The static Pods of a control plane."""
