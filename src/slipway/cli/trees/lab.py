"""The tree of ``slipway lab``, as data."""

from __future__ import annotations

from slipway.cli.argv.command import Command


def _host(name: str, short: str, *flags: str) -> Command:
    return Command(name, short, run="commands.lab:host", argument="NAME", max_arguments=1, flags=flags)


LAB = Command(
    "lab",
    "Real hosts and real components on this one machine, for tests and for work on node bring-up",
    persistent=("lab",),
    long="A host is a systemd-nspawn machine with its own address, a real kubelet and a real containerd. Needs root, and the packages "
    "systemd-container and debootstrap. `lab down` removes all that a lab made, and nothing else.",
    example="{program} lab image build --kubernetes-version v1.35.4\n"
    "{program} lab up --image v1.35.4 --hosts 3\n"
    "{program} lab host exec host-1 -- kubeadm version\n"
    "{program} lab down",
    commands=(
        Command(
            "components",
            "Obtain the programs of Kubernetes versions: from a folder, PATH, the cache, the official site, or built from source",
            run="commands.lab:components",
            argument="[VERSION…]",
            max_arguments=None,
            flags=("folder", "list", "prune", "output:list"),
        ),
        Command("down", "Remove a lab and everything that it made on this machine", run="commands.lab:down"),
        Command(
            "host",
            "The hosts of a lab",
            commands=(
                _host("create", "Make a host that boots an OS image, and leave it off", "image", "registration", "user-data"),
                _host("cut", "Drop a host's network link"),
                _host("delete", "Remove a host and all that it has"),
                Command("exec", "Run a command in a host", run="commands.lab:host_exec", argument="NAME -- COMMAND…", max_arguments=None),
                Command(
                    "install",
                    "Bring the Kubernetes version of another OS image to a host that runs, for an upgrade in place",
                    run="commands.lab:host_install",
                    argument="NAME",
                    max_arguments=1,
                    flags=("image", "images-only"),
                    required=("image",),
                    long="Loads the container images of the OS image into containerd and replaces kubelet, kubectl and the real kubeadm. "
                    "A kubelet that runs stays the old one until it is restarted.",
                ),
                Command("list", "List the hosts", run="commands.lab:host_list", flags=("output:list",)),
                Command(
                    "logs",
                    "Show the journal of a host",
                    run="commands.lab:host_logs",
                    argument="NAME",
                    max_arguments=1,
                    flags=("console", "follow", "lines", "unit"),
                ),
                _host("power-off", "Cut a host's power"),
                _host("reboot", "Reboot a host; a staged image and a marker to clear state take effect"),
                _host("restore", "Put a host's network link back"),
                _host("start", "Boot a host and wait until it is up"),
                _host("stop", "Shut a host down"),
            ),
        ),
        Command(
            "image",
            "OS images for hosts",
            commands=(
                Command(
                    "build",
                    "Build the OS image of a Kubernetes version",
                    run="commands.lab:image_build",
                    flags=("folder", "kubernetes-version:lab", "node-tool"),
                    required=("kubernetes-version",),
                ),
                Command("list", "List the OS images", run="commands.lab:image_list", flags=("output:list",)),
            ),
        ),
        Command(
            "management",
            "A management cluster's control plane, as processes on this machine",
            commands=(
                Command("down", "End the management plane", run="commands.lab:management_down"),
                Command("status", "Show how the management plane is", run="commands.lab:management_status", flags=("output:list",)),
                Command(
                    "up",
                    "Start etcd, kube-apiserver and kube-controller-manager, and wait until they are healthy",
                    run="commands.lab:management_up",
                    flags=("expose", "folder", "kubernetes-version:lab"),
                    required=("kubernetes-version",),
                ),
            ),
        ),
        Command(
            "network",
            "Make the lab's network and show it: bridge, hosts' addresses and Pods' ranges",
            run="commands.lab:network",
            flags=("bridge", "host-range", "pod-range", "output:list"),
        ),
        Command(
            "registry",
            "A registry on the lab's network with OS images, from which hosts are upgraded",
            commands=(
                Command("down", "End the registry; its images stay", run="commands.lab:registry_down"),
                Command(
                    "push",
                    "Give the registry an OS image, and show by what it can be pulled",
                    run="commands.lab:registry_push",
                    argument="REPOSITORY:TAG",
                    max_arguments=1,
                    flags=("image", "output:list"),
                    required=("image",),
                ),
                Command("up", "Start the registry and wait until it answers", run="commands.lab:registry_up"),
            ),
        ),
        Command(
            "up",
            "Make a lab with hosts that run",
            run="commands.lab:up",
            flags=("bridge", "host-range", "hosts", "image", "pod-range", "registration"),
            required=("image",),
        ),
    ),
)
