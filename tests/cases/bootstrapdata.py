"""Cases of bootstrap data that were recorded from Cluster API's own packages, and how ours answers them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap.data import data as bootstrapdata
from slipway.fleet.bootstrap.data.data import AdditionalData

GOLDEN = Path(__file__).parents[1] / "golden/bootstrapdata"
RECORDED = GOLDEN / "v1.14.2"


class Answer(NamedTuple):
    """Bootstrap data and what is odd about it, or what is wrong."""

    value: str = ""
    warnings: str = ""
    error: str = ""


def cases(area: str) -> dict[str, dict[str, Any]]:
    """The cases of one file by name."""
    return {case["name"]: case for case in yaml.safe_load((GOLDEN / f"{area}.cases.yaml").read_text())["cases"]}


def recorded(name: str) -> Answer:
    return Answer(*(_text(RECORDED / f"{name}.{part}") for part in Answer._fields))


def _text(path: Path) -> str:
    return path.read_bytes().decode() if path.exists() else ""


def certificates(name: str) -> list[dict[str, Any]]:
    """The certificates that the real program had in a case, as files."""
    path = RECORDED / f"{name}.certificates"
    return json.loads(path.read_text()) if path.exists() else []


def ours(case: dict[str, Any]) -> Answer:
    try:
        return _answer(case)
    except OperatorError as error:
        return Answer(error=error.message)


def _answer(case: dict[str, Any]) -> Answer:
    spec, version = case["spec"], case["version"]
    given = case.get("additional", {})
    additional = AdditionalData(
        kubernetes_version=given.get("kubernetesVersion", ""),
        cluster_name=given.get("clusterName", ""),
        dns_domain=given.get("dnsDomain", ""),
        service_subnet=given.get("serviceSubnet", ""),
        pod_subnet=given.get("podSubnet", ""),
        control_plane_component_health_check_seconds=given.get("controlPlaneComponentHealthCheckSeconds"),
    )
    files, users = spec.get("files", []), spec.get("users", [])
    certs = certificates(case["name"])
    match case["do"]:
        case "clusterConfiguration":
            return Answer(bootstrapdata.cluster_configuration(spec.get("clusterConfiguration", {}), version, additional))
        case "initConfiguration":
            return Answer(bootstrapdata.init_configuration(spec.get("initConfiguration", {}), version))
        case "joinConfiguration":
            return Answer(bootstrapdata.join_configuration(spec.get("joinConfiguration", {}), version))
        case "init":
            data = bootstrapdata.init_control_plane(
                spec, version=version, additional=additional, certificates=certs, files=files, users=users
            )
        case "control-plane":
            data = bootstrapdata.join_control_plane(spec, version=version, certificates=certs, files=files, users=users)
        case _:
            data = bootstrapdata.join_worker(spec, version=version, files=files, users=users)
    assert data.format == spec.get("format", "cloud-config")
    return Answer(data.value.decode(), data.warnings)
