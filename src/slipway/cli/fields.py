"""From flags to fields: what a command line sets in the configuration, in the notation of v1beta4."""

from __future__ import annotations

from slipway.api.kubeadm import v1beta4
from slipway.api.machinery.errors import OperatorError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.releases import Release
    from slipway.cli.argv.parser import Invocation
    from slipway.host.progress import Progress

_INIT = {
    "apiserver-advertise-address": "localAPIEndpoint.advertiseAddress",
    "apiserver-bind-port": "localAPIEndpoint.bindPort",
    "apiserver-cert-extra-sans": "apiServer.certSANs",
    "cert-dir": "certificatesDir",
    "certificate-key": "certificateKey",
    "control-plane-endpoint": "controlPlaneEndpoint",
    "cri-socket": "nodeRegistration.criSocket",
    "dry-run": "dryRun",
    "ignore-preflight-errors": "nodeRegistration.ignorePreflightErrors",
    "image-repository": "imageRepository",
    "kubernetes-version": "kubernetesVersion",
    "node-name": "nodeRegistration.name",
    "patches": "patches.directory",
    "pod-network-cidr": "networking.podSubnet",
    "service-cidr": "networking.serviceSubnet",
    "service-dns-domain": "networking.dnsDomain",
    "skip-phases": "skipPhases",
}

_EXTRA_ARGS = {
    "apiserver-extra-args": "apiServer.extraArgs",
    "controller-manager-extra-args": "controllerManager.extraArgs",
    "scheduler-extra-args": "scheduler.extraArgs",
}

_JOIN = {
    "cri-socket": "nodeRegistration.criSocket",
    "discovery-file": "discovery.file.kubeConfigPath",
    "dry-run": "dryRun",
    "ignore-preflight-errors": "nodeRegistration.ignorePreflightErrors",
    "node-name": "nodeRegistration.name",
    "patches": "patches.directory",
    "skip-phases": "skipPhases",
    "tls-bootstrap-token": "discovery.tlsBootstrapToken",
}

_JOIN_BOOTSTRAP_TOKEN = {
    "discovery-token": "discovery.bootstrapToken.token",
    "discovery-token-ca-cert-hash": "discovery.bootstrapToken.caCertHashes",
    "discovery-token-unsafe-skip-ca-verification": "discovery.bootstrapToken.unsafeSkipCAVerification",
}

_JOIN_CONTROL_PLANE = {
    "certificate-key": "controlPlane.certificateKey",
    "apiserver-advertise-address": "controlPlane.localAPIEndpoint.advertiseAddress",
    "apiserver-bind-port": "controlPlane.localAPIEndpoint.bindPort",
}

# The ConfigMaps that a configuration is kept in hold no more.
_LARGEST_FILE = 2**20

_RESET = {
    "cert-dir": "certificatesDir",
    "cleanup-tmp-dir": "cleanupTmpDir",
    "cri-socket": "criSocket",
    "dry-run": "dryRun",
    "force": "force",
    "ignore-preflight-errors": "ignorePreflightErrors",
    "skip-phases": "skipPhases",
}


def config_text(call: Invocation, flag: str = "config") -> str | None:
    """The content of the file that ``--config`` names; None without one, or where the command has no such flag."""
    path = call.text(flag) if flag in call.flags else ""
    if not path:
        return None
    try:
        content = call.host.read(path, _LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise OperatorError(f'unable to read config from "{path}" : it is larger than {_LARGEST_FILE} bytes, the most that is read')
        call.config_path, call.config_text = path, content.decode()
    except OSError as error:
        raise OperatorError(f'unable to read config from "{path}" : open {path}: {(error.strerror or str(error)).lower()}') from None
    except UnicodeDecodeError as error:
        raise OperatorError(f'unable to read config from "{path}" : it is not UTF-8 text ({error.reason} at byte {error.start})') from None
    return call.config_text


def init_overrides(call: Invocation, progress: Progress) -> dict[str, object]:
    """What the flags of ``init`` and of its phases set."""
    fields = _fields(call, _INIT)
    if call.changed("feature-gates"):
        from slipway.node.config import version

        requested = call.text("kubernetes-version") if call.changed("kubernetes-version") else ""
        release = version.acting_release(call.host.environment, requested)
        fields["featureGates"] = feature_gates(call.text("feature-gates"), release, progress)
    for name, field in _EXTRA_ARGS.items():
        if call.changed(name):
            fields[field] = [v1beta4.Arg(name=key, value=value) for key, value in call.pairs(name)]
    if not call.changed("config"):
        fields["bootstrapTokens"] = [_token(call)]
    return fields


def join_overrides(call: Invocation, progress: Progress) -> dict[str, object]:
    """What the flags and the argument of ``join`` and of its phases set."""
    fields = _fields(call, _JOIN)
    token = call.text("token") if call.changed("token") else ""
    if token:
        fields.setdefault("discovery.tlsBootstrapToken", token)
    if call.arguments and not call.changed("config"):
        fields |= _fields(call, _JOIN_BOOTSTRAP_TOKEN)
        if token:
            fields.setdefault("discovery.bootstrapToken.token", token)
        fields["discovery.bootstrapToken.apiServerEndpoint"] = call.arguments[0]
    control_plane = _fields(call, _JOIN_CONTROL_PLANE)
    if call.changed("control-plane") and call.switch("control-plane"):
        fields["controlPlane"] = v1beta4.JoinControlPlane()
        fields |= control_plane
    elif control_plane:
        related = ", ".join(_JOIN_CONTROL_PLANE)
        progress.warn(f"[preflight] WARNING: --control-plane is also required when passing control-plane related flags such as [{related}]")
    return fields


def reset_overrides(call: Invocation) -> dict[str, object]:
    return _fields(call, _RESET)


def feature_gates(text: str, release: Release, progress: Progress) -> dict[str, bool]:
    """``Name=true,Other=false``, checked against the gates of the release."""
    gates = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise UsageError(f"missing bool value for feature-gate key:{pair}")
        gate = release.feature_gates.get(name)
        if gate is None:
            raise UsageError(f"unrecognized feature-gate key: {name}")
        if value not in _TRUE | _FALSE:
            raise UsageError(f"invalid value {value} for feature-gate key: {name}, use true|false instead")
        if gate.stage == "DEPRECATED":
            progress.warn(f"Setting deprecated feature gate {name}={value}. It will be removed in a future release.")
        gates[name] = value in _TRUE
    return gates


_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def _fields(call: Invocation, names: dict[str, str]) -> dict[str, object]:
    return {field: call.given[name] for name, field in names.items() if call.changed(name)}


def _token(call: Invocation) -> v1beta4.BootstrapToken:
    """The token of ``init`` without a file; an empty one is made later."""
    token = v1beta4.BootstrapToken(description="The default bootstrap token generated by 'kubeadm init'.")
    if call.changed("token"):
        from slipway.credentials import tokens

        token.token = tokens.check(call.text("token"))
    if call.changed("token-ttl"):
        token.ttl = call.duration("token-ttl")
    return token
