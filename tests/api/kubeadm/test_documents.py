"""Files as documents; the first table is kubeadm's app/util/config/strict/testdata, the second app/util/config/common_test.go."""

from __future__ import annotations

import pytest

from slipway.api import components
from slipway.api.kubeadm import conversion, documents, v1beta4
from slipway.api.kubeadm.documents import GroupVersionKind
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for

pytestmark = pytest.mark.upstream_table

RELEASE = release_for(Version(1, 35, 4))
KUBEADM = "apiVersion: kubeadm.k8s.io/v1beta4\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
PROXY = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
CLUSTER, INIT, JOIN = (f"{KUBEADM}kind: {kind}Configuration\n" for kind in ("Cluster", "Init", "Join"))
TOKEN = '- token: "9a08jv.c0izixklcxtmnze7"\n'


def strictly(text: str) -> None:
    (document,) = documents.split(text)
    if document.gvk.group in documents.COMPONENT_VERSIONS:
        _, problems = components.load(document.content, RELEASE)
        documents.report(document, problems, True, pytest.fail)
    else:
        documents.decode(document, RELEASE, True, pytest.fail)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{CLUSTER}ControlPlaneEndpoint: test1\n", 'line 3: unknown field "ControlPlaneEndpoint"'),
        (f"{CLUSTER}controlPlaneEndpoint: test1\ncontrolPlaneEndpoint: test2\n", 'line 4: .*"controlPlaneEndpoint" already set'),
        (f"{INIT}bootstrapTokens:\n{TOKEN}bootstrapTokens:\n{TOKEN}", 'line 5: .*"bootstrapTokens" already set'),
        (f"{JOIN}caCertPath: relativepath\ncaCertPath: relativepath\n", 'line 4: .*"caCertPath" already set'),
        (f"{KUBELET}address: 1.2.3.4\naddress: 1.2.3.4\n", 'line 4: .*"address" already set'),
        (f'{PROXY}portRange: ""\nportRange: ""\n', 'line 4: .*"portRange" already set'),
        (f"{CLUSTER}unknownField: test\n", 'line 3: unknown field "unknownField"'),
        (f"{INIT}unknownField: test\n", 'line 3: unknown field "unknownField"'),
        (f"{JOIN}unknownField: test\n", 'line 3: unknown field "unknownField"'),
        (f"{KUBELET}unknownField: unknown\n", 'line 3: unknown field "unknownField"'),
        (f"{PROXY}unknownField: unknown\n", 'line 3: unknown field "unknownField"'),
    ],
)
def test_what_strict_decoding_refuses(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"strict decoding error: .*{problem}"):
        strictly(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{CLUSTER}controlPlaneEndpoint: 202.0.100.1\n",
        f"{INIT}bootstrapTokens:\n{TOKEN}",
        f"{JOIN}caCertPath: relativepath\n",
        f"{KUBELET}address: 1.2.3.4\n",
        f'{PROXY}portRange: ""\n',
    ],
)
def test_what_strict_decoding_accepts(text: str) -> None:
    strictly(text)


def test_all_problems_are_listed_with_their_lines_in_the_file() -> None:
    text = f"{KUBELET}---\n{CLUSTER}foo: 1\nnetworking:\n  podsubnet: x\nclusterName: [1]\n"
    cluster = documents.of_kind(documents.split(text, "c.yaml"), "ClusterConfiguration")
    assert cluster is not None
    with pytest.raises(ConfigurationError) as caught:
        documents.decode(cluster, RELEASE, True, pytest.fail)
    for part in (
        "c.yaml: ",
        'line 6: unknown field "foo"',
        'line 8: unknown field "networking.podsubnet"',
        "line 9: cannot unmarshal list",
    ):
        assert part in caught.value.message


@pytest.mark.parametrize(
    ("group", "version", "kind", "refused"),
    [
        ("kubeadm.k8s.io", "v1alpha1", "InitConfiguration", True),
        ("kubeadm.k8s.io", "v1alpha2", "InitConfiguration", True),
        ("kubeadm.k8s.io", "v1alpha3", "InitConfiguration", True),
        ("kubeadm.k8s.io", "v1beta1", "InitConfiguration", True),
        ("kubeadm.k8s.io", "v1beta2", "InitConfiguration", True),
        ("kubeadm.k8s.io", "v1beta3", "ClusterConfiguration", False),
        ("foo.k8s.io", "v1", "InitConfiguration", False),
        ("kubeadm.k8s.io", "v1beta4", "ResetConfiguration", False),
    ],
)
def test_versions_that_are_no_longer_read(group: str, version: str, kind: str, refused: bool) -> None:
    gvk = GroupVersionKind(group, version, kind)
    if refused:
        with pytest.raises(ConfigurationError, match="old API spec"):
            documents.check_version(gvk, None)
    else:
        documents.check_version(gvk, None)


