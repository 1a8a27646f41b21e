"""The tree of commands, as data.  What a command does is in the module that ``run`` names; its flags are in ``flags``."""

from __future__ import annotations

from slipway.cli.argv.command import Command
from slipway.cli.trees.agent import AGENT
from slipway.cli.trees.demo import DEMO
from slipway.cli.trees.fleet import FLEET
from slipway.cli.trees.lab import LAB
from slipway.cli.trees.manager import MANAGER

_PRINTER = ("output", "allow-missing-template-keys", "show-managed-fields")
_RENEW = ("cert-dir", "config", "kubeconfig")

# What `certs renew` can renew: the name of the command, and what the certificate is for.
_RENEWABLE = (
    ("admin.conf", "the client certificate in admin.conf, for the administrator"),
    ("apiserver", "the serving certificate of the API server"),
    ("apiserver-etcd-client", "the certificate with which the API server reaches etcd"),
    ("apiserver-kubelet-client", "the certificate with which the API server reaches kubelets"),
    ("controller-manager.conf", "the client certificate in controller-manager.conf"),
    ("etcd-healthcheck-client", "the client certificate of etcd's health probes"),
    ("etcd-peer", "the certificate with which etcd members reach each other"),
    ("etcd-server", "the serving certificate of etcd"),
    ("front-proxy-client", "the client certificate of the front proxy"),
    ("scheduler.conf", "the client certificate in scheduler.conf"),
    ("super-admin.conf", "the client certificate in super-admin.conf"),
)

_CERTS = Command(
    "certs",
    "Look at, renew and request certificates",
    aliases=("certificates",),
    commands=(
        Command(
            "certificate-key",
            "Make a key that encrypts the shared certificates",
            run="commands.certs:certificate_key",
            long="Prints a new random key for `init --upload-certs --certificate-key` and `join --control-plane --certificate-key`.",
        ),
        Command(
            "check-expiration",
            "Show when each certificate of this node expires",
            run="commands.certs:check_expiration",
            flags=("cert-dir", "config", "kubeconfig", *_PRINTER),
        ),
        Command(
            "generate-csr",
            "Make keys and signing requests, for a certificate authority that is not on this node",
            run="commands.certs:generate_csr",
            flags=("cert-dir:request", "config", "kubeconfig-dir"),
            example="{program} certs generate-csr --kubeconfig-dir /tmp/conf --cert-dir /tmp/pki",
        ),
        Command(
            "renew",
            "Renew certificates for another period",
            long="A renewed certificate keeps the names and extensions of the old one. Restart the components that use it afterwards.",
            commands=(
                Command("all", "Renew every certificate of this node", run="commands.certs:renew", flags=_RENEW),
                *(Command(name, f"Renew {subject}", run="commands.certs:renew", flags=_RENEW) for name, subject in _RENEWABLE),
            ),
        ),
    ),
)

_CONFIG = Command(
    "config",
    "Print, check and migrate configuration files, and list or pull images",
    persistent=("kubeconfig",),
    commands=(
        Command(
            "images",
            "The images that a control plane needs",
            commands=(
                Command(
                    "list",
                    "List the images",
                    run="commands.config:images_list",
                    flags=("config", "feature-gates", "image-repository", "kubernetes-version", *_PRINTER),
                    example="{program} config images list --kubernetes-version v1.35.4",
                ),
                Command(
                    "pull",
                    "Pull the images",
                    run="commands.config:images_pull",
                    flags=("config", "cri-socket", "feature-gates", "image-repository", "kubernetes-version"),
                ),
            ),
        ),
        Command(
            "migrate",
            "Bring a configuration file of any version to the current one",
            run="commands.config:migrate",
            flags=("allow-experimental-api", "new-config", "old-config", "strict-compat"),
            long="Reads kubeadm.k8s.io v1alpha1 to v1beta4 and writes v1beta4, in one step and without a network.\n"
            "What had to be dropped or repaired is told on standard error; component configurations are kept.",
            example="{program} config migrate --old-config old.yaml --new-config new.yaml",
        ),
        Command(
            "print",
            "Print the defaults of a configuration",
            commands=(
                Command(
                    "init-defaults",
                    "Print the default configuration of init",
                    run="commands.config:print_init",
                    flags=("component-configs",),
                    example="{program} config print init-defaults --component-configs KubeletConfiguration",
                ),
                Command(
                    "join-defaults", "Print the default configuration of join", run="commands.config:print_join", flags=()
                ),
                Command("reset-defaults", "Print the default configuration of reset", run="commands.config:print_reset"),
                Command("upgrade-defaults", "Print the default configuration of upgrade", run="commands.config:print_upgrade"),
            ),
        ),
        Command(
            "schema",
            "Print the JSON Schema of the configuration, for editors",
            run="commands.config:schema",
        ),
        Command(
            "validate",
            "Check a configuration file and tell everything that is wrong with it",
            run="commands.config:validate",
            flags=("allow-deprecated-api", "allow-experimental-api", "config"),
            example="{program} config validate --config kubeadm.yaml",
        ),
    ),
)  # fmt: skip

