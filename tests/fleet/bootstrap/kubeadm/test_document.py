"""kubeadm's configuration for a version; the golden files are what Cluster API's own packages wrote."""

from __future__ import annotations

import pytest
from cases.bootstrapdata import cases, ours, recorded

from slipway.api.machinery.errors import ConfigurationError
from slipway.fleet.bootstrap.kubeadm.document import join_configuration, parse_version

pytestmark = pytest.mark.recorded

CASES = cases("kubeadmyaml")


@pytest.mark.parametrize("name", CASES)
def test_a_section_is_written_byte_by_byte_as_cluster_api_writes_it(name: str) -> None:
    assert ours(CASES[name]) == recorded(name)


def test_the_cases_cover_both_versions_of_the_api() -> None:
    texts = [recorded(name).value for name in CASES]
    assert sum("kubeadm.k8s.io/v1beta3" in text for text in texts) >= 10
    assert sum("kubeadm.k8s.io/v1beta4" in text for text in texts) >= 10


@pytest.mark.parametrize("text", ["", "1.35.4-", "v1.35-rc.1", "latest", "v1.35.x"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f'failed to parse kubernetes version "{text}"'):
        join_configuration({}, text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("v1.35.4", "1.35.4"), ("1.35", "1.35.0"), ("v1", "1.0.0"), (" v01.035.004 ", "1.35.4"), ("v1.31.0-rc.1+x", "1.31.0-rc.1+x")],
)
def test_versions_are_read_as_tolerantly_as_cluster_api_reads_them(text: str, wanted: str) -> None:
    assert str(parse_version(text)) == wanted
