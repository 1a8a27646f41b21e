"""What a kubernetesVersion in a configuration or on the command line means: a version, or a label to be looked up.

``1.35.4`` and ``v1.35.4`` are versions; ``stable``, ``stable-1``, ``stable-1.35``, ``latest-1`` and ``ci/latest`` are
labels, for which a release server is asked.  Without an answer the release that is acted as stands in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import KNOWN_PATCHES, NEWEST, Release, release_for

if TYPE_CHECKING:
    from slipway.api.kubeadm.documents import Warn
    from slipway.host.interface import Host

ACT_AS = "SLIPWAY_AS_KUBEADM"
CI_IMAGE_REPOSITORY = "gcr.io/k8s-staging-ci-images"
CI_PREFIX = "ci/"

Ask = Callable[[str], str]
"""The answer of a release server to a URL; OperatorError where there is none."""

_RELEASE_SERVER = "https://dl.k8s.io/release"
_CI_SERVER = "https://storage.googleapis.com/k8s-release-dev/ci"
_VERSION = re.compile(r"v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)[-\w.+]*", re.ASCII)
_LABEL = r"(latest|stable)+(-[1-9](\.[1-9][0-9]?)?)?"
_PREFIXED = re.compile(r"((release|ci)/)?([-\w.+]+)", re.ASCII)
_MINOR_OF_LABEL = r"-1\.([0-9]+)$"
# Shorter than kubeadm's 10 s: an air-gapped machine that drops packets should not be waited for.
_PATIENCE = 3.0


def normalized(text: str) -> str:
    """``v1.35.4`` for ``1.35.4``; empty for anything that is not a version."""
    if not _VERSION.fullmatch(text):
        return ""
    return text if text.startswith("v") else f"v{text}"


def is_ci(text: str) -> bool:
    match = _PREFIXED.fullmatch(text)
    return match is not None and match.group(2) == "ci"


def acts_as_one_release(environment: Mapping[str, str]) -> bool:
    """Whether the environment says which kubeadm to be, so that its skew rules hold."""
    return bool(environment.get(ACT_AS))


def acting_release(environment: Mapping[str, str], requested: str = "") -> Release:
    """The release to act as: the environment's, else the one of the requested version or label, else the newest."""
    fixed = environment.get(ACT_AS)
    if fixed:
        return release_for(_parse(fixed, f"{ACT_AS}={fixed}"))
    match = _PREFIXED.fullmatch(requested)
    version = normalized(match.group(3)) if match else ""
    if version:
        return _nearest_release(_parse(version, f"kubernetesVersion {requested}"))
    minor = re.search(_MINOR_OF_LABEL, requested)
    if minor and int(minor.group(1)) in KNOWN_PATCHES:
        return release_for(Version(1, int(minor.group(1)), KNOWN_PATCHES[int(minor.group(1))]))
    return release_for(NEWEST)


def resolve(text: str, release: Release, warn: Warn, ask: Ask) -> str:
    """The version that a text stands for, with its ``v``; labels are looked up."""
    version = normalized(text)
    if version:
        return version
    match = _PREFIXED.fullmatch(text)
    if match is None:
        raise ConfigurationError(f'invalid version "{text}": give a version such as v{release.version} or a label such as stable-1')
    server = _CI_SERVER if match.group(2) == "ci" else _RELEASE_SERVER
    version = normalized(match.group(3))
    if version:
        return version
    if not re.fullmatch(_LABEL, match.group(3)):
        raise ConfigurationError(f'version "{text}" doesn\'t match patterns for neither semantic version nor labels (stable, latest, ...)')
    own = f"v{release.version}"
    try:
        remote = ask(f"{server}/{match.group(3)}.txt")
    except OperatorError as error:
        warn(f"could not fetch a Kubernetes version from the internet: {error.message}")
        warn(f"falling back to the local client version: {own}")
        return own
    newest = _parse(remote, f"the answer for {text}")
    if (newest.major, newest.minor) > (release.version.major, release.version.minor):
        label = f"stable-{release.version.major}.{release.version.minor}"
        if text == label:
            # A server that answers for one minor with another one would be asked for ever.
            warn(f"the release server has {remote} for {label}; falling back to the local client version: {own}")
            return own
        warn(f"remote version is much newer: {remote}; falling back to: {label}")
        return resolve(label, release, warn, ask)
    return resolve(remote, release, warn, ask)


def release_server(host: Host) -> Ask:
    """The release servers, as the machine reaches them."""

    def ask(url: str) -> str:
        try:
            return host.fetch_public(url, timeout=_PATIENCE).decode().strip()
        except (OSError, ValueError) as error:
            raise OperatorError(f'unable to get URL "{url}": {error}') from error

    return ask


def assumed(text: str, release: Release) -> str:
    """The text, or the release's own version in place of a label: for those to whom it does not matter what the label means."""
    match = _PREFIXED.fullmatch(text)
    if normalized(text) or match is None or not re.fullmatch(_LABEL, match.group(3)):
        return text
    return f"{match.group(1) or ''}v{release.version}"


def check_supported(version: str, release: Release, warn: Warn, *, fixed: bool) -> Release:
    """The release to act as for a version; refused where the acting kubeadm, or this program, does not deploy it."""
    parsed = _parse(version, "kubernetesVersion")
    if not fixed:
        nearest = _nearest_release(parsed)
        if nearest.minor != parsed.minor:
            warn(f"Kubernetes {version} is newer than the releases that this program knows: acting as v{nearest.version}")
        return nearest
    minimum = Version(release.version.major, release.minor - 1)
    if parsed < minimum:
        raise ConfigurationError(
            f"this version of kubeadm only supports deploying clusters with the control plane version >= {minimum}. "
            f"Current version: {version}"
        )
    return release


def _nearest_release(version: Version) -> Release:
    """The release of a version.  For the minor after the newest known one that stands in, as a kubeadm deploys the next minor, too."""
    if (version.major, version.minor) == (NEWEST.major, NEWEST.minor + 1):
        return release_for(NEWEST)
    return release_for(version)


def _parse(text: str, what: str) -> Version:
    try:
        return Version.parse(text)
    except ValueError:
        raise ConfigurationError(f"couldn't parse Kubernetes version {text!r} ({what}): give one such as v{NEWEST}") from None
