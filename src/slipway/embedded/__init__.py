"""An API server in process, with real HTTP(S): for tests, for the demo and for simulated workload clusters.

:class:`slipway.embedded.server.EmbeddedServer` is the way in, and shows the parts put together.  A request becomes a
:class:`slipway.embedded.call.Call` in ``endpoints``, which ``access`` has let pass; ``registry`` makes of it what is stored, with the help
of ``fieldmanager`` (who owns which fields), ``apiextensions`` (custom resources) and ``webhooks``; ``storage`` keeps objects, versions and
history and tells the watchers, and knows nothing of kinds.  ``printers`` make tables, and ``controllers`` work in the background.
"""
