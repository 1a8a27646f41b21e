"""The tree of ``slipway fleet``, as data."""

from __future__ import annotations

from slipway.cli.argv.command import Command

_WHERE = ("all-namespaces", "context", "kubeconfig:manager", "namespace:view")

FLEET = Command(
    "fleet",
    "Look at the clusters of a management cluster, explain, rehearse and upgrade them",
    commands=(
        Command(
            "explain",
            "Say what an object waits for, and what to do",
            run="commands.fleetupgrade:explain",
            argument="KIND/NAME",
            max_arguments=2,
            flags=(*_WHERE, "output:status"),
            long="Reads only. Follows the chain from a Cluster over its control plane or workers, a Machine and its host to the "
            "instruction of the host's plan. KIND is cluster, kcp, md, ms, machine, bmm, bmc, host or pool; a name alone will do "
            "where no two have it.",
            example="{program} fleet explain workload-1 -n cpaas-system\n{program} fleet explain host/sn-0001 -n cpaas-system -o json",
        ),
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
            flags=("catalog-namespace:fleet", "context", "kubeconfig:manager", "namespace:fleet", "output:fleet", "registry-secret", "to"),
            argument="CLUSTER",
            max_arguments=1,
            required=("to",),
            long="Prints a table with a row for each prerequisite: ok, failed, warning, or unknown where it cannot be checked from here. "
            "The exit code is not 0 where one has failed.",
            example="{program} fleet preflight workload-1 --namespace cpaas-system --to v1.34.5",
        ),
        Command(
            "rehearse",
            "Try an upgrade on simulated hosts: the order, the time, the capacity that is left, and what would stop it",
            run="commands.rehearse:run",
            argument="CLUSTER",
            max_arguments=1,
            long_running=True,
            required=("to",),
            flags=(
                "catalog-namespace:fleet",
                "context",
                "kubeconfig:manager",
                "namespace:fleet",
                "output:fleet",
                "report:rehearse",
                "to",
                "workload-kubeconfig",
            ),
            long="Reads only: the objects are loaded into an API server in this process, with simulated hosts in place of the machines, "
            "and the real controllers go through the whole upgrade there. What happens is told on standard error meanwhile. The exit code "
            "is 0 only where the upgrade would begin, and end well.",
            example="{program} fleet rehearse workload-1 --namespace cpaas-system --to v1.35.4 --report rehearsal.html",
        ),
        Command(
            "restore",
            "Make a control plane anew from a snapshot of its etcd, when all its machines are lost",
            run="commands.snapshots:restore",
            argument="CLUSTER",
            max_arguments=1,
            required=("from",),
            long_running=True,
            flags=(
                "context",
                "force:restore",
                "from:snapshots",
                "hosts-lost",
                "kubeconfig:manager",
                "namespace:fleet",
                "output:events",
                "serve",
                "snapshot",
                "store-secret",
                "yes",
            ),
            long="The Machines of the control plane are given up, and the first new one starts with the data of the snapshot and with the "
            "certificate authorities that the cluster had; the others join it. Workers stay as they are. Hosts fetch the snapshot from an "
            "S3-compatible store themselves, and from a folder or file through this command, at --serve, until it ends.",
            example="{program} fleet restore workload-1 -n cpaas-system --from /backup --serve 192.168.7.1:8765 --hosts-lost\n"
            "{program} fleet restore workload-1 --from s3://backups/fleet --store-secret s3 --snapshot 20260301T120000Z-r4711 --yes",
        ),
        Command(
            "snapshot",
            "Take a snapshot of a cluster's etcd, check it, and keep it",
            run="commands.snapshots:take",
            argument="CLUSTER",
            max_arguments=1,
            flags=("context", "keep-last", "kubeconfig:manager", "namespace:fleet", "output:fleet", "store-secret", "to:snapshots"),
            long="It is streamed from a member through the API server of the cluster, checked against the SHA-256 that etcd sends with it "
            "and the revision that etcd had before, and kept with a record of what it is.",
            example="{program} fleet snapshot workload-1 -n cpaas-system --to /backup\n"
            "{program} fleet snapshot workload-1 --to s3://backups/fleet --store-secret s3 --keep-last 10 -o json",
        ),
        Command(
            "snapshots",
            "List the snapshots that a store has",
            run="commands.snapshots:listed",
            argument="[CLUSTER]",
            max_arguments=1,
            required=("from",),
            flags=("context", "from:snapshots", "kubeconfig:manager", "namespace:fleet", "output:fleet", "store-secret"),
            example="{program} fleet snapshots workload-1 -n cpaas-system --from /backup",
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
            "upgrade",
            "Upgrade a cluster: preflight, the control plane one minor version after the other, then the workers",
            run="commands.fleetupgrade:upgrade",
            argument="CLUSTER",
            max_arguments=1,
            required=("to",),
            long_running=True,
            flags=(
                "catalog-namespace:fleet",
                "context",
                "control-plane-only",
                "dns-image-tag",
                "dry-run",
                "etcd-image-tag",
                "ignore-preflight",
                "kubeconfig:manager",
                "namespace:fleet",
                "output:events",
                "timeout:upgrade",
                "to",
                "workers-only",
                "yes",
            ),
            long="Patches one object at a time and waits until its machines are replaced. It can be interrupted at any moment and run "
            "again: what is next is decided from the objects alone. It stops on a problem that does not end by itself, with what to do.",
            example="{program} fleet upgrade workload-1 -n cpaas-system --to v1.36.3 --dry-run\n"
            "{program} fleet upgrade workload-1 -n cpaas-system --to v1.36.3 --yes",
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
