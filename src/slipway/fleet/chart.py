"""The parts of the Helm chart that follow from the code: CRDs, permissions, the manager and its webhooks, as Helm templates.

They are what ``slipway manager manifests`` prints, with the release's namespace and its values in the place of what is not known before
an installation, and each only where its controllers are chosen.  What is written by hand is in the chart: values, and the catalog.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.yaml.write import dump
from slipway.fleet import registry
from slipway.fleet.inventory import options as hosts
from slipway.fleet.manifests import DASHBOARD, DASHBOARD_PORT, DASHBOARD_SERVICE, INVENTORY, NAME, Installation, manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.registry import Declarations

FOLDER = "templates/generated"
_HEADER = "{{/* Made by `make chart` from the controllers' own declarations. */}}\n"
# They stand for what Helm fills in; nothing else in a manifest looks like them.
_NAMESPACE, _IMAGE, _CONTROLLERS, _FLAGS = "chart-namespace", "chart-image", "chart-controllers", "--chart-flags"
_SUFFIX = '{{ include "slipway.suffix" . }}'
_KEPT = {"helm.sh/resource-policy": "keep"}


def files() -> dict[str, str]:
    """The generated files by their paths in the chart."""
    declared = {name: registry.declarations([name]) for name in registry.NAMES if name != registry.ALL}
    parts = {name: manifests(_installation(each)) for name, each in declared.items()}
    made = {
        "namespaces.yaml": _namespaces(declared),
        "manager.yaml": _manager(),
        "dashboard.yaml": _dashboard(),
        "webhooks.yaml": "".join(_configuration(kind, parts) for kind in _CONFIGURATIONS),
    }
    for name, each in parts.items():
        kept = [_annotated(manifest, _KEPT) for manifest in each if manifest["kind"] == "CustomResourceDefinition"]
        made[f"crds-{name}.yaml"] = _where([name], "".join(f"---\n{_json(each)}\n" for each in kept))
        made[f"permissions-{name}.yaml"] = _where([name], _documents(_roles(name, each, declared[name])))
    return {f"{FOLDER}/{path}": _HEADER + text for path, text in made.items()}


def _installation(declared: Declarations) -> Installation:
    return Installation(
        rules=declared.rules,
        crds=declared.crds,
        webhooks=declared.webhooks,
        controllers=declared.names,
        image=_IMAGE,
        leases=declared.leases,
        works_with_providers=declared.works_with_providers,
        namespace=_NAMESPACE,
    )


_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def _namespaces(declared: dict[str, Declarations]) -> str:
    """Those of leases, where the release is not in them itself and the chart may make them."""
    of: dict[str, list[str]] = {}
    for name, each in declared.items():
        for lease in each.leases:
            of.setdefault(lease.namespace, []).append(name)
    out = ""
    for namespace, names in of.items():
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "annotations": _KEPT}}
        guard = f'{{{{- if and .Values.namespaces.create (ne .Release.Namespace "{namespace}") }}}}\n'
        out += _where(names, f"{guard}{_documents([manifest])}{{{{- end }}}}\n")
    return out


def _roles(name: str, made: Iterable[Manifest], declared: Declarations) -> list[Manifest]:
    """The permissions of one of the controllers, under names that tell them from the others'."""
    homes = {lease.namespace for lease in declared.leases}

    def own(text: str) -> str:
        return text.replace(NAME, f"{NAME}-{name}", 1)

    out = []
    for manifest in made:
        kind, metadata = manifest["kind"], manifest["metadata"]
        if kind not in ("ClusterRole", "ClusterRoleBinding") and (
            kind not in ("Role", "RoleBinding") or metadata["namespace"] not in homes
        ):
            continue
        renamed = {**manifest, "metadata": {**metadata, "name": own(metadata["name"])}}
        if "roleRef" in manifest:
            renamed["roleRef"] = {**manifest["roleRef"], "name": own(manifest["roleRef"]["name"])}
        out.append(renamed)
    return out


def _everything() -> list[Manifest]:
    """What there is once, whichever controllers are chosen."""
    return manifests(
        Installation(
            rules=(),
            crds=(),
            webhooks=(),
            controllers=(INVENTORY,),
            image=_IMAGE,
            namespace=_NAMESPACE,
            registration_flags=(_FLAGS,),
            dashboard=True,
        )
    )


def _manager() -> str:
    """The account, its certificates, the Services and the Deployment."""
    wanted = ("ServiceAccount", "Role", "RoleBinding", "Service")
    made = [each for each in _everything() if not _is_of_dashboard(each)]
    services = [each for each in made if each["kind"] in wanted and each["metadata"]["name"] != hosts.SERVICE]
    (registration,) = [each for each in made if each["metadata"]["name"] == hosts.SERVICE]
    (deployment,) = [each for each in made if each["kind"] == "Deployment"]
    return _documents(services) + _where([INVENTORY], _reachable(registration, "registration")) + _deployment(deployment)


def _dashboard() -> str:
    """The web page's permissions and its Service, where values want it."""
    made = [each for each in _everything() if _is_of_dashboard(each)]
    (service,) = [each for each in made if each["kind"] == "Service"]
    return _if_dashboard(_documents(each for each in made if each is not service) + _reachable(service, "dashboard"))


def _is_of_dashboard(manifest: Manifest) -> bool:
    return manifest["metadata"]["name"] in (f"{DASHBOARD}-{_NAMESPACE}", DASHBOARD_SERVICE)


