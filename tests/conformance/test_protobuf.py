"""Bodies in protobuf, as typed Go clients send them: ours are read from what the real server writes."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.api import Answer, Api

from slipway.embedded.endpoints import protobuf
from slipway.embedded.registry import types

Manifest = dict[str, Any]


def in_protobuf(api: Api, path: str) -> bytes:
    """An object as the server writes it in protobuf; the embedded one does not."""
    connection = api._connect()
    try:
        connection.request("GET", path, None, {"Accept": protobuf.MEDIA_TYPE})
        answer = connection.getresponse()
        body = answer.read()
        if answer.getheader("Content-Type") != protobuf.MEDIA_TYPE:
            pytest.skip("this server does not write protobuf")
        return body
    finally:
        connection.close()


def objects(unique: str) -> dict[str, Manifest]:
    """Objects with every kind of field: pointers to zeros, bytes, maps, quantities, times, what is inlined."""
    container = {
        "name": "c",
        "image": "i",
        "env": [{"name": "E", "value": ""}, {"name": "F", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}}],
        "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
        "ports": [{"name": "http", "containerPort": 80}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    pod = {
        "metadata": {"labels": {"a": unique}},
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p", "mode": 256}]}}],
            "tolerations": [{"operator": "Exists", "tolerationSeconds": -1, "effect": "NoExecute"}],
        },
    }
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": unique}}, "template": pod, "strategy": rolling}
    return {
        "/api/v1/namespaces/{}/secrets": {"apiVersion": "v1", "kind": "Secret", "data": {"a": "AP8="}, "immutable": False},
        "/api/v1/namespaces/{}/configmaps": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": ""}, "binaryData": {"b": "AP8="}},
        "/apis/apps/v1/namespaces/{}/deployments": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec},
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases": {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "spec": {"holderIdentity": "h", "renewTime": "2026-01-02T03:04:05.123456Z", "leaseTransitions": 0},
        },
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        },
    }


def filled(manifest: Manifest) -> Any:
    """With the zeros of Go on both sides, and without nulls."""
    type_ = types.definition(manifest["apiVersion"].rpartition("/")[0], manifest["apiVersion"].rpartition("/")[2], manifest["kind"])
    assert type_ is not None
    types.prune(manifest, type_)
    return types.complete(manifest, type_)


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap", "Deployment", "Lease", "Role"])
def test_what_the_server_writes_is_read_as_its_json(api: Api, namespace: str, unique: str, kind: str) -> None:
    ((path, manifest),) = [(path, item) for path, item in objects(unique).items() if item["kind"] == kind]
    path = path.format(namespace)
    api.post(path, {**manifest, "metadata": {"name": unique, "labels": {"l": ""}, "annotations": {"a": "b"}}}).ok()
    seen: list[Any] = []

    def is_one_version(answer: Answer) -> bool:
        """A controller may have written between the two reads."""
        seen[:] = [protobuf.decode(in_protobuf(api, f"{path}/{unique}")), answer.ok()]
        return bool(seen[0]["metadata"]["resourceVersion"] == seen[1]["metadata"]["resourceVersion"])

    api.eventually(f"{path}/{unique}", is_one_version)
    assert filled(seen[0]) == filled(seen[1])