def test_only_a_deprecated_version_is_warned_of() -> None:
    warnings: list[str] = []
    for version in ("v1beta3", "v1beta4"):
        documents.check_version(GroupVersionKind("kubeadm.k8s.io", version, "InitConfiguration"), warnings.append)
    assert len(warnings) == 1
    assert '"kubeadm.k8s.io/v1beta3" (kind: "InitConfiguration")' in warnings[0]


def test_documents_come_in_the_order_of_what_they_are() -> None:
    kinds = [document.gvk.kind for document in documents.split(f"{INIT}---\n{PROXY}---\n{CLUSTER}---\n{KUBELET}")]
    assert kinds == ["ClusterConfiguration", "InitConfiguration", "KubeletConfiguration", "KubeProxyConfiguration"]


def test_an_empty_file_has_no_documents() -> None:
    assert documents.split("") == []


@pytest.mark.parametrize("text", ["\n", "# license\n", "---\n", f"{INIT}---\n\n---\n"])
def test_a_document_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="kind and apiVersion is mandatory information"):
        documents.split(text)


@pytest.mark.parametrize(("minor", "known"), [(33, False), (34, False), (35, True), (36, True)])
def test_http_endpoints_are_known_since_1_35(minor: int, known: bool) -> None:
    text = f"{CLUSTER}etcd:\n  external:\n    endpoints: [a]\n    httpEndpoints: [b]\n"
    (document,) = documents.split(text)
    warnings: list[str] = []
    decoded = documents.decode(document, release_for(Version(1, minor, 0)), False, warnings.append)
    assert isinstance(decoded, v1beta4.ClusterConfiguration)
    assert decoded.etcd.external is not None
    assert decoded.etcd.external.http_endpoints == (["b"] if known else [])
    assert any('line 6: unknown field "etcd.external.httpEndpoints"' in warning for warning in warnings) == (not known)


ENVIRONMENT = f"{CLUSTER}apiServer:\n  extraEnvs:\n  - name: A\n    valueFrom:\n      resourceFieldRef:\n        divisor: "
DIVISOR = r"line 8: apiServer\.extraEnvs\[0\]\.valueFrom\.resourceFieldRef\.divisor: "


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            f"{INIT}bootstrapTokens:\n{TOKEN}  expires: 9999-12-31T23:59:59-23:59\n",
            r'line 5: bootstrapTokens\[0\]\.expires: parsing time "9999-12-31T23:59:59-23:59": in UTC it is outside of the years 1 to 9999',
        ),
        (
            f"{JOIN}nodeRegistration:\n  taints:\n  - timeAdded: 0001-01-01T00:00:00+00:01\n",
            r'line 5: nodeRegistration\.taints\[0\]\.timeAdded: parsing time "0001-01-01T00:00:00\+00:01": in UTC',
        ),
        (f"{INIT}bootstrapTokens:\n{TOKEN}  expires: 2030-13-01T00:00:00Z\n", r'expires: parsing time "2030-13-01T00:00:00Z": month'),
        (f"{ENVIRONMENT}many\n", f"{DIVISOR}quantities must match the regular expression"),
        (f"{ENVIRONMENT}1e{'1' * 5_000}\n", f"{DIVISOR}unable to parse quantity's suffix"),
        (f"{ENVIRONMENT}[1]\n", f"{DIVISOR}a quantity is text such as 1Mi, or a number"),
    ],
)
def test_a_value_that_has_no_other_form_is_told_with_its_field(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        strictly(text)


def test_the_year_of_an_early_time_has_four_digits() -> None:
    assert conversion.utc_time("0099-01-01T01:00:00+01:00") == "0099-01-01T00:00:00Z"


def test_a_file_of_very_many_documents_is_refused_before_it_is_read() -> None:
    with pytest.raises(ConfigurationError, match="the file has 250000 document separators: it may have at most 1000"):
        documents.split("a: [\n---\n" * 250_000)


def test_of_very_many_problems_a_hundred_are_listed_and_the_rest_counted() -> None:
    with pytest.raises(ConfigurationError, match=r"and 9900 more$") as caught:
        strictly(CLUSTER + "".join(f"unknown{number}: 1\n" for number in range(10_000)))
    assert caught.value.message.count("unknown field") == 100
