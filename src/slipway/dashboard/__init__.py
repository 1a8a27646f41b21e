"""The web page of a manager: clusters, pools, hosts, machines and rollouts, live, for those whom the API server lets see them."""
