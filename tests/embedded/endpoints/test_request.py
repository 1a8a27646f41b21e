"""What a request asks for, by the rules of apiserver's RequestInfo."""

from __future__ import annotations

import pytest

from slipway.embedded.access.authorization import Attributes
from slipway.embedded.endpoints.request import parse


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/namespaces", ("list", "", "v1", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/other", ("get", "", "v1", "other", "namespaces", "", "other")),
        ("PUT", "/api/v1/namespaces/other/finalize", ("update", "", "v1", "other", "namespaces", "finalize", "other")),
        ("PUT", "/api/v1/namespaces/other/status", ("update", "", "v1", "other", "namespaces", "status", "other")),
        ("GET", "/api/v1/namespaces/other/pods", ("list", "", "v1", "other", "pods", "", "")),
        ("GET", "/api/v1/namespaces/other/pods/foo", ("get", "", "v1", "other", "pods", "", "foo")),
        ("HEAD", "/api/v1/namespaces/other/pods/foo", ("get", "", "v1", "other", "pods", "", "foo")),
        ("GET", "/api/v1/pods", ("list", "", "v1", "", "pods", "", "")),
        ("POST", "/api/v1/namespaces/other/pods", ("create", "", "v1", "other", "pods", "", "")),
        ("PUT", "/api/v1/namespaces/other/pods/foo/status", ("update", "", "v1", "other", "pods", "status", "foo")),
        ("DELETE", "/api/v1/namespaces/other/pods/foo", ("delete", "", "v1", "other", "pods", "", "foo")),
        ("DELETE", "/api/v1/nodes", ("deletecollection", "", "v1", "", "nodes", "", "")),
        ("DELETE", "/api/v1/namespaces/other/pods", ("deletecollection", "", "v1", "other", "pods", "", "")),
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale", ("patch", "apps", "v1", "n", "deployments", "scale", "d")),
        ("GET", "/apis/a.io/v1beta2/things", ("list", "a.io", "v1beta2", "", "things", "", "")),
        ("GET", "/api/v1/pods?watch=true", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name=foo", ("list", "", "v1", "", "pods", "", "foo")),
        ("GET", "/api/v1/pods?watch=1&fieldSelector=metadata.name=foo", ("watch", "", "v1", "", "pods", "", "foo")),
        ("GET", r"/api/v1/pods?fieldSelector=metadata.namespace!=x\,metadata.name\=foo", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name!=foo", ("list", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name=a/b", ("list", "", "v1", "", "pods", "", "")),
        (
            "GET",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            ("get", "rbac.authorization.k8s.io", "v1", "", "clusterroles", "", "system:node"),
        ),
    ],
)
def test_resources(method: str, path: str, expected: tuple[str, ...]) -> None:
    bare, _, query = path.partition("?")
    info = parse(method, bare, dict(part.split("=", 1) for part in query.split("&")) if query else {})
    verb, group, version, namespace, resource, subresource, name = expected
    assert info == Attributes(verb, bare, group, version, namespace, resource, subresource, name)


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/version", "/healthz/etcd", "/openapi/v3"]
)
def test_paths_that_are_no_resources(path: str) -> None:
    assert parse("GET", path, {}) == Attributes("get", path)
