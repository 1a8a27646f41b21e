"""What a host is told to do: its image, its bootstrap data, its network, and the plan that is made of them."""
