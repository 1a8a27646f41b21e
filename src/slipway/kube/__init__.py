"""The Kubernetes client: requests and errors once, for every transport."""
