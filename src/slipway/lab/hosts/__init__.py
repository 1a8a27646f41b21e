"""Hosts: systemd-nspawn machines with real kubelets."""