_DOCTOR = Command(
    "doctor",
    "Say what is wrong with this node and why, with the commands that would mend it",
    run="commands.doctor:run",
    flags=("output:list",),
    long="Looks at the kubelet, the container runtime, static Pods, etcd, certificates, addresses, ports, the way to the API server, swap, "
    "the clock, disks, cgroups, a shared address and the agent of a bare-metal host; changes nothing, and takes 10 seconds at most.\n"
    "The exit code is 0 where there is neither an error nor a warning. Without root it says what it could not look at.",
    example="{program} doctor\n{program} doctor -o json",
)

_INIT = Command(
    "init",
    "Make this machine the first control plane of a new cluster",
    run="commands.init:run",
    workflow="init:PHASES",
    flags=(
        "apiserver-advertise-address", "apiserver-bind-port", "apiserver-cert-extra-sans", "cert-dir", "certificate-key", "config",
        "control-plane-endpoint", "cri-socket", "dry-run", "feature-gates", "ignore-preflight-errors", "image-repository",
        "kubernetes-version", "node-name", "output:events", "patches", "pod-network-cidr", "service-cidr", "service-dns-domain",
        "show-secrets", "skip-certificate-key-print", "skip-phases", "skip-token-print", "token", "token-ttl", "upload-certs",
    ),
    example="{program} init --config kubeadm.yaml\n"
    "{program} init --kubernetes-version v1.36.3 --pod-network-cidr 10.244.0.0/16 --dry-run\n"
    "{program} init phase certs all --cert-dir /tmp/pki",
)  # fmt: skip

_JOIN = Command(
    "join",
    "Make this machine a node of a cluster, or one more of its control planes",
    run="commands.join:run",
    workflow="join:PHASES",
    argument="[api-server-endpoint]",
    max_arguments=1,
    flags=(
        "apiserver-advertise-address", "apiserver-bind-port", "certificate-key", "config", "control-plane", "cri-socket",
        "discovery-file", "discovery-token", "discovery-token-ca-cert-hash", "discovery-token-unsafe-skip-ca-verification", "dry-run",
        "ignore-preflight-errors", "node-name", "output:events", "patches", "show-secrets", "skip-phases", "tls-bootstrap-token",
        "token:discovery",
    ),
    long="A joining node must know that the cluster is the right one, and the cluster that the node may join. A token does both:\n"
    "the first with the hash of the cluster's CA, the second with the bootstrap of the kubelet's certificate.",
    example="{program} join 192.0.2.10:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:…\n"
    "{program} join 192.0.2.10:6443 --discovery-file cluster-info.yaml",
)  # fmt: skip

_KUBECONFIG = Command(
    "kubeconfig",
    "Make kubeconfig files",
    commands=(
        Command(
            "user",
            "Print a kubeconfig for another user",
            run="commands.kubeconfig:user",
            flags=("client-name", "config", "org", "token:user", "validity-period"),
            required=("client-name",),
            example="{program} kubeconfig user --client-name jane --org developers --config kubeadm.yaml > jane.conf",
        ),
    ),
)

_RESET = Command(
    "reset",
    "Undo what init or join did to this machine",
    run="commands.reset:run",
    workflow="reset:PHASES",
    max_arguments=None,
    flags=(
        "cert-dir", "cleanup-tmp-dir", "config", "cri-socket", "dry-run", "force", "ignore-preflight-errors", "kubeconfig",
        "output:events", "show-secrets", "skip-phases",
    ),
    example="{program} reset --dry-run",
)  # fmt: skip

