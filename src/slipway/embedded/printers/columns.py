"""The columns of ``kubectl get`` for the kinds that Kubernetes itself serves, and what stands in them.

Columns and texts are those of Kubernetes 1.35's printers.  A kind that has none here shows its name and when it was made, as the
real server does for kinds without a printer.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.duration import human_duration
from slipway.embedded.printers.pods import pod_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest

NONE, UNKNOWN = "<none>", "<unknown>"


class Column(NamedTuple):
    name: str
    type: str = "string"
    priority: int = 0
    format: str = ""

    def definition(self) -> Manifest:
        return {"name": self.name, "type": self.type, "format": self.format, "description": "", "priority": self.priority}


class Printer(NamedTuple):
    columns: tuple[Column, ...]
    cells: Callable[[Manifest, datetime], list[Any]]


def printer_of(group: str, kind: str) -> Printer:
    """How objects of a kind are shown."""
    return _PRINTERS.get((group, kind)) or _PLAIN


def age(text: str | None, now: datetime) -> str:
    """How long ago, to two or three figures."""
    if not text:
        return UNKNOWN
    return human_duration(int((now - datetime.fromisoformat(text)).total_seconds()))


def _columns(text: str) -> tuple[Column, ...]:
    """``Name Ready Data:integer`` and, after a bar, those of ``-o wide``; an underscore is a blank."""
    normal, _, wide = text.partition("|")
    found = []
    for priority, words in ((0, normal.split()), (1, wide.split())):
        for word in words:
            name, _, type_ = word.partition(":")
            found.append(Column(name.replace("_", " "), type_ or "string", priority, "name" if name == "Name" else ""))
    return tuple(found)


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"].get("name", "")
    return name


def _since(manifest: Manifest, now: datetime) -> str:
    return age(manifest["metadata"].get("creationTimestamp"), now)


def _spec(manifest: Manifest) -> Manifest:
    return manifest.get("spec") or {}


def _status(manifest: Manifest) -> Manifest:
    return manifest.get("status") or {}


def _labels(labels: Manifest | None) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def _selector(selector: Manifest | None) -> str:
    """A label selector in its text form."""
    if not selector:
        return NONE
    parts = {key: f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()}
    for rule in selector.get("matchExpressions") or []:
        key, values = rule["key"], ",".join(sorted(rule.get("values") or []))
        operator = rule["operator"]
        shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
        parts[f"{key} {operator}"] = shown[operator]
    return ",".join(parts[key] for key in sorted(parts)) or NONE


def _containers(manifest: Manifest) -> list[Any]:
    """The names and the images of a template's containers."""
    containers = ((_spec(manifest).get("template") or {}).get("spec") or {}).get("containers") or []
    return [",".join(item.get("name", "") for item in containers), ",".join(item.get("image", "") for item in containers)]


