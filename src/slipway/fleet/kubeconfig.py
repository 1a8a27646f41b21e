"""The Secret ``<cluster>-kubeconfig``, by which managers and people reach a workload cluster as its administrator.

A control plane's controller keeps it; without one, the Cluster's does.  The client certificate is signed by the Secret ``<cluster>-ca``
and is valid for a year (Cluster API's util/kubeconfig).
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from slipway.api.cluster.names import CLUSTER_NAME_LABEL, SECRET_TYPE
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.fleet.certificates import CertificatesError
from slipway.fleet.clustercache import secret_name
from slipway.kube import kubeconfig

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.credentials.x509 import Authority
    from slipway.fleet.certificates import KeyPair
    from slipway.fleet.contract.facts import ClusterFacts

VALIDITY = Duration.of(hours=365 * 24)


def secret(cluster: ClusterFacts, content: bytes, owner: Manifest) -> Manifest:
    return {
        "metadata": {
            "name": secret_name(cluster.name),
            "namespace": cluster.namespace,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [owner],
        },
        "type": SECRET_TYPE,
        "data": {"value": b64encode(content).decode()},
    }


def content(cluster: str, server: str, ca: KeyPair, now: datetime, algorithm: str = "") -> bytes:
    """A new kubeconfig of an administrator of the cluster at ``server``; takes the time that a new key takes."""
    from slipway.credentials import keys, x509
    from slipway.credentials.profile import CLIENT_AUTH, Profile

    authority = _authority(cluster, ca)
    key = keys.generate(algorithm)
    profile = Profile(common_name="kubernetes-admin", organizations=("system:masters",), usages=(CLIENT_AUTH,))
    certificate = x509.signed(profile, key.public_key(), authority, x509.period(now, VALIDITY))
    credentials = {
        "client-certificate-data": kubeconfig.encoded(x509.pem(certificate)),
        "client-key-data": kubeconfig.encoded(keys.private_pem(key)),
    }
    trust = x509.pem(authority.certificate)
    document = kubeconfig.document(server=server, cluster=cluster, user=f"{cluster}-admin", ca=trust, credentials=credentials)
    return goyaml.dump(document).encode()


def _authority(cluster: str, ca: KeyPair) -> Authority:
    from slipway.credentials import keys, x509

    if not ca.key:
        raise CertificatesError(f"the CA of the Cluster {cluster} has no key: who keeps it must make the Secret {secret_name(cluster)} too")
    try:
        return x509.Authority(x509.parse(ca.certificate)[0], keys.parse_private(ca.key))
    except (ValueError, IndexError, OperatorError) as error:
        raise CertificatesError(f"the CA of the Cluster {cluster} cannot be read: {error}") from None
