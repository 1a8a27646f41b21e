"""The inventory of a host, from what the registration says and what the host said of itself: values in, a manifest out.

A host may say anything.  What decides over it (its pool, its owner, whether it is reset) is not the host's to say.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from slipway.api.cluster.kinds import MACHINE_INVENTORY
from slipway.api.cluster.meta import manifest as plain
from slipway.api.elemental import names, placeholders
from slipway.api.machinery.labels import key_problems, value_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.elemental.inventory import ObservedNetwork
    from slipway.api.elemental.registration import MachineRegistration
    from slipway.api.machinery.objects import Manifest

FINGERPRINT_ANNOTATION = "slipway.io/host-fingerprint"
"""A digest of the serial numbers that the host had when it registered: two hosts that came to have one key are told apart by it."""
EMULATED_TPM = "emulated-tpm"
_SERIALS = (("System Information", "UUID"), ("System Information", "Serial Number"), ("Base Board Information", "Serial Number"))
# What firmware has in the place of a number that nobody filled in.
_UNFILLED = re.compile(
    r"|not (?:specified|available|settable|applicable|present)|none|n/a|default string|to be filled.*|[0f]+(?:-[0f]+)*|x+|1234.*"
)
_PROVIDER_PREFIX = "baremetal.alauda.io/"
_GUARDED_PREFIXES = ("elemental.cattle.io/", _PROVIDER_PREFIX, "cluster.x-k8s.io/", "slipway.io/", "kubernetes.io/", "k8s.io/")
# Secrets that are found by their names: those of clusters, of the makers of TPMs, of SeedImages, of the platform's registry.
# A host may write to the Secret of its own name, which must not be one of them.
_TRUSTED_SECRETS = re.compile(r".*-(?:ca|etcd|sa|proxy|apiserver-etcd-client|kubeconfig|seed)|platform-registry")
_LONGEST_ANNOTATION = 1024
_MOST = 64


class Identity(NamedTuple):
    """Who the host proved, or said, to be."""

    field: str
    """Of spec: tpmHash or machineHash."""
    hashed: str
    auth: str


class Said(msgspec.Struct):
    """What a host said of itself so far."""

    values: dict[str, Any] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    network: ObservedNetwork | None = None


def name(registration: MachineRegistration, identity: Identity, said: Said, attempt: int = 0) -> str:
    """The name of a new host: by chance only as far as its identity leaves it to chance, so that any replica gives it the same one.

    ``attempt`` counts the names that other hosts had already.
    """
    seed = f"{registration.metadata['namespace']} {identity.field} {identity.hashed} {attempt}"
    found = placeholders.machine_name(registration.spec.machine_name, said.values, seed)
    return f"{found}-host" if _TRUSTED_SECRETS.fullmatch(found) else found


def create(registration: MachineRegistration, identity: Identity, said: Said, attempt: int = 0) -> Manifest:
    """The inventory of a host that is new."""
    metadata = registration.metadata
    spec: Manifest = {identity.field: identity.hashed}
    if registration.spec.config.network:
        wanted = registration.spec.config.network
        spec["network"] = {"configurator": wanted.configurator or "none", "config": wanted.config}
    made: Manifest = {
        "apiVersion": MACHINE_INVENTORY.api_version,
        "kind": MACHINE_INVENTORY.kind,
        "metadata": {
            "name": name(registration, identity, said, attempt),
            "namespace": metadata["namespace"],
            "finalizers": [names.MACHINE_INVENTORY_FINALIZER],
            "annotations": {names.RESETTABLE_ANNOTATION: str(registration.spec.config.elemental.reset.enabled).lower()},
        },
        "spec": spec,
    }
    return update(made, registration, identity, said)


def update(inventory: Manifest, registration: MachineRegistration, identity: Identity, said: Said) -> Manifest:
    """The inventory with what the host says now; what the registration's templates do not name stays as it is."""
    metadata, spec = inventory["metadata"], inventory.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if said.annotations:
        # What it said of its operating system before it says again, or is so no longer.
        annotations = {key: value for key, value in annotations.items() if not key.startswith(names.OS_ANNOTATION_PREFIX)}
    origin = str(registration.metadata["name"])
    labels = {
        **labels,
        **host_labels(said.labels, labels),
        **placeholders.fill_labels(registration.spec.machine_inventory_labels, said.values, labels),
        **({names.REGISTRATION_LABEL: origin} if not value_problems(origin) else {}),
    }
    # Which pool and which machine a host is of may have changed since it registered: that is never begun anew.
    templates = {
        key: template
        for key, template in registration.spec.machine_inventory_annotations.items()
        if key not in annotations or not key.startswith(_PROVIDER_PREFIX)
    }
    seen = fingerprint(said.values)
    annotations = {
        **annotations,
        **host_annotations(said.annotations),
        **placeholders.fill_annotations(templates, said.values, annotations),
        names.AUTH_ANNOTATION: _auth(identity, said.annotations),
        **({FINGERPRINT_ANNOTATION: seen} if seen else {}),
    }
    if said.network is not None:
        spec = {**spec, "observedNetwork": plain(said.network)}
    return {**inventory, "metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": spec}


