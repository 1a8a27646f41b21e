"""One configuration file, read: its documents decoded, defaulted, converted to the internal form, completed and checked.

The pieces that loading for a command (configuration.py) and working on files (configfiles.py) have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from slipway.api.kubeadm import conversion, defaults, documents, internal, v1beta4
from slipway.api.kubeadm.validation import rules
from slipway.api.machinery.errors import ConfigurationError, ValidationError
from slipway.api.machinery.fieldpath import FieldError, aggregate
from slipway.api.machinery.objects import Object
from slipway.node.config import dynamicdefaults, version

if TYPE_CHECKING:
    from slipway.api.kubeadm.documents import ConfigDocument, Warn
    from slipway.api.releases import Release
    from slipway.host.interface import Host

Config = TypeVar("Config", bound=Object)


def release_of(host: Host, split: list[ConfigDocument]) -> Release:
    """The release that a file asks for with its kubernetesVersion."""
    cluster = documents.of_kind(split, "ClusterConfiguration")
    requested = cluster.content.value.get("kubernetesVersion") if cluster is not None else None
    return version.acting_release(host.environment, requested if isinstance(requested, str) else "")


def read_init(
    split: list[ConfigDocument], release: Release, *, problems_are_errors: bool, warn: Warn, deprecated: Warn | None
) -> internal.InitConfiguration:
    """The InitConfiguration of a file with its ClusterConfiguration and component configs, and static defaults only."""
    init: internal.InitConfiguration | None = None
    cluster: internal.ClusterConfiguration | None = None
    for document in split:
        documents.check_version(document.gvk, deprecated)
        if document.gvk.group in documents.COMPONENT_VERSIONS:
            continue
        if not documents.is_known(document.gvk):
            warn(f"unknown configuration {document.gvk}")
        else:
            decoded = documents.decode(document, release, problems_are_errors, warn)
            if document.gvk.kind == "InitConfiguration":
                init = defaulted(decoded, internal.InitConfiguration, release)
                continue
            if document.gvk.kind == "ClusterConfiguration":
                cluster = defaulted(decoded, internal.ClusterConfiguration, release)
                continue
        _warn_ignored(document, warn)
    if init is None and cluster is None:
        raise ConfigurationError("no InitConfiguration or ClusterConfiguration kind was found in the configuration file")
    config = init or defaulted(v1beta4.InitConfiguration(), internal.InitConfiguration, release)
    config.cluster = cluster or defaulted(v1beta4.ClusterConfiguration(), internal.ClusterConfiguration, release)
    timeout = config.cluster.api_server.timeout_for_control_plane
    if timeout and timeout != defaults.CONTROL_PLANE_TIMEOUT:
        config.timeouts.control_plane_component_health_check = timeout
    for document in split:
        if document.gvk.group in documents.COMPONENT_VERSIONS:
            _read_component(document, config.cluster, release, problems_are_errors=problems_are_errors, warn=warn)
    return config


def _read_component(
    document: ConfigDocument, cluster: internal.ClusterConfiguration, release: Release, *, problems_are_errors: bool, warn: Warn
) -> None:
    from slipway.api import components

    wanted = f"{document.gvk.group}/{documents.COMPONENT_VERSIONS[document.gvk.group]}"
    if document.gvk.api_version != wanted:
        raise ConfigurationError(
            f'unsupported apiVersion "{document.gvk.api_version}", you may have to do manual conversion to "{wanted}" and run kubeadm again'
        )
    component, problems = components.load(document.content, release)
    documents.report(document, problems, problems_are_errors, warn)
    component.user_supplied = True
    cluster.component_configs[document.gvk.group] = component


def read(
    split: list[ConfigDocument], target: type[Config], release: Release, *, problems_are_errors: bool, warn: Warn, deprecated: Warn | None
) -> Config:
    """The one document of a kind that stands alone, with static defaults; other documents are passed over with a warning."""
    found: Config | None = None
    for document in split:
        if document.gvk.kind != target.__name__:
            _warn_ignored(document, warn)
            continue
        documents.check_version(document.gvk, deprecated)
        if not documents.is_known(document.gvk):
            raise ConfigurationError(f"unknown configuration {document.gvk}")
        found = defaulted(documents.decode(document, release, problems_are_errors, warn), target, release)
    if found is None:
        raise ConfigurationError(f"no {target.__name__} found in the supplied config")
    return found


def complete_init(
    config: internal.InitConfiguration,
    release: Release,
    host: Host,
    warn: Warn,
    fetch: version.Fetch,
    *,
    skip_cri_detection: bool,
    default_components: bool = True,
) -> Release:
    """The machine's defaults, then validation.  Nobody looks at default component configs where files are only checked."""
    release = dynamicdefaults.fill_init(config, release, host, warn, fetch, skip_cri_detection=skip_cri_detection)
    if default_components or config.cluster.component_configs:
        dynamicdefaults.fill_components(config, release, host, warn)
    refuse(rules.validate_init(config, release, warn))
    return release


def complete_join(config: internal.JoinConfiguration, host: Host, warn: Warn, *, skip_cri_detection: bool) -> None:
    dynamicdefaults.fill_join(config, host, warn, skip_cri_detection=skip_cri_detection)
    refuse(rules.validate_join(config, host.exists))


def complete_reset(config: internal.ResetConfiguration, host: Host, warn: Warn, *, skip_cri_detection: bool) -> None:
    config.cri_socket = dynamicdefaults.cri_socket(config.cri_socket, host, warn, skip_detection=skip_cri_detection)
    refuse(rules.validate_reset(config))


def refuse(errors: list[FieldError]) -> None:
    """ValidationError with all that validation found."""
    if errors:
        raise ValidationError(aggregate(errors))


def defaulted(versioned: Object, target: type[Config], release: Release) -> Config:
    defaults.apply(versioned, release)
    return conversion.to_internal(versioned, target, release)


def _warn_ignored(document: ConfigDocument, warn: Warn) -> None:
    warn(f"[config] WARNING: Ignored configuration document with GroupVersionKind {document.gvk}")
