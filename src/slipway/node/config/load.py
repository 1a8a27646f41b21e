"""From files and flags to the internal configuration, complete and checked; and back to documents.

``load_*`` are what commands start from.  Each takes the text of ``--config`` or None, and ``overrides``: what flags set,
as a mapping from fields in the notation of v1beta4 (``nodeRegistration.name``, ``networking.podSubnet``) to values.
Without a file, overrides are the configuration; with one, they are laid over it after it was checked, as kubeadm does it
with the few flags that go with ``--config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from slipway.api.kubeadm import documents, internal, v1beta4
from slipway.api.kubeadm.validation import rules
from slipway.api.machinery import strict
from slipway.api.machinery.objects import Object
from slipway.node.config import version
from slipway.node.config.reading import complete_init, complete_join, complete_reset, defaulted, read, read_init, refuse, release_of

if TYPE_CHECKING:
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
    fetch: version.Fetch = version.fetch_label,
) -> tuple[internal.InitConfiguration, Release]:
    """What ``init`` and its phases work from, and the release to act as."""
    if text is None:
        requested = str(overrides.get("kubernetesVersion", ""))
        release = version.acting_release(host.environment, requested)
        config = _default_init(release, overrides)
    else:
        split = documents.split(text, source)
        release = release_of(host, split)
        config = read_init(split, release, problems_are_errors=False, warn=progress.warn, deprecated=progress.warn)
    release = complete_init(config, release, host, progress.warn, fetch, skip_cri_detection=skip_cri_detection)
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
