"""Configuration as documents to be read by people: printed defaults, files that are checked, files that are migrated.

What ``config print``, ``config validate`` and ``config migrate --strict-compat`` do, with the bytes of the real kubeadm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import conversion, defaults, documents, internal, v1beta4
from slipway.api.kubeadm.validation import rules
from slipway.api.machinery import strict
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.yaml import goyaml
from slipway.node.config import load, version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.kubeadm.documents import ConfigDocument, Warn
    from slipway.api.machinery.duration import Duration
    from slipway.api.machinery.objects import Object
    from slipway.api.releases import Release
    from slipway.host.interface import Host

SEPARATOR = "---\n"
_PLACEHOLDER_TOKEN = "abcdef.0123456789abcdef"
_COMPONENT_GROUPS = {"KubeProxyConfiguration": "kubeproxy.config.k8s.io", "KubeletConfiguration": "kubelet.config.k8s.io"}


def marshal_init(config: internal.InitConfiguration, release: Release) -> str:
    """An InitConfiguration and its ClusterConfiguration as two v1beta4 documents; component configs are not among them."""
    init = _document(conversion.to_version(config, v1beta4.InitConfiguration, release))
    return init + SEPARATOR + marshal_cluster(config.cluster, release)


def marshal_cluster(cluster: internal.ClusterConfiguration, release: Release) -> str:
    return _document(conversion.to_version(cluster, v1beta4.ClusterConfiguration, release))


def marshal_join(config: internal.JoinConfiguration, release: Release) -> str:
    return _document(conversion.to_version(config, v1beta4.JoinConfiguration, release))


def marshal_reset(config: internal.ResetConfiguration, release: Release) -> str:
    return _document(conversion.to_version(config, v1beta4.ResetConfiguration, release))


def print_defaults(kind: str, component_configs: Sequence[str], release: Release, host: Host) -> str:
    """The output of ``config print {init,join,reset,upgrade}-defaults``."""
    unknown = [name for name in component_configs if name not in _COMPONENT_GROUPS]
    if unknown:
        raise ConfigurationError(f"--component-configs needs to contain some of [{' '.join(_COMPONENT_GROUPS)}]")
    match kind:
        case "init":
            config = _placeholder_init(release)
            return SEPARATOR.join([marshal_init(config, release), *_default_components(config, component_configs, release)])
        case "join":
            join = v1beta4.JoinConfiguration()
            join.discovery.bootstrap_token = v1beta4.BootstrapTokenDiscovery(
                token=_PLACEHOLDER_TOKEN, api_server_endpoint="kube-apiserver:6443", unsafe_skip_ca_verification=True
            )
            defaults.apply(join, release)
            joining = conversion.to_internal(join, internal.JoinConfiguration, release)
            load.complete_join(joining, host, _silent, skip_cri_detection=True)
            return marshal_join(joining, release)
        case "reset":
            reset = v1beta4.ResetConfiguration(cri_socket=defaults.CRI_SOCKET)
            defaults.apply(reset, release)
            return _document(reset)
        case "upgrade":
            upgrade = v1beta4.UpgradeConfiguration()
            defaults.apply(upgrade, release)
            return _document(upgrade)
        case _:
            raise ConfigurationError(f"there are no defaults of {kind}: ask for init, join, reset or upgrade")


def validate(text: str, host: Host, warn: Warn, *, source: str = "", allow_deprecated: bool = False) -> Release:
    """Check a file as ``config validate`` does; ConfigurationError says what is wrong.  The answer is the release acted as."""
    split = documents.split(text, source)
    documents.refuse_unknown(split)
    release = load.release_of(host, split)
    deprecated = warn if release.allow_deprecated_api_flag and not allow_deprecated else None
    kinds = {document.gvk.kind for document in split}
    if kinds & {"InitConfiguration", "ClusterConfiguration"}:
        config = load.read_init(split, release, problems_are_errors=True, warn=warn, deprecated=deprecated)
        # Which version a label means does not matter to a check, so no release server is asked.
        config.cluster.kubernetes_version = version.assumed(config.cluster.kubernetes_version, release)
        load.complete_init(config, release, host, warn, skip_cri_detection=True, default_components=False)
    if "JoinConfiguration" in kinds:
        join = load.read(split, internal.JoinConfiguration, release, problems_are_errors=True, warn=warn, deprecated=deprecated)
        load.complete_join(join, host, warn, skip_cri_detection=True)
    if "ResetConfiguration" in kinds:
        reset = load.read(split, internal.ResetConfiguration, release, problems_are_errors=True, warn=warn, deprecated=deprecated)
        load.complete_reset(reset, host, warn, skip_cri_detection=True)
    if "UpgradeConfiguration" in kinds and (release.upgrade_configuration_checked or not version.acts_as_one_release(host.environment)):
        upgrade = load.read(split, internal.UpgradeConfiguration, release, problems_are_errors=True, warn=warn, deprecated=deprecated)
        load.refuse(rules.validate_upgrade(upgrade))
    return release


def migrate_as_kubeadm(
    text: str,
    release: Release,
    host: Host,
    *,
    source: str = "",
    warn: Warn | None = None,
) -> str:
    """The output of the real ``config migrate``, byte for byte, with what is wrong in it.

    The timeout of the control plane is taken from where v1beta3 had it: a v1beta4 file, which has it elsewhere, gets 0s,
    and a v1beta3 ClusterConfiguration decides it for a JoinConfiguration in the same file too.  Component configs are
    dropped; an UpgradeConfiguration is passed over in silence, or refused since 1.36.
    """
    warn = warn or _silent
    split = documents.split(text, source)
    documents.refuse_unknown(split)
    kinds = {document.gvk.kind for document in split}
    parts: list[str] = []
    if kinds & {"InitConfiguration", "ClusterConfiguration"}:
        config = load.read_init(split, release, problems_are_errors=True, warn=warn, deprecated=None)
        load.complete_init(config, release, host, warn, skip_cri_detection=False, default_components=False)
        config.timeouts.control_plane_component_health_check = config.cluster.api_server.timeout_for_control_plane
        parts.append(marshal_init(config, release))
    if "JoinConfiguration" in kinds:
        join = load.read(split, internal.JoinConfiguration, release, problems_are_errors=True, warn=warn, deprecated=None)
        load.complete_join(join, host, warn, skip_cri_detection=False)
        timeout = _v1beta3_timeout(split, release)
        if timeout is not None:
            join.timeouts.control_plane_component_health_check = timeout
        parts.append(marshal_join(join, release))
    if "ResetConfiguration" in kinds:
        reset = load.read(split, internal.ResetConfiguration, release, problems_are_errors=True, warn=warn, deprecated=None)
        load.complete_reset(reset, host, warn, skip_cri_detection=False)
        parts.append(marshal_reset(reset, release))
    if "UpgradeConfiguration" in kinds and release.upgrade_configuration_checked:
        raise ConfigurationError(f"could not find a mutator for input: kubeadm v{release.version} cannot migrate an UpgradeConfiguration")
    return SEPARATOR.join(parts)


def _v1beta3_timeout(split: list[ConfigDocument], release: Release) -> Duration | None:
    cluster = documents.of_kind(split, "ClusterConfiguration")
    if cluster is None or cluster.gvk.version != "v1beta3":
        return None
    decoded = documents.decode(cluster, release, True, _silent)
    defaults.apply(decoded, release)
    return conversion.to_internal(decoded, internal.ClusterConfiguration, release).api_server.timeout_for_control_plane or None


def _placeholder_init(release: Release) -> internal.InitConfiguration:
    init = v1beta4.InitConfiguration(bootstrap_tokens=[v1beta4.BootstrapToken(token=_PLACEHOLDER_TOKEN)])
    init.local_api_endpoint.advertise_address = "1.2.3.4"
    init.node_registration.name = "node"
    init.node_registration.cri_socket = defaults.CRI_SOCKET
    cluster = v1beta4.ClusterConfiguration(kubernetes_version=f"1.{release.minor}.0")
    defaults.apply(init, release)
    defaults.apply(cluster, release)
    config = conversion.to_internal(init, internal.InitConfiguration, release)
    config.cluster = conversion.to_internal(cluster, internal.ClusterConfiguration, release)
    return config


def _default_components(config: internal.InitConfiguration, kinds: Sequence[str], release: Release) -> list[str]:
    if not kinds:
        return []
    from slipway.api import components

    components.default(config.cluster, config.local_api_endpoint, config.node_registration, release, systemd_resolved=False)
    return [components.marshal(config.cluster.component_configs[_COMPONENT_GROUPS[kind]], release) for kind in kinds]


def _document(versioned: Object) -> str:
    return goyaml.dump({"apiVersion": v1beta4.API_VERSION, "kind": type(versioned).__name__, **strict.encode(versioned)})


def _silent(warning: str) -> None:
    """For what is said elsewhere, or to nobody."""
