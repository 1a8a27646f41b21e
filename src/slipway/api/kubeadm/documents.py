"""A configuration file as documents by group, version and kind, and each document as a typed object.

What is checked here is what kubeadm checks before it looks at any value: that every document says what it is, that no
kind comes twice, that the version is one that is still read, and that every field is known, set once and of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.kubeadm import conversion, v1beta3, v1beta4
from slipway.api.machinery import strict
from slipway.api.machinery.errors import ConfigurationError, ValidationError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Object
    from slipway.api.releases import Release

GROUP = "kubeadm.k8s.io"
COMPONENT_KINDS = {
    ("kubelet.config.k8s.io", "v1beta1"): ("KubeletConfiguration", "SerializedNodeConfigSource", "CredentialProviderConfig"),
    ("kubeproxy.config.k8s.io", "v1alpha1"): ("KubeProxyConfiguration",),
}
COMPONENT_VERSIONS = dict(COMPONENT_KINDS.keys())

Warn = Callable[[str], None]

_TYPES: dict[str, dict[str, type[Object]]] = {"v1beta3": v1beta3.KINDS, "v1beta4": v1beta4.KINDS}
API_VERSIONS = tuple(f"{GROUP}/{version}" for version in _TYPES)
"""Those that are read as they are; older ones need a migration."""
_DEPRECATED = ("v1beta3",)
# The last kubeadm that could migrate each of the versions that are no longer read.
_LAST_MIGRATED_BY = {"v1alpha1": "v1.11", "v1alpha2": "v1.12", "v1alpha3": "v1.14", "v1beta1": "v1.15", "v1beta2": "v1.22"}
_MIGRATE = "config migrate --old-config old-config-file --new-config new-config-file"
_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


class GroupVersionKind(NamedTuple):
    """What a document says that it is."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.api_version}, Kind={self.kind}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


class ConfigDocument(NamedTuple):
    """One document of a file."""

    gvk: GroupVersionKind
    content: goyaml.Document


def split(text: str, source: str = "") -> list[ConfigDocument]:
    """The documents of a file, sorted by what they are; ConfigurationError where one does not say, or a kind comes twice."""
    documents: list[ConfigDocument] = []
    twice: list[str] = []
    for content in goyaml.load(text, source):
        gvk = _identify(content)
        if any(gvk.kind == other.gvk.kind for other in documents):
            twice.append(f'{_place(content)}: invalid configuration: kind "{gvk.kind}" is specified twice in YAML file')
        else:
            documents.append(ConfigDocument(gvk, content))
    if twice:
        raise ValidationError(", ".join(twice))
    # kubeadm works through them in this order, so that a ClusterConfiguration is read before the InitConfiguration.
    return sorted(documents, key=lambda document: str(document.gvk))


def of_kind(documents: list[ConfigDocument], kind: str) -> ConfigDocument | None:
    return next((document for document in documents if document.gvk.kind == kind), None)


def refuse_unknown(documents: list[ConfigDocument]) -> None:
    """ConfigurationError for documents that no kubeadm ever knew; old versions get their own sentence later."""
    unknown = [document for document in documents if not is_known(document.gvk) and not is_old(document.gvk)]
    if unknown:
        listed = ", ".join(f"{_place(document.content)}: {document.gvk}" for document in unknown)
        raise ConfigurationError(f"unknown configuration APIs: {listed}")


def is_known(gvk: GroupVersionKind) -> bool:
    if gvk.group == GROUP:
        return gvk.kind in _TYPES.get(gvk.version, ())
    return gvk.kind in COMPONENT_KINDS.get((gvk.group, gvk.version), ())


def is_old(gvk: GroupVersionKind) -> bool:
    """Whether it is of a version of kubeadm's API that only ``config migrate`` reads."""
    return gvk.group == GROUP and gvk.version in _LAST_MIGRATED_BY


def check_version(gvk: GroupVersionKind, warn: Warn | None) -> None:
    """Refuse a version that is no longer read; warn of one that will not be for long, unless ``warn`` is None."""
    if is_old(gvk):
        raise ConfigurationError(
            f'your configuration file uses an old API spec: "{gvk.api_version}" (kind: "{gvk.kind}"), '
            f"which kubeadm {_LAST_MIGRATED_BY[gvk.version]} was the last to convert; run '{_MIGRATE}' to write it in {v1beta4.API_VERSION}"
        )
    if warn is not None and gvk.group == GROUP and gvk.version in _DEPRECATED:
        warn(
            f'your configuration file uses a deprecated API spec: "{gvk.api_version}" (kind: "{gvk.kind}"). '
            f"Run '{_MIGRATE}' to write it in {v1beta4.API_VERSION}"
        )


def decode(document: ConfigDocument, release: Release, problems_are_errors: bool, warn: Warn) -> Object:
    """The typed object of a v1beta3 or v1beta4 document.

    A value of the wrong type is always an error; a field that is unknown or set twice is one only if the caller says so.
    """
    cls = _TYPES[document.gvk.version][document.gvk.kind]
    decoded, problems = strict.decode(cls, document.content)
    problems += _unknown_to_release(decoded, document.content, release)
    report(document, problems, problems_are_errors, warn)
    wrong = list(_malformed(decoded, document.content))
    if wrong:
        raise ConfigurationError(f"{_heading(document)}: {', '.join(wrong)}")
    return decoded


