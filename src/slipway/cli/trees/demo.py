"""``slipway demo``, as data."""

from __future__ import annotations

from slipway.cli.argv.command import Command

DEMO = Command(
    "demo",
    "Make and upgrade a bare-metal cluster on simulated hosts: the main job in under a minute",
    run="commands.demo:run",
    long_running=True,
    flags=(
        "control-planes", "dashboard:demo", "fault", "from", "hosts:demo", "keep", "no-upgrade", "output:events", "report",
        "speed", "to:demo", "workers",
    ),
    long="Needs neither root nor a network. The API server, the manager with all of its controllers and the hosts' agents are the real "
    "ones, in one process; the hosts below the agents are simulated. Hosts register, become a cluster, and every node is replaced for "
    "another version; then the upgrade guide's verification is done. The exit code is 0 only if every check holds.",
    example="{program} demo\n"
    "{program} demo --from v1.33.13 --to v1.36.3                # minor by minor\n"
    "{program} demo --fault catalog-miss                        # what goes wrong, what tells it, and what mends it\n"
    "{program} demo --keep --no-upgrade                         # the upgrade is yours, with kubectl\n"
    "{program} demo --keep --dashboard                          # and a web page of it",
)  # fmt: skip
