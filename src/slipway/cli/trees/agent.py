"""The tree of ``slipway agent``, as data."""

from __future__ import annotations

from slipway.cli.argv.command import Command

AGENT = Command(
    "agent",
    "Registers this bare-metal host and runs the plans that it is given",
    long="An agent knows one Secret: that of its host. It registers by what /oem/registration/config.yaml says, keeps its credentials "
    "under /var/lib/elemental/agent, runs each plan once, and reports what came of it.",
    example="{program} agent register --registration-url https://192.0.2.1:8443/elemental/registration/TOKEN\n"
    "{program} agent install-unit && systemctl enable --now slipway-agent\n"
    "{program} agent status -o json",
    commands=(
        Command(
            "fetch-image",
            "Fetch an image, whole and checked, into a folder that is not there yet",
            run="commands.agent:fetch_image",
            flags=("into", "unless"),
            argument="IMAGE",
            max_arguments=1,
            required=("into",),
            long="The agent runs it, with the lowest priority, for an image that its host is to have ahead of the plan that boots it. It "
            "prints the digest and the size as JSON.",
            hidden=True,
        ),
        Command(
            "install-unit",
            "Write the systemd unit of the agent",
            run="commands.agent:install_unit",
            flags=("program",),
        ),
        Command(
            "register",
            "Register this host, and keep where its Secret is",
            run="commands.agent:register",
            flags=("auth", "config:registration", "emulate-tpm", "labels:registration", "registration-ca-cert", "registration-url:agent",
                   "token:registration"),
            long="What a host has told before is brought up to date by the next registration; who it is follows from its TPM, or from a "
            "key that is made at the first one and kept in /oem/registration/tpm.key.",
        ),
        Command("run", "Watch the host's Secret and run its plans until told to stop", run="commands.agent:run", long_running=True),
        Command(
            "status",
            "Show whether this host is registered, and how its last plan went",
            run="commands.agent:status",
            flags=("output:list",),
        ),
        Command("unit", "Print the systemd unit of the agent", run="commands.agent:unit", flags=("program",)),
    ),
)  # fmt: skip
