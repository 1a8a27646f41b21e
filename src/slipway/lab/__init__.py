"""Real components, real hosts and real clusters on one machine, for tests and for people who work on node bring-up."""
