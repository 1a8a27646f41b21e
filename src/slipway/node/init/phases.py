"""The story of ``init``: a machine becomes the first control plane of a cluster.

``PHASES`` is the story, from top to bottom; what a phase does is in steps.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.node import workflow
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.init.options import InitOptions, InitRun
    from slipway.node.init.result import InitResult

# The flags of the phases' own sub-commands.
_CERT = ("cert-dir", "config", "kubernetes-version", "dry-run")
_APISERVER_CERT = (
    *_CERT, "apiserver-advertise-address", "control-plane-endpoint", "apiserver-cert-extra-sans", "service-dns-domain", "service-cidr",
)  # fmt: skip
_KUBECONFIG = (
    "apiserver-advertise-address", "control-plane-endpoint", "apiserver-bind-port", "cert-dir", "config", "kubeconfig-dir",
    "kubernetes-version", "dry-run",
)  # fmt: skip
_ETCD = ("cert-dir", "config", "image-repository", "patches", "dry-run")
_MANIFEST = ("config", "cert-dir", "kubernetes-version", "image-repository", "patches", "dry-run")
_APISERVER = (
    "apiserver-advertise-address",
    "control-plane-endpoint",
    "apiserver-bind-port",
    "apiserver-extra-args",
    "feature-gates",
    "service-cidr",
)
_CONTROLLER_MANAGER = ("controller-manager-extra-args", "pod-network-cidr")
_KUBELET = ("config", "image-repository", "cri-socket", "node-name", "patches", "dry-run")
_UPLOAD = ("config", "cri-socket", "kubeconfig", "dry-run")
_UPLOAD_CERTS = ("config", "kubeconfig", "upload-certs", "certificate-key", "skip-certificate-key-print", "dry-run")
_FINALIZE = ("config", "cert-dir", "dry-run")
_ADDON = ("config", "kubeconfig", "kubernetes-version", "image-repository", "dry-run")
_DNS = ("feature-gates", "service-dns-domain", "service-cidr")
_PROXY = ("apiserver-advertise-address", "control-plane-endpoint", "apiserver-bind-port", "pod-network-cidr")


def _certificate(name: str, short: str, flags: tuple[str, ...] = _CERT) -> Phase[InitRun]:
    return Phase(name=name, short=short, run="steps:certificate", given=(name,), flags=flags)


def _kubeconfig(name: str, short: str, *flags: str) -> Phase[InitRun]:
    return Phase(name=name, short=short, run="steps:kubeconfig", given=(name,), flags=(*_KUBECONFIG, *flags))


def _component(name: str, *flags: str) -> Phase[InitRun]:
    return Phase(name=name, short=f"Write the static Pod of kube-{name}", run="steps:component", would="steps:would_component",
                 given=(f"kube-{name}",), flags=(*_MANIFEST, *flags))  # fmt: skip


# fmt: off
PHASES: tuple[Phase[InitRun], ...] = (
    Phase(name="preflight", short="Check that this machine can become a control plane",
          run="steps:preflight", would="steps:would_preflight",
          flags=("config", "image-repository", "cri-socket", "ignore-preflight-errors", "dry-run")),
    Phase(name="certs", short="Make the certificates and keys of the cluster", run="steps:certificates", flags=_APISERVER_CERT, phases=(
        _certificate("ca", "Make the cluster's own certificate authority"),
        _certificate("apiserver", "Make the serving certificate of the API server", _APISERVER_CERT),
        _certificate("apiserver-kubelet-client", "Make the certificate with which the API server reaches kubelets"),
        _certificate("front-proxy-ca", "Make the certificate authority of the front proxy"),
        _certificate("front-proxy-client", "Make the client certificate of the front proxy"),
        _certificate("etcd-ca", "Make the certificate authority of etcd"),
        _certificate("etcd-server", "Make the serving certificate of etcd"),
        _certificate("etcd-peer", "Make the certificate with which etcd members reach each other"),
        _certificate("etcd-healthcheck-client", "Make the client certificate of etcd's health probes"),
        _certificate("apiserver-etcd-client", "Make the certificate with which the API server reaches etcd"),
        Phase(name="sa", short="Make the key pair that signs service account tokens", run="steps:service_account_key", flags=_CERT),
    )),
    Phase(name="kubeconfig", short="Write the kubeconfig files of the control plane and of the administrator", run="steps:kubeconfigs",
          flags=(*_KUBECONFIG, "node-name"), phases=(
        _kubeconfig("admin", "Write admin.conf, for the administrator and for this program"),
        _kubeconfig("super-admin", "Write super-admin.conf, which bypasses authorization"),
        _kubeconfig("kubelet", "Write kubelet.conf, with which the kubelet of this node starts", "node-name"),
        _kubeconfig("controller-manager", "Write controller-manager.conf"),
        _kubeconfig("scheduler", "Write scheduler.conf"),
    )),
    Phase(name="etcd", short="Write the static Pod of a local etcd", phases=(
        Phase(name="local", short="Write the static Pod of a local etcd with one member",
              run="steps:local_etcd", would="steps:would_local_etcd", flags=_ETCD),
    )),
    Phase(name="control-plane", short="Write the static Pods of the control plane", run="steps:control_plane",
          flags=(*_MANIFEST, *_APISERVER, *_CONTROLLER_MANAGER, "scheduler-extra-args"), phases=(
        _component("apiserver", *_APISERVER),
        _component("controller-manager", *_CONTROLLER_MANAGER),
        _component("scheduler", "scheduler-extra-args"),
    )),
    Phase(name="kubelet-start", short="Write the kubelet's settings and start it",
          run="steps:kubelet_start", would="steps:would_kubelet_start", flags=_KUBELET),
    Phase(name="wait-control-plane", short="Wait for the control plane to answer",
          run="steps:wait_control_plane", would="steps:would_wait_control_plane"),
    Phase(name="upload-config", short="Keep the configuration in the cluster", flags=_UPLOAD, aliases=("uploadconfig",), phases=(
        Phase(name="kubeadm", short="Keep the ClusterConfiguration in the ConfigMap kubeadm-config", run="steps:upload_kubeadm_config",
              flags=_UPLOAD),
        Phase(name="kubelet", short="Keep the kubelet's configuration in the ConfigMap kubelet-config", run="steps:upload_kubelet_config",
              flags=_UPLOAD),
    )),
    Phase(name="upload-certs", short="Keep the shared certificates, encrypted, in the Secret kubeadm-certs",
          run="steps:upload_certs", would="steps:would_upload_certs",
          flags=_UPLOAD_CERTS),
    Phase(name="mark-control-plane", short="Label and taint this node as a control plane", run="steps:mark_control_plane",
          flags=("node-name", "config", "dry-run")),
    Phase(name="bootstrap-token", short="Make the tokens with which nodes join, and what they are allowed to do",
          run="steps:bootstrap_token", would="steps:would_bootstrap_token",
          flags=("config", "kubeconfig", "skip-token-print", "dry-run"), aliases=("bootstraptoken",)),
    Phase(name="kubelet-finalize", short="Finish the kubelet's settings after its TLS bootstrap", flags=_FINALIZE, phases=(
        Phase(name="enable-client-cert-rotation", short="Let kubelet.conf follow the kubelet's rotating certificate",
              run="steps:enable_client_cert_rotation", would="steps:would_enable_client_cert_rotation", flags=_FINALIZE),
    )),
    Phase(name="addon", short="Install the add-ons that every cluster needs", flags=(*_ADDON, *_PROXY, *_DNS), phases=(
        Phase(name="coredns", short="Install CoreDNS", run="steps:addon", given=("coredns",), flags=(*_ADDON, *_DNS, "print-manifest")),
        Phase(name="kube-proxy", short="Install kube-proxy", run="steps:addon", given=("kube-proxy",),
              flags=(*_ADDON, *_PROXY, "print-manifest")),
    )),
    Phase(name="show-join-command", short="Show how other nodes join", run="steps:show_join_command",
          needs=("bootstrap-token", "upload-certs")),
)
# fmt: on


def run(options: InitOptions, host: Host, progress: Progress) -> InitResult:
    """The whole command; what it made is what it returns."""
    return perform(prepare(options, host, progress))


def prepare(options: InitOptions, host: Host, progress: Progress) -> InitRun:
    """Read the configuration and decide what will be run; nothing is changed yet but for the folder of a dry run."""
    # Help and completion read the tree alone.
    from slipway.node.init import steps

    return steps.prepare(options, host, progress)


def perform(state: InitRun) -> InitResult:
    """Run the phases."""
    from slipway.node.init import steps

    ctx, options = state.ctx, state.options
    if not options.only:
        ctx.progress.say(f"[init] Using Kubernetes version: {ctx.config.cluster.kubernetes_version}")
    steps.make_keys_ahead(state, [item.path for item in workflow.selected(PHASES, only=options.only, skip=state.skip_phases)])
    recorder = workflow.Recorder(ctx.progress)
    workflow.execute(
        PHASES, state, recorder, package=__package__, only=options.only, skip=state.skip_phases, dry_run=bool(ctx.config.dry_run)
    )
    return steps.result(state, recorder.seconds)
