"""The cluster behind an interface: the API server as phases need it, live, imagined or only talked about."""
