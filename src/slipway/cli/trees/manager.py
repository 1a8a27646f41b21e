"""The tree of ``slipway manager``, as data."""

from __future__ import annotations

from slipway.cli.argv.command import Command

_RUN = (
    "additional-sync-machine-annotations", "additional-sync-machine-labels", "alive-image", "bootstrap-token-ttl", "catalog-namespace",
    "concurrency", "controllers", "dashboard", "dashboard-bind-address", "dashboard-cert-dir", "health-addr", "host-deadline",
    "join-deadline", "join-version", "kubeadm-version-file", "kubeconfig:manager", "leader-elect", "leader-elect-namespace", "log-format",
    "metrics-bind-address", "namespace", "registration-api-server", "registration-bind-address", "registration-cert-dir",
    "registration-url", "registry-secret", "shards", "snapshot-keep", "snapshot-secret", "snapshot-store", "staging-hosts", "sync-period",
    "watch-filter", "webhook-cert-dir", "webhook-port",
)  # fmt: skip
_INSTALL = ("controllers", "dashboard", "image:manager", "namespace:install", "registration-api-server", "registration-url",
            "shards:install", "webhook-url")  # fmt: skip

MANAGER = Command(
    "manager",
    "Runs the controllers of Cluster API in a management cluster",
    run="commands.manager:run",
    long_running=True,
    flags=_RUN,
    long="Without a sub-command this is `manager run`. The cluster is that of --kubeconfig, else the one whose Pod this runs in, "
    "else that of KUBECONFIG or ~/.kube/config.",
    example="{program} manager install\n"
    "{program} manager install --webhook-url=https://192.0.2.1:9443   # for a manager that runs outside of the cluster\n"
    "{program} manager --kubeconfig admin.conf --controllers=bootstrap\n"
    "{program} manager --kubeconfig admin.conf --dashboard                  # and a web page, at https://localhost:9444",
    commands=(
        Command(
            "install",
            "Apply the manifests to a cluster: CRDs, permissions, the manager and its webhooks",
            run="commands.manager:install",
            flags=(*_INSTALL, "kubeconfig:manager"),
        ),
        Command(
            "manifests",
            "Print the manifests that `manager install` applies",
            run="commands.manager:manifests",
            flags=(*_INSTALL, "output:manifests"),
        ),
        Command("run", "Run the controllers until they are told to stop", run="commands.manager:run", flags=_RUN, long_running=True),
    ),
)