def _node_cells(node: Manifest, now: datetime) -> list[Any]:
    ready = next((item for item in _status(node).get("conditions") or [] if item.get("type") == "Ready"), None)
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if _spec(node).get("unschedulable"):
        status += ",SchedulingDisabled"
    labels = node["metadata"].get("labels") or {}
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    roles |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    addresses = {item.get("type"): item.get("address") for item in reversed(_status(node).get("addresses") or [])}
    info = _status(node).get("nodeInfo") or {}
    return [
        *(_name(node), status, ",".join(sorted(roles)) or NONE, _since(node, now), info.get("kubeletVersion", "")),
        *(addresses.get("InternalIP") or NONE, addresses.get("ExternalIP") or NONE),
        *(info.get(field) or UNKNOWN for field in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _event_cells(event: Manifest, now: datetime) -> list[Any]:
    # The same objects in two groups, with other names.
    about = event.get("involvedObject") or event.get("regarding") or {}
    source = event.get("source") or event.get("deprecatedSource") or {}
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first
    count = event.get("count") or event.get("deprecatedCount") or 1
    if series := event.get("series"):
        last, count = series.get("lastObservedTime"), series.get("count") or 0
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    where = source.get("host") or event.get("reportingInstance") or ""
    target = about.get("kind", "").lower() + (f"/{about['name']}" if about.get("name") else "")
    return [
        *(age(last, now), event.get("type", ""), event.get("reason", ""), target, about.get("fieldPath", "")),
        *(", ".join(part for part in (component, where) if part), (event.get("message") or event.get("note") or "").strip()),
        *(age(first, now), count, _name(event)),
    ]


def _service_cells(service: Manifest, now: datetime) -> list[Any]:
    spec = _spec(service)
    ports = [
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in spec.get("ports") or []
    ]
    external = list(spec.get("externalIPs") or [])
    if spec.get("type") == "LoadBalancer":
        ingress = (_status(service).get("loadBalancer") or {}).get("ingress") or []
        external = [item.get("ip") or item.get("hostname") or "" for item in ingress] + external or ["<pending>"]
    elif spec.get("type") == "ExternalName":
        external = [spec.get("externalName", "")]
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    return [
        *(_name(service), spec.get("type", ""), addresses[0], ",".join(external) or NONE, ",".join(ports) or NONE),
        *(_since(service, now), _labels(spec.get("selector"))),
    ]


def _binding_cells(binding: Manifest, now: datetime) -> list[Any]:
    role, subjects = binding.get("roleRef") or {}, binding.get("subjects") or []
    named = {kind: [item.get("name", "") for item in subjects if item.get("kind") == kind] for kind in ("User", "Group")}
    accounts = [f"{item.get('namespace', '')}/{item.get('name', '')}" for item in subjects if item.get("kind") == "ServiceAccount"]
    return [
        *(_name(binding), f"{role.get('kind', '')}/{role.get('name', '')}", _since(binding, now)),
        *(", ".join(named["User"]), ", ".join(named["Group"]), ", ".join(accounts)),
    ]


def _request_cells(request: Manifest, now: datetime) -> list[Any]:
    types = {item.get("type") for item in _status(request).get("conditions") or []}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    state += (",Failed" if "Failed" in types else "") + (",Issued" if _status(request).get("certificate") else "")
    spec = _spec(request)
    asked = human_duration(spec["expirationSeconds"]) if spec.get("expirationSeconds") is not None else NONE
    return [_name(request), _since(request, now), spec.get("signerName") or NONE, spec.get("username", ""), asked, state]


def _deployment_cells(manifest: Manifest, now: datetime) -> list[Any]:
    spec, status = _spec(manifest), _status(manifest)
    return [
        *(_name(manifest), f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"),
        *(status.get("updatedReplicas", 0), status.get("availableReplicas", 0), _since(manifest, now)),
        *(*_containers(manifest), _selector(spec.get("selector"))),
    ]


def _daemon_set_cells(manifest: Manifest, now: datetime) -> list[Any]:
    status = _status(manifest)
    fields = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    nodes = ((_spec(manifest).get("template") or {}).get("spec") or {}).get("nodeSelector")
    return [
        *(_name(manifest), *(status.get(field, 0) for field in fields), _labels(nodes), _since(manifest, now)),
        *(*_containers(manifest), _selector(_spec(manifest).get("selector"))),
    ]


def _replica_set_cells(manifest: Manifest, now: datetime) -> list[Any]:
    status = _status(manifest)
    return [
        *(_name(manifest), _spec(manifest).get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)),
        *(_since(manifest, now), *_containers(manifest), _selector(_spec(manifest).get("selector"))),
    ]


def _stateful_set_cells(manifest: Manifest, now: datetime) -> list[Any]:
    ready = f"{_status(manifest).get('readyReplicas', 0)}/{_spec(manifest).get('replicas', 1)}"
    return [_name(manifest), ready, _since(manifest, now), *_containers(manifest)]


def _budget_cells(manifest: Manifest, now: datetime) -> list[Any]:
    spec = _spec(manifest)
    limits = [str(spec[field]) if spec.get(field) is not None else "N/A" for field in ("minAvailable", "maxUnavailable")]
    return [_name(manifest), *limits, _status(manifest).get("disruptionsAllowed", 0), _since(manifest, now)]


def _counted(manifest: Manifest, *fields: str) -> int:
    return sum(len(manifest.get(field) or ()) for field in fields)


_WORKLOAD = "| Containers Images Selector"
_PLAIN = Printer(
    (Column("Name", format="name"), Column("Created At", "date")), lambda m, now: [_name(m), m["metadata"].get("creationTimestamp")]
)
_WEBHOOKS = Printer(_columns("Name Webhooks:integer Age"), lambda m, now: [_name(m), _counted(m, "webhooks"), _since(m, now)])
_BINDINGS = Printer(_columns("Name Role Age | Users Groups ServiceAccounts"), _binding_cells)
_EVENTS = Printer(
    tuple(
        Column(name, priority=priority, format="name" if name == "Name" else "")
        for name, priority in (
            *(("Last Seen", 0), ("Type", 0), ("Reason", 0), ("Object", 0), ("Subobject", 1), ("Source", 1), ("Message", 0)),
            *(("First Seen", 1), ("Count", 1), ("Name", 1)),
        )
    ),
    _event_cells,
)
_PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "Pod"): Printer(
        _columns("Name Ready Status Restarts Age | IP Node Nominated_Node Readiness_Gates"), lambda m, now: pod_cells(m, now, age)
    ),
    ("", "Node"): Printer(
        _columns("Name Status Roles Age Version | Internal-IP External-IP OS-Image Kernel-Version Container-Runtime"), _node_cells
    ),
    ("", "Namespace"): Printer(_columns("Name Status Age"), lambda m, now: [_name(m), _status(m).get("phase", ""), _since(m, now)]),
    ("", "Secret"): Printer(
        _columns("Name Type Data Age"), lambda m, now: [_name(m), m.get("type", ""), _counted(m, "data"), _since(m, now)]
    ),
    ("", "ConfigMap"): Printer(_columns("Name Data Age"), lambda m, now: [_name(m), _counted(m, "data", "binaryData"), _since(m, now)]),
    ("", "ServiceAccount"): Printer(_columns("Name Age"), lambda m, now: [_name(m), _since(m, now)]),
    ("", "Service"): Printer(_columns("Name Type Cluster-IP External-IP Port(s) Age | Selector"), _service_cells),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("apps", "Deployment"): Printer(_columns("Name Ready Up-to-date Available Age" + _WORKLOAD), _deployment_cells),
    ("apps", "DaemonSet"): Printer(
        _columns("Name Desired:integer Current:integer Ready:integer Up-to-date:integer Available:integer Node_Selector Age" + _WORKLOAD),
        _daemon_set_cells,
    ),
    ("apps", "ReplicaSet"): Printer(_columns("Name Desired:integer Current:integer Ready:integer Age" + _WORKLOAD), _replica_set_cells),
    ("apps", "StatefulSet"): Printer(_columns("Name Ready Age | Containers Images"), _stateful_set_cells),
    ("coordination.k8s.io", "Lease"): Printer(
        _columns("Name Holder Age"), lambda m, now: [_name(m), _spec(m).get("holderIdentity") or "", _since(m, now)]
    ),
    ("policy", "PodDisruptionBudget"): Printer(
        _columns("Name Min_Available Max_Unavailable Allowed_Disruptions:integer Age"), _budget_cells
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDINGS,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDINGS,
    ("certificates.k8s.io", "CertificateSigningRequest"): Printer(
        _columns("Name Age SignerName Requestor RequestedDuration Condition"), _request_cells
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
}