def report(document: ConfigDocument, problems: list[strict.Problem], problems_are_errors: bool, warn: Warn) -> None:
    """Raise or warn of what is wrong in a document, everything in one sentence."""
    if not problems:
        return
    wrong_type = any(problem.kind == "type" for problem in problems)
    listed = ", ".join(f"line {problem.line}: {problem.message}" for problem in problems)
    sentence = f"{_heading(document)}: {'' if wrong_type else 'strict decoding error: '}{listed}"
    if wrong_type or problems_are_errors:
        raise ConfigurationError(sentence)
    warn(sentence)


def _identify(content: goyaml.Document) -> GroupVersionKind:
    value: Any = content.value
    if value is not None and not isinstance(value, dict):
        what = "array" if isinstance(value, list) else "string" if isinstance(value, str) else "scalar"
        raise ConfigurationError(
            f"{_place(content)}: cannot unmarshal {what} into a configuration: it must be a mapping with apiVersion and kind"
        )
    api_version, kind = (value or {}).get("apiVersion") or "", (value or {}).get("kind") or ""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ConfigurationError(f"{_place(content)}: cannot unmarshal apiVersion and kind: they must be strings")
    if api_version.count("/") > 1:
        raise ConfigurationError(f"{_place(content)}: unexpected GroupVersion string: {api_version}")
    group, slash, version = api_version.rpartition("/")
    gvk = GroupVersionKind(group, version if slash or api_version else "", kind)
    if not (gvk.group and gvk.version and gvk.kind):
        raise ConfigurationError(
            f"{_place(content)}: invalid configuration for GroupVersionKind {gvk}: "
            "kind and apiVersion is mandatory information that must be specified"
        )
    return gvk


def _place(content: goyaml.Document) -> str:
    return f"{content.source}:{content.line(())}" if content.source else f"line {content.line(())}"


def _heading(document: ConfigDocument) -> str:
    source = f"{document.content.source}: " if document.content.source else ""
    return f"{source}error unmarshaling configuration {document.gvk}"


def _unknown_to_release(decoded: Object, content: goyaml.Document, release: Release) -> list[strict.Problem]:
    """Fields of v1beta4 that came with a later release than the one that is acted as; they are taken out."""
    problems = []
    if not isinstance(decoded, v1beta4.ClusterConfiguration):
        return []
    external = decoded.etcd.external
    if external is not None and external.http_endpoints and not release.http_etcd_endpoints:
        external.http_endpoints = []
        problems.append(_unknown(content, ("etcd", "external", "httpEndpoints")))
    if not release.env_file_key_ref:
        for path, variable in _environment(decoded):
            if variable.value_from is not None and variable.value_from.file_key_ref is not None:
                variable.value_from.file_key_ref = None
                problems.append(_unknown(content, (*path, "valueFrom", "fileKeyRef")))
    return problems


def _environment(cluster: v1beta4.ClusterConfiguration) -> Iterator[tuple[goyaml.Path, v1beta4.EnvVar]]:
    lists: list[tuple[goyaml.Path, list[v1beta4.EnvVar]]] = [
        (("apiServer",), cluster.api_server.extra_envs),
        (("controllerManager",), cluster.controller_manager.extra_envs),
        (("scheduler",), cluster.scheduler.extra_envs),
    ]
    if cluster.etcd.local is not None:
        lists.append((("etcd", "local"), cluster.etcd.local.extra_envs))
    for path, variables in lists:
        for position, variable in enumerate(variables):
            yield (*path, "extraEnvs", position), variable


def _unknown(content: goyaml.Document, path: goyaml.Path) -> strict.Problem:
    dotted = strict.field_path(path)
    return strict.Problem("unknown", dotted, content.line(path), f'unknown field "{dotted}"')


def _malformed(decoded: Object, content: goyaml.Document) -> Iterator[str]:
    """Texts with a form of their own: bootstrap tokens and times."""
    match decoded:
        case v1beta3.InitConfiguration() | v1beta4.InitConfiguration():
            for position, (token, expires) in enumerate((token.token, token.expires) for token in decoded.bootstrap_tokens):
                if token is not None and not _TOKEN.fullmatch(token):
                    line = content.line(("bootstrapTokens", position, "token"))
                    yield f'line {line}: the bootstrap token "{token}" was not of the form "{_TOKEN.pattern}"'
                yield from _bad_time(expires, content, ("bootstrapTokens", position, "expires"))
            times = [taint.time_added for taint in decoded.node_registration.taints or ()]
        case v1beta3.JoinConfiguration() | v1beta4.JoinConfiguration():
            times = [taint.time_added for taint in decoded.node_registration.taints or ()]
        case _:
            return
    for position, time in enumerate(times):
        yield from _bad_time(time, content, ("nodeRegistration", "taints", position, "timeAdded"))


def _bad_time(text: str | None, content: goyaml.Document, path: goyaml.Path) -> Iterator[str]:
    if text is not None:
        try:
            conversion.utc_time(text)
        except ValueError as error:
            yield f"line {content.line(path)}: {error}"
