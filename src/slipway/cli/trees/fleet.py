"""The tree of ``slipway fleet``, as data."""

from __future__ import annotations

from slipway.cli.argv.command import Command

FLEET = Command(
    "fleet",
    "Look at the clusters of a management cluster",
    commands=(
        Command(
            "preflight",
            "Check the prerequisites of an upgrade on bare metal",
            run="commands.fleet:preflight",
            flags=("catalog-namespace:fleet", "kubeconfig:manager", "namespace:fleet", "output:fleet", "registry-secret", "to"),
            argument="CLUSTER",
            max_arguments=1,
            required=("to",),
            long="Prints a table with a row for each prerequisite: ok, failed, warning, or unknown where it cannot be checked from here. "
            "The exit code is not 0 where one has failed.",
            example="{program} fleet preflight workload-1 --namespace cpaas-system --to v1.34.5",
        ),
    ),
)
