"""What is particular about some built-in kinds: their defaults, what the server fills in, and what it refuses.

Kinds that are not named here are taken as they come.  A strategy changes the manifest that it is given.
"""

from __future__ import annotations

import copy
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING

from slipway.embedded import errors
from slipway.embedded.access.authentication import NOBODY, User
from slipway.embedded.apiextensions import resources
from slipway.embedded.errors import FieldError
from slipway.embedded.registry import pods
from slipway.embedded.webhooks import conditions

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.registry.resources import Resource


_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_LONGEST_KEY = 253
_LARGEST_SECRET = 1024 * 1024


class Strategy:
    """The rules of a kind with nothing particular about it."""

    keeps_status = False
    """Whether a new object may come with a status though the kind has a status sub-resource."""

    def default(self, manifest: Manifest) -> None:
        """Fill in what users leave out; on create and on update."""

    def prepare_create(self, manifest: Manifest, user: User) -> None:
        """Fill in what only the server decides."""

    def prepare_update(self, new: Manifest, old: Manifest) -> None:
        """Keep what an update may not change."""

    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        """What is wrong with an object, and with it as a successor."""
        del new, old
        return []

    def grace_period(self, manifest: Manifest, seconds: int | None) -> int | None:
        """How long the deletion of an object waits for who runs it; None where deletion is at once."""
        del manifest, seconds
        return None