_TOKEN = Command(
    "token",
    "Manage the tokens with which nodes join",
    persistent=("dry-run", "kubeconfig"),
    commands=(
        Command(
            "create",
            "Create a token in the cluster",
            run="commands.token:create",
            argument="[token]",
            max_arguments=None,
            flags=("certificate-key", "config", "description", "groups", "print-join-command", "ttl", "usages"),
        ),
        Command("delete", "Delete tokens from the cluster", run="commands.token:delete", argument="[token-value] ...", max_arguments=None),
        Command("generate", "Print a random token, without creating it in the cluster", run="commands.token:generate"),
        Command("list", "List the tokens of the cluster", run="commands.token:list_tokens", flags=_PRINTER),
    ),
)

_UPGRADE_COMMON = ("config", "kubeconfig")
_UPGRADE = Command(
    "upgrade",
    "Move the cluster, and then each node, to another version",
    commands=(
        Command(
            "apply",
            "Upgrade the cluster and this control plane",
            run="commands.upgrade:apply",
            workflow="upgrade:APPLY_PHASES",
            argument="[version]",
            max_arguments=None,
            flags=(
                *_UPGRADE_COMMON, "allow-experimental-upgrades", "allow-release-candidate-upgrades", "certificate-renewal", "dry-run",
                "etcd-snapshot-dir", "etcd-upgrade", "force", "ignore-preflight-errors", "output:events", "patches", "print-config",
                "show-secrets", "skip-phases", "yes",
            ),
        ),
        Command(
            "diff",
            "Show what an upgrade would change in the static Pods",
            run="commands.upgradeplan:diff",
            argument="[version]",
            max_arguments=None,
            flags=(*_UPGRADE_COMMON, "context-lines"),
        ),
        Command(
            "node",
            "Upgrade this node, after the cluster was upgraded",
            run="commands.upgrade:node",
            workflow="upgrade:NODE_PHASES",
            flags=(
                *_UPGRADE_COMMON, "certificate-renewal", "dry-run", "etcd-snapshot-dir", "etcd-upgrade", "ignore-preflight-errors",
                "output:events", "patches", "show-secrets", "skip-phases",
            ),
        ),
        Command(
            "plan",
            "Show the versions that the cluster can be upgraded to",
            run="commands.upgradeplan:plan",
            argument="[version]",
            max_arguments=None,
            flags=(
                *_UPGRADE_COMMON, "allow-experimental-upgrades", "allow-release-candidate-upgrades", "etcd-upgrade",
                "ignore-preflight-errors", "print-config", *_PRINTER,
            ),
        ),
    ),
)  # fmt: skip


def build(program: str) -> Command:
    """The whole tree, under the name that the program was called by."""
    return Command(
        program,
        "Makes and upgrades Kubernetes clusters on bare metal, from one node to a fleet",
        persistent=("rootfs", "v", "vmodule", "add-dir-header", "skip-headers"),
        max_arguments=None,
        commands=(
            AGENT,
            Command(
                "alive",
                "Looks after keepalived in the static Pod of a control plane's virtual address",
                run="commands.alive:run",
                hidden=True,
                long_running=True,
            ),
            Command(
                "alpha",
                "Experimental commands: there are none at present",
                run="docs.help:alpha",
                max_arguments=None,
                hidden=True,
                bare=True,
            ),
            _CERTS,
            Command(
                "completion",
                "Print the completion code for a shell: bash, zsh or fish",
                run="docs.completion:run",
                argument="SHELL",
                max_arguments=None,
                example="source <({program} completion bash)\n{program} completion fish > ~/.config/fish/completions/{program}.fish",
            ),
            _CONFIG,
            DEMO,
            _DOCTOR,
            Command("help", "Show the help of a command", run="docs.help:run", argument="[command]", max_arguments=None, bare=True),
            _INIT,
            _JOIN,
            _KUBECONFIG,
            FLEET,
            LAB,
            Command(
                "man",
                "Write man pages into a folder",
                run="docs.man:run",
                argument="[folder]",
                max_arguments=1,
                example="{program} man /usr/local/share/man/man1",
            ),
            MANAGER,
            _RESET,
            _TOKEN,
            _UPGRADE,
            Command(
                "version",
                "Print the version of the kubeadm that is acted as",
                run="commands.version:run",
                flags=("output:version",),
                bare=True,
            ),
        ),
        example="{program} init                                       # on the first machine\n"
        "{program} join <what init printed>                   # on every other machine\n"
        "{program} demo                                       # all of it on simulated hosts, without root",
    )
