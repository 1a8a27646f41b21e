"""The tree of ``slipway fleet``, as data."""

from __future__ import annotations

from slipway.cli.argv.command import Command

_WHERE = ("all-namespaces", "context", "kubeconfig:manager", "namespace:view")

FLEET = Command(
    "fleet",
    "Look at the clusters of a management cluster",
    commands=(
        Command(
            "hosts",
            "Show the hosts: pool, state, plan, machine, version, when they were last heard of, what is wrong",
            run="commands.fleetviews:hosts",
            flags=(*_WHERE, "output:hosts", "pool", "selector", "state"),
            long="On a terminal columns that there is no room for are left out; -o wide, a file or a pipe has all of them.",
            example="{program} fleet hosts --state Unavailable\n{program} fleet hosts --pool workers -l rack=3 -o wide",
        ),
        Command(
            "preflight",
            "Check the prerequisites of an upgrade on bare metal",
            run="commands.fleet:preflight",
            flags=("catalog-namespace:fleet", "kubeconfig:manager", "namespace:fleet", "output:fleet", "to"),
            argument="CLUSTER",
            max_arguments=1,
            required=("to",),
            long="Prints a table with a row for each prerequisite: ok, failed, warning, or unknown where it cannot be checked from here. "
            "The exit code is not 0 where one has failed.",
            example="{program} fleet preflight workload-1 --namespace cpaas-system --to v1.34.5",
        ),
        Command(
            "status",
            "Show the clusters at a glance: versions, counters, rollouts with how long they will take, what is wrong and what to do",
            run="commands.fleetviews:status",
            argument="[CLUSTER]",
            max_arguments=1,
            flags=(*_WHERE, "output:status"),
            long="Reads only. With CLUSTER, also every machine and everything that is waited for. What you may not see is named.",
            example="{program} fleet status\n{program} fleet status workload-1 -n cpaas-system -o json",
        ),
        Command(
            "timeline",
            "Show the life of each host as a row of bars: what it was when, from what its objects remember",
            run="commands.fleetviews:timeline",
            argument="[CLUSTER]",
            max_arguments=1,
            flags=(*_WHERE, "output:timeline", "report:timeline", "since"),
            long="Reads only. -o html or --report makes a page that needs nothing from elsewhere.",
            example="{program} fleet timeline workload-1 --report timeline.html",
        ),
        Command(
            "watch",
            "Watch the clusters: a picture that is drawn anew on a terminal, a line for each change elsewhere",
            run="commands.fleetviews:watch",
            argument="[CLUSTER]",
            max_arguments=1,
            long_running=True,
            flags=(*_WHERE, "output:watch"),
            long="Reads only, until Ctrl-C, also while the API server restarts.",
            example="{program} fleet watch workload-1 -o json",
        ),
    ),
)
