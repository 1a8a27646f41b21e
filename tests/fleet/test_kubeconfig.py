"""The kubeconfig of a cluster is the one that Cluster API makes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest
from cryptography.x509 import Certificate, KeyUsage
from fleet.controlplane.recordings import names, rows

from slipway.api.machinery.yaml import goyaml
from slipway.credentials import x509
from slipway.credentials.profile import CLIENT_AUTH
from slipway.fleet import certificates
from slipway.fleet.certificates import KeyPair
from slipway.fleet.kubeconfig import content
from slipway.kube import kubeconfig

pytestmark = pytest.mark.recorded

ROWS = rows("kubeconfig")
# In Go's words: RSA or EC.
KEYS = {"RSA PRIVATE KEY": "RSA", "EC PRIVATE KEY": "ECDSA"}


@lru_cache
def ca() -> KeyPair:
    return certificates.generate(certificates.CA, "ECDSA-P256", 10, datetime.now(UTC))


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_makes_the_kubeconfig_that_upstream_makes(row: dict[str, Any]) -> None:
    case, answer, now = row["case"], row["answer"], datetime.now(UTC)
    text = content(case["cluster"], case["server"], ca(), now, case.get("algorithm", ""))
    document = kubeconfig.load(text, "test")
    user = document["users"][0]["user"]
    certificate = x509.parse(kubeconfig.decoded(user["client-certificate-data"], "test"))[0]
    profile = x509.profile_of(certificate)
    pem = kubeconfig.decoded(user["client-key-data"], "test").decode()
    kind = re.findall("BEGIN ([A-Z ]+)-", pem)[0]
    ends = certificate.not_valid_after_utc - now
    found = {
        "algorithm": KEYS[kind],
        "key": kind,
        "hours": round(ends / timedelta(hours=1)),
        "keyUsage": _key_usage(certificate),
        "subject": f"CN={profile.common_name},O={profile.organizations[0]}",
        "usages": [2] if profile.usages == (CLIENT_AUTH,) else [],
        "rotate": ends < timedelta(hours=case["threshold"]),
    }
    document["clusters"][0]["cluster"]["certificate-authority-data"] = "Y2E="
    user |= {"client-certificate-data": "Y2VydGlmaWNhdGU=", "client-key-data": "a2V5"}
    assert {**found, "kubeconfig": goyaml.dump(document)} == answer


def _key_usage(certificate: Certificate) -> int:
    """In the bits of Go: digital signature 1, key encipherment 4."""
    usage = certificate.extensions.get_extension_for_class(KeyUsage).value
    return usage.digital_signature | usage.key_encipherment << 2
