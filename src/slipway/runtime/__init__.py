"""The controller runtime: manager, cache, queue, leader election, and the services that reconcilers use."""
