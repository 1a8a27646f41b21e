"""kubeadm's configuration for a version; the golden files are what Cluster API's own packages wrote."""

from __future__ import annotations

import pytest
from cases.bootstrapdata import cases, ours, recorded

from slipway.api.machinery.errors import ConfigurationError
from slipway.fleet.bootstrap.data.data import join_configuration

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
