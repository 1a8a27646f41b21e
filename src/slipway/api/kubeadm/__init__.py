"""The kubeadm configuration API: one internal form, and one module for each version that ever was."""
