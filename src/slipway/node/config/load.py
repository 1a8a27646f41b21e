"""From files and flags to the internal configuration, complete and checked; and back to documents.

``load_*`` are what commands start from.  Each takes the text of ``--config`` or None, and ``overrides``: what flags set,
as a mapping from fields in the notation of v1beta4 (``nodeRegistration.name``, ``networking.podSubnet``) to values.
Without a file, overrides are the configuration; with one, they are laid over it after it was checked, as kubeadm does it
with the few flags that go with ``--config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from slipway.api.kubeadm import conversion, defaults, documents, internal, v1beta4
from slipway.api.kubeadm.validation import rules
from slipway.api.machinery import strict
from slipway.api.machinery.errors import ConfigurationError, ValidationError
from slipway.api.machinery.fieldpath import FieldError, aggregate
from slipway.api.machinery.objects import Object
from slipway.node.config import dynamicdefaults, version

if TYPE_CHECKING:
    from slipway.api.kubeadm.documents import ConfigDocument, Warn
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.host.progress import Progress

Overrides = Mapping[str, object]
Config = TypeVar("Config", bound=Object)

_PREFLIGHT = "ignorePreflightErrors"


def load_init(
    host: Host,
    text: str | None,
    overrides: Overrides,
    progress: Progress,
    *,
    source: str = "",
    skip_cri_detection: bool = False,
    look_up: bool = True,
) -> tuple[internal.InitConfiguration, Release]:
    """What ``init`` and its phases work from, and the release to act as.

    Without ``look_up`` a label stands for the release's own version.
    """
    if text is None:
        requested = str(overrides.get("kubernetesVersion", ""))
        release = version.acting_release(host.environment, requested)
        config = _default_init(release, overrides)
    else:
        split = documents.split(text, source)
        release = release_of(host, split)
        config = read_init(split, release, problems_are_errors=False, warn=progress.warn, deprecated=progress.warn)
    if not look_up:
        config.cluster.kubernetes_version = version.assumed(config.cluster.kubernetes_version, release)
    release = complete_init(config, release, host, progress.warn, skip_cri_detection=skip_cri_detection)
    if text is not None:
        _lay_over(config, overrides)
    _settle_ignored(config, f"nodeRegistration.{_PREFLIGHT}")
    return config, release


def load_join(
    host: Host, text: str | None, overrides: Overrides, progress: Progress, *, source: str = "", skip_cri_detection: bool = False
) -> tuple[internal.JoinConfiguration, Release]:
    """What ``join`` works from."""
    release = version.acting_release(host.environment)
    if text is None:
        config = _default(v1beta4.JoinConfiguration(), internal.JoinConfiguration, release, overrides)
    else:
        split = documents.split(text, source)
        config = read(split, internal.JoinConfiguration, release, problems_are_errors=False, warn=progress.warn, deprecated=progress.warn)
    complete_join(config, host, progress.warn, skip_cri_detection=skip_cri_detection)
    if text is not None:
        _lay_over(config, overrides)
    _settle_ignored(config, f"nodeRegistration.{_PREFLIGHT}")
    return config, release


def load_reset(
    host: Host, text: str | None, overrides: Overrides, progress: Progress, *, source: str = "", skip_cri_detection: bool = False
) -> tuple[internal.ResetConfiguration, Release]:
    """What ``reset`` works from."""
    release = version.acting_release(host.environment)
    if text is None:
        config = _default(v1beta4.ResetConfiguration(), internal.ResetConfiguration, release, overrides)
    else:
        split = documents.split(text, source)
        config = read(split, internal.ResetConfiguration, release, problems_are_errors=False, warn=progress.warn, deprecated=progress.warn)
    complete_reset(config, host, progress.warn, skip_cri_detection=skip_cri_detection)
    if text is not None:
        _lay_over(config, overrides)
    _settle_ignored(config, _PREFLIGHT)
    return config, release


def load_upgrade(
    host: Host, text: str | None, overrides: Overrides, progress: Progress, *, source: str = ""
) -> tuple[internal.UpgradeConfiguration, Release]:
    """What the commands of ``upgrade`` work from; the release is that of this program, not of the cluster."""
    release = version.acting_release(host.environment)
    if text is None:
        config = _default(v1beta4.UpgradeConfiguration(), internal.UpgradeConfiguration, release, overrides)
    else:
        split = documents.split(text, source)
        config = read(
            split, internal.UpgradeConfiguration, release, problems_are_errors=False, warn=progress.warn, deprecated=progress.warn
        )
    refuse(rules.validate_upgrade(config))
    if text is not None:
        _lay_over(config, overrides)
    # Of the four commands only the one that is run looks at its checks.
    _settle_ignored(config, *(path for path in overrides if path.endswith(_PREFLIGHT)))
    return config, release


def _default(versioned: Object, target: type[Config], release: Release, overrides: Overrides) -> Config:
    for path, value in overrides.items():
        _set(versioned, path, value)
    return defaulted(versioned, target, release)


def _default_init(release: Release, overrides: Overrides) -> internal.InitConfiguration:
    init, cluster = v1beta4.InitConfiguration(), v1beta4.ClusterConfiguration()
    for path, value in overrides.items():
        _set(cluster if _is_cluster_field(path) else init, path, value)
    config = defaulted(init, internal.InitConfiguration, release)
    config.cluster = defaulted(cluster, internal.ClusterConfiguration, release)
    return config


def _lay_over(config: Object, overrides: Overrides) -> None:
    """Flags over a file; the checks to ignore are those of both."""
    for path, value in overrides.items():
        target: Object = config
        if isinstance(config, internal.InitConfiguration) and _is_cluster_field(path):
            target = config.cluster
        if path.endswith(_PREFLIGHT) and isinstance(value, list):
            value = [*_get(target, path), *value]
        _set(target, path, value)


def _settle_ignored(config: Object, *paths: str) -> None:
    """The names of checks to ignore are read without regard to case, and 'all' stands alone."""
    for path in paths:
        _set(config, path, rules.ignored_preflight_errors((), _get(config, path)))


def _is_cluster_field(path: str) -> bool:
    return path.partition(".")[0] in v1beta4.ClusterConfiguration.__struct_encode_fields__


def _get(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, strict.fields(type(config))[name][0])
    return config


def _set(config: Object, path: str, value: object) -> None:
    """Set a field by its name on the wire; objects on the way that are not there are made."""
    *parents, last = path.split(".")
    for name in parents:
        attribute, kind = strict.fields(type(config))[name]
        if getattr(config, attribute) is None:
            setattr(config, attribute, next(option for option in kind.__args__ if option is not type(None))())
        config = getattr(config, attribute)
    setattr(config, strict.fields(type(config))[last][0], value)


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
    *,
    skip_cri_detection: bool,
    default_components: bool = True,
) -> Release:
    """The machine's defaults, then validation.  Nobody looks at default component configs where files are only checked."""
    release = dynamicdefaults.fill_init(config, release, host, warn, skip_cri_detection=skip_cri_detection)
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