class _Namespace(Strategy):
    def default(self, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata.get("name") or ""}

    def prepare_create(self, manifest: Manifest, user: User) -> None:
        finalizers = (manifest.get("spec") or {}).get("finalizers") or []
        manifest["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}
        manifest["status"] = {"phase": "Active"}

    def prepare_update(self, new: Manifest, old: Manifest) -> None:
        new["spec"] = copy.deepcopy(old.get("spec") or {})


class _Secret(Strategy):
    def default(self, manifest: Manifest) -> None:
        manifest["type"] = manifest.get("type") or "Opaque"
        given = manifest.pop("stringData", None) or {}
        if given:
            data = manifest.get("data") or {}
            manifest["data"] = {**data, **{key: b64encode(str(value).encode()).decode() for key, value in given.items()}}
        for value in (manifest.get("data") or {}).values():
            try:
                b64decode(value or "", validate=True)
            except (Base64Error, ValueError, TypeError):
                raise errors.bad_request(
                    f'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte {_first_bad(str(value))}'
                ) from None
        if manifest.get("data") == {}:
            del manifest["data"]

    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        found = _key_errors(new, "data")
        if sum(len(b64decode(value or "")) for value in (new.get("data") or {}).values()) > _LARGEST_SECRET:
            found.append(FieldError.too_long("data", _LARGEST_SECRET))
        if new.get("type") == "kubernetes.io/tls":
            found += [FieldError.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in (new.get("data") or {})]
        if old is None:
            return found
        if new.get("type") != old.get("type"):
            found.append(FieldError.invalid("type", new.get("type"), "field is immutable"))
        return found + _immutable_errors(new, old, ("data",))


def _first_bad(value: str) -> int:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
    return next((index for index, sign in enumerate(value) if sign not in alphabet), len(value) // 4 * 4)


class _ConfigMap(Strategy):
    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        found = _key_errors(new, "data") + _key_errors(new, "binaryData")
        return found if old is None else found + _immutable_errors(new, old, ("data", "binaryData"))


def _key_errors(manifest: Manifest, field: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key in manifest.get(field) or ():
        if len(found) >= errors.MOST:
            break
        problems = [f"must be no more than {_LONGEST_KEY} bytes"] if len(key) > _LONGEST_KEY else []
        if not _KEY.fullmatch(key):
            problems.append(_KEY_RULE)
        if key in (".", "..") or key.startswith(".."):
            problems.append(f"must not be '{key}'" if key in (".", "..") else "must not start with '..'")
        found += [FieldError.invalid(f"{field}[{key}]", key, problem) for problem in problems]
    return found


def _immutable_errors(new: Manifest, old: Manifest, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    found = [] if new.get("immutable") else [FieldError.forbidden("immutable", detail)]
    return found + [FieldError.forbidden(field, detail) for field in fields if (new.get(field) or {}) != (old.get(field) or {})]


class _Pod(Strategy):
    def default(self, manifest: Manifest) -> None:
        spec = manifest.setdefault("spec", {})
        pods.default(spec)
        spec.setdefault("enableServiceLinks", True)

    def prepare_create(self, manifest: Manifest, user: User) -> None:
        pods.admit(manifest["spec"])
        manifest["status"] = {"phase": "Pending", "qosClass": pods.qos_class(manifest["spec"])}

    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        return pods.errors(new["spec"], "spec") if old is None else []

    def grace_period(self, manifest: Manifest, seconds: int | None) -> int | None:
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        period = spec.get("terminationGracePeriodSeconds", 30) if seconds is None else seconds
        if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
            return 0
        return max(int(period), 0)


class _Workload(Strategy):
    """Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs: a Pod template and a selector."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def default(self, manifest: Manifest) -> None:
        spec = manifest.setdefault("spec", {})
        for field, value in pods.WORKLOAD_DEFAULTS.get(self._kind, {}).items():
            spec.setdefault(field, copy.deepcopy(value))
        pods.default(spec.setdefault("template", {}).setdefault("spec", {}))

    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        spec = new["spec"]
        if self._kind == "Job":
            return []
        found: list[FieldError] = []
        if "selector" not in spec:
            found.append(FieldError.required("spec.selector"))
        if old is not None and spec.get("selector") != old["spec"].get("selector"):
            found.append(FieldError.invalid("spec.selector", spec.get("selector"), "field is immutable"))
        else:
            labels = (spec["template"].get("metadata") or {}).get("labels") or {}
            wanted = (spec.get("selector") or {}).get("matchLabels") or {}
            if "selector" not in spec or any(labels.get(key) != value for key, value in wanted.items()):
                detail = "`selector` does not match template `labels`"
                found.append(FieldError.invalid("spec.template.metadata.labels", labels, detail))
        return found + pods.errors(spec["template"]["spec"], "spec.template.spec")


class _Service(Strategy):
    def default(self, manifest: Manifest) -> None:
        spec = manifest.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))

    def prepare_create(self, manifest: Manifest, user: User) -> None:
        manifest["status"] = {"loadBalancer": {}}


class _Event(Strategy):
    """Times that are not set are written as null."""

    def prepare_create(self, manifest: Manifest, user: User) -> None:
        names = (
            ("firstTimestamp", "lastTimestamp")
            if manifest["apiVersion"] == "v1"
            else ("deprecatedFirstTimestamp", "deprecatedLastTimestamp")
        )
        for name in (*names, "eventTime"):
            manifest.setdefault(name, None)

    def prepare_update(self, new: Manifest, old: Manifest) -> None:
        self.prepare_create(new, NOBODY)


class _Node(Strategy):
    keeps_status = True


class _CertificateSigningRequest(Strategy):
    def default(self, manifest: Manifest) -> None:
        manifest.setdefault("spec", {}).setdefault("usages", ["digital signature", "key encipherment"])

    def prepare_create(self, manifest: Manifest, user: User) -> None:
        manifest["spec"].update(username=user.name, groups=list(user.groups), **({"uid": user.uid} if user.uid else {}))

    def prepare_update(self, new: Manifest, old: Manifest) -> None:
        new["spec"] = copy.deepcopy(old["spec"])


class _CustomResourceDefinition(Strategy):
    def default(self, manifest: Manifest) -> None:
        resources.default(manifest)

    def prepare_create(self, manifest: Manifest, user: User) -> None:
        versions = resources.stored_versions(manifest["spec"], {})
        manifest["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": versions}

    def prepare_update(self, new: Manifest, old: Manifest) -> None:
        status = new.get("status") or {}
        new["status"] = {**status, "storedVersions": resources.stored_versions(new["spec"], status)}

    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        found = resources.errors(new)
        return found + ([] if old is None else resources.update_errors(new, old))


class _Lease(Strategy):
    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        spec = new.get("spec") or {}
        found: list[FieldError] = []
        if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
            found.append(FieldError.invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
        if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
            detail = "must be greater than or equal to 0"
            found.append(FieldError.invalid("spec.leaseTransitions", spec["leaseTransitions"], detail))
        return found


class _RoleBinding(Strategy):
    def default(self, manifest: Manifest) -> None:
        reference = manifest.get("roleRef") or {}
        reference.setdefault("apiGroup", "rbac.authorization.k8s.io")
        for subject in manifest.get("subjects") or ():
            if subject.get("kind") in ("User", "Group"):
                subject.setdefault("apiGroup", "rbac.authorization.k8s.io")

    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        if old is not None and new.get("roleRef") != old.get("roleRef"):
            return [FieldError.invalid("roleRef", new.get("roleRef"), "cannot change roleRef")]
        return []


class _WebhookConfiguration(Strategy):
    def errors(self, new: Manifest, old: Manifest | None) -> list[FieldError]:
        return conditions.errors(new, old)


_PLAIN = Strategy()
_STRATEGIES: dict[str, Strategy] = {
    "namespaces": _Namespace(),
    "nodes": _Node(),
    "events": _Event(),
    "secrets": _Secret(),
    "configmaps": _ConfigMap(),
    "pods": _Pod(),
    "services": _Service(),
    "deployments.apps": _Workload("Deployment"),
    "replicasets.apps": _Workload("ReplicaSet"),
    "daemonsets.apps": _Workload("DaemonSet"),
    "statefulsets.apps": _Workload("StatefulSet"),
    "jobs.batch": _Workload("Job"),
    "leases.coordination.k8s.io": _Lease(),
    "certificatesigningrequests.certificates.k8s.io": _CertificateSigningRequest(),
    "customresourcedefinitions.apiextensions.k8s.io": _CustomResourceDefinition(),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WebhookConfiguration(),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WebhookConfiguration(),
    "rolebindings.rbac.authorization.k8s.io": _RoleBinding(),
    "clusterrolebindings.rbac.authorization.k8s.io": _RoleBinding(),
}


def of(resource: Resource) -> Strategy:
    return _STRATEGIES.get(resource.bucket, _PLAIN)
