"""Every flag of every command, named once: the table that the parser, the help, the man pages and the completion read.

Names, types and defaults are kubeadm's; the words are ours.  A flag whose default depends on the command has a second
entry, ``name:variant``.  Nothing is imported here: ``slipway version`` pays for this module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["bool", "string", "strings", "int", "int32", "duration", "Level", "moduleSpec", "pairs"]
    Completion = tuple[str, ...] | Literal["file", "dir", "phases", ""]


class Flag:
    """A flag as pflag knows it; ``default`` is the text that the help shows, empty for the zero value."""

    __slots__ = ("completes", "default", "deprecated", "help", "hidden", "kind", "name", "shorthand")

    def __init__(
        self,
        name: str,
        kind: Kind,
        text: str,
        *,
        default: str = "",
        short: str = "",
        completes: Completion = "",
        deprecated: str = "",
        hidden: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.help = text
        self.default = default
        self.shorthand = short
        self.completes = completes
        self.deprecated = deprecated
        """Where it is not empty the flag still works, says this when used, and is hidden."""
        self.hidden = hidden or bool(deprecated)
        """Whether it is left out of help and completion."""


_FORMATS = ("text", "json", "yaml", "kyaml")
_FAULTS = (
    "api-down", "catalog-miss", "host-dead", "join-failed", "manager-killed", "max-surge", "plan-failed", "pool-exhausted",
    "registry-missing", "registry-unreachable", "vip-lost",
)  # fmt: skip
_KUBECONFIG = "/etc/kubernetes/admin.conf"


def _extra_args(name: str, component: str, field: str) -> Flag:
    return Flag(
        name,
        "pairs",
        f"Extra flags for the {component}, as name=value pairs",
        deprecated=f"use 'ClusterConfiguration.{field}.extraArgs' instead. This flag will be removed in a future version",
    )


_HOST_STATES = ("Available", "Allocated", "Preparing", "Reprovisioning", "Unavailable", "registered", "booting", "node", "failed")

_ALL = (
    Flag("add-dir-header", "bool", "Show the folder of the source file in log lines (of kubeadm 1.33; without effect)", hidden=True),
    Flag("allow-deprecated-api", "bool", "Do not warn about API versions that are deprecated"),
    Flag("allow-experimental-api", "bool", "Accept API versions that are experimental and not released"),
    Flag("allow-experimental-upgrades", "bool", "Also offer and allow alpha, beta and release-candidate versions as the target"),
    Flag("allow-missing-template-keys", "bool", "Let templates name fields that are not there (accepted, without effect)", default="true"),
    Flag("allow-release-candidate-upgrades", "bool", "Also offer and allow release-candidate versions as the target"),
    Flag(
        "apiserver-advertise-address",
        "string",
        "IP address that this node's API server announces; default: that of the default route's interface",
    ),
    Flag("apiserver-bind-port", "int32", "Port that the API server of this node listens on", default="6443"),
    Flag("apiserver-cert-extra-sans", "strings", "More names and IP addresses for the API server's serving certificate"),
    _extra_args("apiserver-extra-args", "API server", "apiServer"),
    Flag("cert-dir", "string", "Folder of the certificates and keys", default="/etc/kubernetes/pki", completes="dir"),
    Flag("certificate-key", "string", "Key (64 hex digits) that encrypts the shared certificates in the Secret kubeadm-certs"),
    Flag("certificate-renewal", "bool", "Renew the certificates of the components that are upgraded", default="true"),
    Flag("cleanup-tmp-dir", "bool", "Also empty /etc/kubernetes/tmp, where upgrades keep their backups"),
    Flag("client-name", "string", "Name of the user: the CN of the client certificate"),
    Flag(
        "component-configs",
        "strings",
        "Also print the defaults of these component configurations",
        completes=("KubeletConfiguration", "KubeProxyConfiguration"),
    ),
    Flag("config", "string", "Configuration file (kubeadm.k8s.io)", completes="file"),
    Flag("context-lines", "int", "Lines of context around each difference", default="3", short="c"),
    Flag("control-plane", "bool", "Make this node another control plane"),
    Flag(
        "control-plane-endpoint", "string", "Stable address of the whole control plane: an IP address or a DNS name, with or without a port"
    ),
    _extra_args("controller-manager-extra-args", "controller manager", "controllerManager"),
    Flag("cri-socket", "string", "Socket of the container runtime; default: the one that is found on this machine", completes="file"),
    Flag("description", "string", "What the token is for, for people"),
    Flag("discovery-file", "string", "File or URL with the kubeconfig from which the cluster is known", completes="file"),
    Flag("discovery-token", "string", "Token that proves the cluster's identity to this node"),
    Flag("discovery-token-ca-cert-hash", "strings", "Accept only cluster CAs with one of these public keys, each as <type>:<value>"),
    Flag(
        "discovery-token-unsafe-skip-ca-verification",
        "bool",
        "Accept whichever cluster CA is offered: insecure where others reach the network",
    ),
    Flag("dry-run", "bool", "Change nothing; show what would be done"),
    Flag("etcd-snapshot-dir", "string", "Folder for a snapshot of etcd, which is taken before anything is changed", completes="dir"),
    Flag("etcd-upgrade", "bool", "Upgrade etcd too", default="true"),
    Flag("feature-gates", "string", "Features to switch, as Name=true|false, comma-separated"),
    Flag("force", "bool", "Ask no questions, and go on where that can lose something", short="f"),
    Flag(
        "groups",
        "strings",
        "Groups that a client with this token belongs to; each begins with system:bootstrappers:",
        default="[system:bootstrappers:kubeadm:default-node-token]",
    ),
    Flag("help", "bool", "Show this help", short="h"),
    Flag("ignore-preflight-errors", "strings", "Preflight checks whose errors become warnings, such as Swap; 'all' for every check"),
    Flag("image-repository", "string", "Registry from which the images of the control plane come", default="registry.k8s.io"),
    Flag("kubeconfig", "string", "Kubeconfig for talking to the cluster", default=_KUBECONFIG, completes="file"),
    Flag("kubeconfig-dir", "string", "Folder of the kubeconfig files", default="/etc/kubernetes", completes="dir"),
    Flag(
        "kubernetes-version",
        "string",
        "Kubernetes version of the control plane, such as v1.36.3, or a label such as stable-1",
        default="stable-1",
    ),
    Flag("new-config", "string", "File for the migrated configuration; default: standard output", completes="file"),
    Flag("node-name", "string", "Name of this node; default: its host name"),
    Flag("old-config", "string", "Configuration file to migrate", completes="file"),
    Flag("org", "strings", "Organizations of the user: the O of the client certificate, and so its groups"),
    Flag("output", "string", "Output format", default="text", short="o", completes=_FORMATS),
    Flag("output:version", "string", "Output format: yaml, json or short", short="o", completes=("yaml", "json", "short")),
    Flag(
        "output:events",
        "string",
        "What to print while running: text, or json for one event a line",
        default="text",
        short="o",
        completes=("text", "json"),
    ),
    Flag(
        "patches",
        "string",
        "Folder with patches for what is generated, as target[suffix][+type].yaml or .json: kube-apiserver0+merge.yaml. "
        "Targets: kube-apiserver, kube-controller-manager, kube-scheduler, etcd, kubeletconfiguration, corednsdeployment. "
        "Types: strategic (default), merge, json",
        completes="dir",
    ),
    Flag("pod-network-cidr", "string", "Address range of Pods; where set, every node gets its share of it"),
    Flag("print-config", "bool", "Print the configuration that the upgrade will use"),
    Flag("print-join-command", "bool", "Print the whole join command instead of the token alone"),
    Flag("print-manifest", "bool", "Print the add-on's manifests instead of installing them"),
    Flag("rootfs", "string", "Folder that stands for / of the machine to work on", completes="dir"),
    _extra_args("scheduler-extra-args", "scheduler", "scheduler"),
    Flag("service-cidr", "string", "Address range of Services", default="10.96.0.0/12"),
    Flag("service-dns-domain", "string", "DNS domain of Services", default="cluster.local"),
    Flag("show-managed-fields", "bool", "Keep managedFields in JSON and YAML output (accepted, without effect)"),
    Flag("skip-certificate-key-print", "bool", "Do not print the key that encrypts the shared certificates"),
    Flag("skip-headers", "bool", "Leave headers out of log lines (of kubeadm 1.33; without effect)", hidden=True),
    Flag("show-secrets", "bool", "Leave secrets such as the token in the events of -o json"),
    Flag("skip-phases", "strings", "Phases to leave out, such as addon/kube-proxy", completes="phases"),
    Flag("skip-token-print", "bool", "Do not print the bootstrap token"),
    Flag("strict-compat", "bool", "Migrate exactly as the kubeadm that is acted as would, with its version gate and its losses"),
    Flag("tls-bootstrap-token", "string", "Token with which the kubelet asks for its certificate"),
    Flag("token", "string", "Bootstrap token, as abcdef.0123456789abcdef"),
    Flag("token:discovery", "string", "Bootstrap token for both discovery and TLS bootstrap"),
    Flag("token:user", "string", "Authenticate with this token instead of a client certificate"),
    Flag("token-ttl", "duration", "Life of the token, such as 2h; 0 for a token that never expires", default="24h0m0s"),
    Flag("ttl", "duration", "Life of the token, such as 2h; 0 for a token that never expires", default="24h0m0s"),
    Flag("cert-dir:request", "string", "Folder for the keys and requests of the certificates", completes="dir"),
    Flag("upload-certs", "bool", "Keep the shared certificates, encrypted, in the cluster, so that further control planes can join"),
    Flag(
        "usages", "strings", "What the token may be used for", default="[signing,authentication]", completes=("signing", "authentication")
    ),
    Flag("v", "Level", "How much to tell: 0 to 10", short="v"),
    Flag("validity-period", "duration", "Life of the client certificate", default="8760h0m0s"),
    Flag("vmodule", "moduleSpec", "Log level by source file, as pattern=N (accepted, without effect)"),
    Flag("yes", "bool", "Ask no questions", short="y"),
    # Those of `lab`.
    Flag("bridge", "string", "Name of the lab's bridge; default: one that is free"),
    Flag("console", "bool", "Show what the host wrote to its console instead of its journal"),
    Flag("expose", "bool", "Insist on the lab's network, from which hosts reach the API server; a new one is there if there is a network"),
    Flag("folder", "string", "Folder that has the programs", completes="dir"),
    Flag("follow", "bool", "Go on showing what is added"),
    Flag("host-range", "string", "Address range of the hosts, a /24; default: one that is free"),
    Flag("hosts", "int", "How many hosts", default="3"),
    Flag("image", "string", "OS image: its name, such as v1.35.4 or v1.35.4-kubeadm, or the beginning of its digest"),
    Flag("images-only", "bool", "Load the container images, and leave the programs as they are"),
    Flag("kubernetes-version:lab", "string", "Kubernetes version, such as v1.35.4"),
    Flag("lab", "string", "Name of the lab", default="default"),
    Flag("lines", "int", "How many lines, counted from the end; default: all", default="0"),
    Flag("list", "bool", "Show what is in the cache"),
    Flag("node-tool", "string", "What `kubeadm` is in the image", default="slipway", completes=("slipway", "kubeadm")),
    Flag("output:list", "string", "Output format: text or json", default="text", short="o", completes=("text", "json")),
    Flag("pod-range", "string", "Address range of Pods, a /16; default: one that is free"),
    Flag("prune", "bool", "Free the cache of everything but the versions that are named"),
    Flag("registration", "string", "File with the configuration by which a new host registers at its first boot", completes="file"),
    Flag("unit", "string", "Only the log of this unit"),
    Flag("user-data", "string", "File with what cloud-init does at the first boot", completes="file"),
    # Those of `agent`.
    Flag(
        "auth",
        "string",
        "How the host proves who it is; default: what the configuration says, or tpm",
        completes=("tpm", "mac", "sys-uuid"),
    ),
    Flag(
        "config:registration",
        "string",
        "File that says how to register, as elemental-register has it",
        default="/oem/registration/config.yaml",
        completes="file",
    ),
    Flag("emulate-tpm", "bool", "Use a TPM in software, also where the host has one"),
    Flag("into", "string", "Folder that gets the root file system of the image", completes="file"),
    Flag("labels:registration", "pairs", "Labels of the host's inventory, as name=value pairs"),
    Flag("program", "string", "Path of this program in the unit; default: the one that is found on PATH", completes="file"),
    Flag("registration-ca-cert", "string", "File with the authorities that the endpoint is verified with", completes="file"),
    Flag("registration-url:agent", "string", "Where to register, as https://HOST:PORT/elemental/registration/TOKEN"),
    Flag("token:registration", "string", "Token of the registration, where the address does not end with it"),
    Flag("unless", "string", "Digest of the image that is there already: nothing is fetched where it is the same"),
    # Those of `manager`.
    Flag("alive-image", "string", "Image of the static Pod that holds a cluster's virtual address; default: slipway.io/alive"),
    Flag(
        "bootstrap-token-ttl",
        "duration",
        "Life of the bootstrap tokens with which nodes join, renewed while one is awaited",
        default="2h0m0s",
    ),
    Flag(
        "additional-sync-machine-annotations",
        "strings",
        "Regular expressions, comma-separated, of annotations of Machines that their Nodes get beside those that they always get",
    ),
    Flag(
        "additional-sync-machine-labels",
        "strings",
        "Regular expressions, comma-separated, of labels of Machines that their Nodes get beside those that they always get",
    ),
    Flag("catalog-namespace", "string", "Namespace of the image catalog; default: that of each BaremetalMachine"),
    Flag("concurrency", "int", "How many objects of a kind are worked on at once", default="10"),
    Flag(
        "controllers",
        "strings",
        "Controllers to run, comma-separated",
        default="[all]",
        completes=("bootstrap", "machines", "controlplane", "inventory", "baremetal", "all"),
    ),
    Flag("health-addr", "string", "Address of /healthz and /readyz, as [HOST]:PORT; 0 for none", default=":9440"),
    Flag("host-deadline", "duration", "How long a host may take for a plan before that is told as a fault", default="30m0s"),
    Flag("image:manager", "string", "Container image of the manager; default: slipway with this program's version"),
    Flag("join-deadline", "duration", "How long a host may take to join before that is told as a fault", default="20m0s"),
    Flag(
        "join-version",
        "string",
        "Whose Kubernetes version a worker's join configuration is made for: that of the control plane, or of its Machine",
        default="control-plane",
        completes=("control-plane", "machine"),
    ),
    Flag(
        "kubeadm-version-file",
        "bool",
        "Write the control plane's version to /run/cluster-api/kubeadm-version/version on every worker that joins",
        default="true",
    ),
    Flag("kubeconfig:manager", "string", "Kubeconfig of the management cluster", completes="file"),
    Flag("dashboard", "bool", "Serve a web page of clusters, hosts and rollouts, on port 9444 or at --dashboard-bind-address"),
    Flag("dashboard-bind-address", "string", "Address of the web page, as [HOST]:PORT; 0 for none, unless --dashboard", default="0"),
    Flag(
        "dashboard-cert-dir",
        "string",
        "Folder with tls.crt and tls.key for the web page; default: certificates of the manager's own",
        completes="dir",
    ),
    Flag("leader-elect", "bool", "Work only while this manager is the leader, by a Lease that all managers of the cluster share"),
    Flag(
        "leader-elect-namespace",
        "string",
        "Namespace of the Leases, by default those of upstream's managers, and of the webhooks' certificate, by default that of the Pod, "
        "or slipway-system",
    ),
    Flag(
        "shards",
        "int",
        "Divide the clusters by name into so many parts, which all managers that are told the same share by Leases: with --leader-elect",
        default="1",
    ),
    Flag("shards:install", "int", "Divide the clusters by name into so many parts, each worked on by one replica", default="1"),
    Flag("log-format", "string", "Form of the log lines", default="text", completes=("text", "json")),
    Flag("metrics-bind-address", "string", "Address of /metrics, as [HOST]:PORT; 0 for none", default="localhost:8080"),
    Flag("namespace", "string", "Namespace to work in; default: all of them"),
    Flag("namespace:install", "string", "Namespace of the manager", default="slipway-system"),
    Flag("output:manifests", "string", "Output format: yaml or json", default="yaml", short="o", completes=("yaml", "json")),
    Flag(
        "registration-api-server",
        "string",
        "URL of the API server as hosts that register reach it; default: what the manager itself uses",
    ),
    Flag(
        "registration-bind-address",
        "string",
        "Address at which hosts register, as [HOST]:PORT; 0 for none",
        default=":8443",
    ),
    Flag(
        "registration-cert-dir",
        "string",
        "Folder with tls.crt, tls.key and ca.crt for the registration of hosts; default: certificates of the manager's own",
        completes="dir",
    ),
    Flag("registration-url", "string", "Where hosts call to register, as https://HOST[:PORT]; default: the manager's Service"),
    Flag(
        "registry-secret",
        "string",
        "Secret beside the image catalog whose key address is the registry of clusters that name none",
        default="platform-registry",
    ),
    Flag("snapshot-keep", "int", "How many snapshots of a cluster are kept, where its control plane does not say", default="5"),
    Flag(
        "snapshot-secret",
        "string",
        "Secret in the manager's namespace with endpoint, accessKeyID and secretAccessKey of --snapshot-store s3://…",
    ),
    Flag(
        "snapshot-store",
        "string",
        "Where snapshots of control planes go that have slipway.io/snapshot-before-rollout: default; a folder, or s3://BUCKET[/PREFIX]",
        completes="dir",
    ),
    Flag("staging-hosts", "int", "How many hosts of a pool fetch an image ahead at a time", default="10"),
    Flag("sync-period", "duration", "How often every object is looked at again, changed or not", default="10m0s"),
    Flag("watch-filter", "string", "Work only on objects with this value of the label cluster.x-k8s.io/watch-filter"),
    Flag(
        "webhook-cert-dir",
        "string",
        "Folder with tls.crt and tls.key for the webhooks; default: certificates of the manager's own",
        completes="dir",
    ),
    Flag("webhook-port", "int", "Port of the webhooks; 0 for none", default="9443"),
    # Those of demo.
    Flag("control-planes", "int", "How many control planes the cluster has: 1, 3, 5 or 7", default="3"),
    Flag("fault", "string", f"What goes wrong during the upgrade, and is mended: {', '.join(_FAULTS)}", completes=_FAULTS),
    Flag("from", "string", "Kubernetes version that the cluster is made with", default="v1.34.10"),
    Flag("hosts:demo", "int", "How many hosts register", default="8"),
    Flag("dashboard:demo", "bool", "Serve the manager's web page, at the address that is printed"),
    Flag("keep", "bool", "Stay up when done, until Ctrl-C, for kubectl with the kubeconfig that is printed"),
    Flag("no-upgrade", "bool", "Make the cluster, and leave it at its version"),
    Flag("report", "string", "File for the report, which any browser shows; default: in a temporary folder", completes="file"),
    Flag("speed", "int", "How many times faster than real ones the hosts boot and wait", default="60"),
    Flag("to:demo", "string", "Kubernetes version to upgrade to, step by step over several minor versions", default="v1.35.4"),
    Flag("workers", "int", "How many workers the cluster has", default="3"),
    # Those of fleet.
    Flag("all-namespaces", "bool", "Look at all namespaces, whichever the kubeconfig's context names", short="A"),
    Flag("context", "string", "Context of the kubeconfig; default: its current one"),
    Flag("control-plane-only", "bool", "Upgrade the control plane and leave the workers as they are"),
    Flag(
        "dns-image-tag", "string", "Tag of CoreDNS that the control plane is to have in the end; default: a pinned one follows the version"
    ),
    Flag("etcd-image-tag", "string", "Tag of etcd that the control plane is to have in the end; default: a pinned one follows the version"),
    Flag("ignore-preflight", "bool", "Go on though prerequisites are not met"),
    Flag("timeout:upgrade", "duration", "How long to wait for the end; 0 for as long as it takes", default="0s"),
    Flag("workers-only", "bool", "Upgrade the workers alone, to a version that their control plane has already"),
    Flag("catalog-namespace:fleet", "string", "Namespace of the image catalog; default: that of the cluster"),
    Flag("namespace:fleet", "string", "Namespace of the cluster; default: that of the kubeconfig's context, or default", short="n"),
    Flag(
        "namespace:view", "string", "Namespace to look at; default: that of the kubeconfig's context, or all where it has none", short="n"
    ),
    Flag("output:fleet", "string", "Output format: table or json", default="table", short="o", completes=("table", "json")),
    Flag("output:hosts", "string", "Output format: table, wide or json", default="table", short="o", completes=("table", "wide", "json")),
    Flag("output:status", "string", "Output format: text or json", default="text", short="o", completes=("text", "json")),
    Flag("output:timeline", "string", "Output format: text, json or html", default="text", short="o", completes=("text", "json", "html")),
    Flag(
        "output:watch",
        "string",
        "What to print: text, or json for one change a line, the first of which is all that there is",
        default="text",
        short="o",
        completes=("text", "json"),
    ),
    Flag("force:restore", "bool", "Restore though the API server of the cluster answers; what has changed since the snapshot is lost"),
    Flag("from:snapshots", "string", "Where snapshots are: a folder, s3://BUCKET[/PREFIX], or one file", completes="file"),
    Flag("hosts-lost", "bool", "Release the hosts of the old control plane without cleaning them: they are dead, or gone"),
    Flag("keep-last", "int", "How many snapshots of the cluster are kept; 0 for all", default="0"),
    Flag("serve", "string", "Address at which hosts fetch the snapshot from this command, as HOST:PORT; for folders and files"),
    Flag("snapshot", "string", "Name of the snapshot; default: the newest of the cluster"),
    Flag("store-secret", "string", "Secret in the cluster's namespace with endpoint, accessKeyID and secretAccessKey of an s3:// store"),
    Flag("to:snapshots", "string", "Where to keep it: a folder, or s3://BUCKET[/PREFIX]; default: the store of the control plane's own"),
    Flag("pool", "string", "Only hosts of this MachineInventoryPool"),
    Flag("report:rehearse", "string", "File for the report, which any browser shows", completes="file"),
    Flag("report:timeline", "string", "File for the picture, which any browser shows", completes="file"),
    Flag("selector", "string", "Only hosts whose MachineInventory has these labels, as kubectl has it: rack=3,tier!=db", short="l"),
    Flag("since", "duration", "How far back; default: to the beginning of what happened last", default="0s"),
    Flag("state", "string", "Only hosts in this state or stage, such as Unavailable or booting", completes=_HOST_STATES),
    Flag("to", "string", "Kubernetes version to upgrade to, such as v1.35.4"),
    Flag(
        "workload-kubeconfig",
        "string",
        "Kubeconfig of the cluster itself, for its Pods and their budgets; default: that of its Secret, where it may be read",
        completes="file",
    ),
    Flag("webhook-url", "string", "Where the API server calls the webhooks of a manager outside of the cluster, as https://HOST:PORT"),
)


def _named(flag: Flag) -> tuple[str, Flag]:
    key = flag.name
    flag.name = key.partition(":")[0]
    return key, flag


FLAGS: dict[str, Flag] = dict(map(_named, _ALL))