def _if_dashboard(text: str) -> str:
    return f"{{{{- if .Values.dashboard.enabled }}}}\n{text}{{{{- end }}}}\n"


def _reachable(service: Manifest, values: str) -> str:
    """Hosts and people are outside of the cluster: how a Service is reached from there, values say."""
    text = _documents([service])
    annotations = "  annotations:\n{{ toYaml . | indent 4 }}\n  {{- end }}\n"
    text = text.replace("metadata:\n", f"metadata:\n  {{{{- with .Values.{values}.service.annotations }}}}\n{annotations}", 1)
    return text.rstrip("\n") + f"\n  type: {{{{ .Values.{values}.service.type }}}}\n"


def _deployment(deployment: Manifest) -> str:
    """The Deployment with what values say; what serves hosts, only where hosts register."""
    text = _documents([deployment])
    flag = f"{hosts.FLAG}=:{hosts.PORT}"
    text = text.replace(f"--controllers={INVENTORY}", f"--controllers={_CONTROLLERS}")
    text = _wrapped(text, rf"( *)- {re.escape(flag)}\n", _if_inventory)
    text = _wrapped(text, _port("registration"), _if_inventory)
    text = _wrapped(text, rf"( *)- --dashboard-bind-address=:{DASHBOARD_PORT}\n", _if_dashboard)
    text = _wrapped(text, _port("dashboard"), _if_dashboard)
    text = re.sub(rf"( *)- {_FLAGS}\n", lambda found: _FLAG_LINES.replace("\n", f"\n{found[1]}").rstrip(" "), text)
    text = text.replace("replicas: 1\n", "replicas: {{ .Values.replicas }}\n")
    text = text.replace(f"image: {_IMAGE}\n", 'image: {{ include "slipway.image" . | quote }}\n{pull}'.replace("{pull}", _PULL))
    text = text.replace(_CONTROLLERS, '{{ join "," .Values.controllers }}')
    text = _wrapped(text, r"( *)- mountPath: /tmp\n *name: work\n", lambda found: found + _if_claim(_MOUNT))
    text = text.replace("        runAsNonRoot: true\n", _if_claim("        fsGroup: 65532\n") + "        runAsNonRoot: true\n")
    text = text.rstrip("\n") + "\n" + _if_claim(_CLAIM)
    return re.sub(r"( *)resources:\n(?:\1 +.*\n)+", lambda found: f"{found[1]}resources: {{{{ toJson .Values.resources }}}}\n", text)


# The folder for snapshots of etcd, and the claim that is mounted there.
_MOUNT = "        - mountPath: /var/lib/slipway/snapshots\n          name: snapshots\n"
_CLAIM = """      - name: snapshots
        persistentVolumeClaim:
          claimName: {{ .Values.snapshots.persistentVolumeClaim | quote }}
"""


def _if_claim(text: str) -> str:
    return f"{{{{- if .Values.snapshots.persistentVolumeClaim }}}}\n{text}{{{{- end }}}}\n"


_PULL = "        imagePullPolicy: {{ .Values.image.pullPolicy }}\n"
_FLAG_LINES = """{{- range include "slipway.flags" . | fromYamlArray }}
- {{ . | quote }}
{{- end }}
"""


def _port(name: str) -> str:
    return rf"( *)- containerPort: [0-9]+\n *name: {name}\n *protocol: TCP\n"


def _if_inventory(text: str) -> str:
    return _where([INVENTORY], text)


def _wrapped(text: str, pattern: str, condition: Callable[[str], str]) -> str:
    return re.sub(pattern, lambda found: condition(found[0]), text)


def _configuration(kind: str, parts: dict[str, list[Manifest]]) -> str:
    """One object for all webhooks of its sort, with those of the chosen controllers."""
    found = {name: next((each for each in made if each["kind"] == kind), None) for name, made in parts.items()}
    some = {name: each for name, each in found.items() if each is not None}
    head = {key: value for key, value in next(iter(some.values())).items() if key != "webhooks"}
    text = _documents([head]) + "webhooks:\n"
    for name, each in some.items():
        text += _where([name], _text(each["webhooks"]))
    return _where(list(some), text)


def _where(names: Sequence[str], text: str) -> str:
    """The text where one of the controllers is chosen."""
    chosen = " ".join(f'(has "{name}" .Values.controllers)' for name in (registry.ALL, *names))
    return f"{{{{- if or {chosen} }}}}\n{text}{{{{- end }}}}\n"


def _documents(made: Iterable[Manifest]) -> str:
    return "".join(f"---\n{_text(manifest)}" for manifest in made)


def _text(content: object) -> str:
    """YAML in which Helm finds the release's namespace; braces of the content's own are kept from it."""
    text = re.sub(r"\{\{", '{{ "{{" }}', dump(content))
    text = text.replace(f"-{_NAMESPACE}", _SUFFIX)
    text = re.sub(rf"{_NAMESPACE}$", "{{ .Release.Namespace | quote }}", text, flags=re.MULTILINE)
    return text.replace(_NAMESPACE, "{{ .Release.Namespace }}")


def _json(content: object) -> str:
    """The same as JSON, which is YAML, too: a CRD is long, and read by nobody but the API server."""
    text = msgspec.json.format(msgspec.json.encode(content), indent=1).decode().replace("{{", '{{ "{{" }}')
    return text.replace(f'"{_NAMESPACE}"', "{{ .Release.Namespace | quote }}")


def _annotated(manifest: Manifest, annotations: dict[str, str]) -> Manifest:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}}