def host_labels(given: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    """Of the labels that a host brings those that it may: none of ours or of Kubernetes, none that somebody has set otherwise, and no more
    than there is room for, however often it comes."""
    found = {
        key: value
        for key, value in given.items()
        if not _is_guarded(key) and key not in present and not key_problems(key) and not value_problems(value)
    }
    return dict(list(found.items())[: max(_MOST - len(present), 0)])


def host_annotations(given: Mapping[str, str]) -> dict[str, str]:
    """Of the annotations that a host brings those in which it speaks of itself; elemental-register sends their names without the prefix."""
    told = {names.REGISTRATION_IP_ANNOTATION, names.REGISTRATION_VERSION_ANNOTATION}
    whole = {key if "/" in key else f"{names.GROUP_PREFIX}/{key}": value for key, value in given.items()}
    found = {
        key: value[:_LONGEST_ANNOTATION]
        for key, value in whole.items()
        if (key in told or key.startswith(names.OS_ANNOTATION_PREFIX)) and not key_problems(key)
    }
    return dict(list(found.items())[:_MOST])


def fingerprint(values: Mapping[str, Any]) -> str:
    """A digest of the host's serial numbers; empty where it has none that would tell it from another."""
    found = [_serial(values, *path) for path in _SERIALS]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:32] if any(found) else ""


def other_host(inventory: Manifest, identity: Identity, values: Mapping[str, Any]) -> bool:
    """Whether the inventory was registered by a host with other serial numbers.  One that is believed who it is must at least know them."""
    known = (inventory["metadata"].get("annotations") or {}).get(FINGERPRINT_ANNOTATION, "")
    seen = fingerprint(values)
    believed = identity.auth != names.AUTH_TPM
    return bool(known) and known != seen and (bool(seen) or believed)


def _auth(identity: Identity, annotations: Mapping[str, str]) -> str:
    """How the host proved who it is; only the host knows that its TPM is one in software."""
    told = annotations.get(names.AUTH_ANNOTATION)
    return EMULATED_TPM if identity.auth == names.AUTH_TPM and told == EMULATED_TPM else identity.auth


def _serial(values: Mapping[str, Any], structure: str, name: str) -> str:
    found = values.get(structure)
    value = found.get(name) if isinstance(found, dict) else None
    text = value.strip().lower() if isinstance(value, str) else ""
    return "" if _UNFILLED.fullmatch(text) else text[:256]


def _is_guarded(key: str) -> bool:
    prefix, slash, _ = key.partition("/")
    return bool(slash) and any(f"{prefix}/" == guarded or f"{prefix}/".endswith(f".{guarded}") for guarded in _GUARDED_PREFIXES)
