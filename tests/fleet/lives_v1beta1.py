"""The cluster of tests/fleet/lives.py as users wrote it before v1beta2: fields where v1beta1 has them, references with an apiVersion."""

from __future__ import annotations

from typing import Any

from fleet import infrastructure
from fleet.infrastructure import TEST_CLUSTER, TEST_MACHINE_TEMPLATE
from fleet.lives import FIRST, NAME, NAMESPACE

from slipway.api.cluster.kinds import (
    CLUSTER,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    Kind,
)

Manifest = dict[str, Any]


def older(kind: Kind) -> Kind:
    return kind._replace(version="v1beta1")


def _reference(kind: Kind, name: str) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "namespace": NAMESPACE}


def manifests(host: str, port: int, *, control_planes: int = 3, workers: int = 2, version: str = FIRST) -> list[tuple[Kind, Manifest]]:
    """The provider's own objects are as they are: it is for each provider to have versions."""
    metadata, labels = {"namespace": NAMESPACE}, {"cluster.x-k8s.io/cluster-name": NAME}
    etcd = {
        "external": {
            "endpoints": ["https://10.0.0.9:2379"],
            "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
            "certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt",
            "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key",
        }
    }
    selector = {**labels, "cluster.x-k8s.io/deployment-name": f"{NAME}-md"}
    machine = {
        "clusterName": NAME,
        "version": version,
        "bootstrap": {"configRef": _reference(older(KUBEADM_CONFIG_TEMPLATE), f"{NAME}-md")},
        "infrastructureRef": _reference(TEST_MACHINE_TEMPLATE, f"{NAME}-md"),
    }
    return [
        (TEST_CLUSTER, {"metadata": {**metadata, "name": NAME}, "spec": {"controlPlaneEndpoint": {"host": host, "port": port}}}),
        (TEST_MACHINE_TEMPLATE, infrastructure.template(TEST_MACHINE_TEMPLATE, f"{NAME}-cp", NAMESPACE)),
        (TEST_MACHINE_TEMPLATE, infrastructure.template(TEST_MACHINE_TEMPLATE, f"{NAME}-md", NAMESPACE)),
        (
            older(KUBEADM_CONFIG_TEMPLATE),
            {"metadata": {**metadata, "name": f"{NAME}-md"}, "spec": {"template": {"spec": {"verbosity": 1}}}},
        ),
        (
            older(KUBEADM_CONTROL_PLANE),
            {
                "metadata": {**metadata, "name": f"{NAME}-cp", "labels": labels},
                "spec": {
                    "replicas": control_planes,
                    "version": version,
                    "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
                    "machineTemplate": {"infrastructureRef": _reference(TEST_MACHINE_TEMPLATE, f"{NAME}-cp")},
                    "kubeadmConfigSpec": {"clusterConfiguration": {"etcd": etcd}},
                },
            },
        ),
        (
            older(MACHINE_DEPLOYMENT),
            {
                "metadata": {**metadata, "name": f"{NAME}-md", "labels": labels},
                "spec": {
                    "clusterName": NAME,
                    "replicas": workers,
                    "selector": {"matchLabels": selector},
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                    "template": {"metadata": {"labels": selector}, "spec": machine},
                },
            },
        ),
        (
            older(MACHINE_HEALTH_CHECK),
            {
                "metadata": {**metadata, "name": f"{NAME}-mhc", "labels": labels},
                "spec": {
                    "clusterName": NAME,
                    "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": f"{NAME}-md"}},
                    "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "1s"}],
                },
            },
        ),
        (
            older(CLUSTER),
            {
                "metadata": {**metadata, "name": NAME},
                "spec": {
                    "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
                    "infrastructureRef": _reference(TEST_CLUSTER, NAME),
                    "controlPlaneRef": _reference(older(KUBEADM_CONTROL_PLANE), f"{NAME}-cp"),
                },
            },
        ),
    ]
