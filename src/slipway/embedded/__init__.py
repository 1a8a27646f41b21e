"""An API server in process, with real HTTP(S): for tests, for the demo and for simulated workload clusters.

:class:`slipway.embedded.server.EmbeddedServer` is the way in.  Below it, from the bottom up: the store (objects, versions, history,
watchers), the registry (what happens to an object before it is stored), and the HTTP layer.
"""
