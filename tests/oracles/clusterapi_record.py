"""Records Cluster API's own conversions between versions, and its CRDs; needs Go.

``python tests/oracles/clusterapi_record.py`` builds tests/oracles/clusterapi_conversion, asks it about the objects of
tests/golden/clusterapi/conversion/*.cases.yaml and about random ones, copies upstream's CRDs (without their words)
to tests/golden/clusterapi/crds, and takes the specs that upstream's book shows its users.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from slipway.api.cluster import crds
from slipway.api.machinery.patches.jsonpatch import merge
from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/clusterapi"
_CONVERSIONS = (
    ("objects", "random", "fuzz"),
    ("machines", "machines-random", "machines"),
    ("addons", "addons-random", "addons"),
)
BASES = ("bootstrap/kubeadm/config/crd/bases", "core/config/crd/bases", "controlplane/kubeadm/config/crd/bases")


def oracle() -> Path:
    """The oracle program, linked with Cluster API's packages."""
    work = cache_root() / "build" / VERSION / "clusterapi_conversion"
    work.mkdir(parents=True, exist_ok=True)
    for name in ("main.go", "go.mod"):
        shutil.copyfile(HERE / "clusterapi_conversion" / name, work / name)
    shutil.copyfile(module_source(CLUSTER_API, VERSION) / "go.sum", work / "go.sum")
    flags = f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": flags}
    subprocess.run(["go", "build", "-o", "conversion", "."], cwd=work, env=environment, check=True)
    return work / "conversion"


def ask(program: Path, command: str, question: object = None) -> Any:
    done = subprocess.run([str(program), command], input=json.dumps(question), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def record_conversions(program: Path) -> None:
    """Each object there and back; ``change`` of a case is made to it in between, as a client of the other version would."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, random, command in _CONVERSIONS:
        rows[name] = yaml.safe_load((GOLDEN / f"conversion/{name}.cases.yaml").read_text())
        rows[random] = [{"name": f"random-{number}", "object": each} for number, each in enumerate(ask(program, command))]
    for name, asked in rows.items():
        there = ask(program, "convert", [case["object"] for case in asked])
        changed = [merge(deepcopy(answer.get("object", {})), case.get("change", {})) for case, answer in zip(asked, there, strict=True)]
        back = ask(program, "convert", changed)
        recorded = [
            {**case, "there": one, **({} if "error" in one else {"back": two})} for case, one, two in zip(asked, there, back, strict=True)
        ]
        # A line each: what is random is not for reading.
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in recorded)
        (GOLDEN / "conversion" / f"{name}.json").write_text(f"[\n{lines}\n]\n")


def without_words(schema: Any) -> Any:
    """A schema without its descriptions, which are upstream's own; a property may be named description."""
    if isinstance(schema, list):
        return [without_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: without_words(each) for name, each in value.items()} if key == "properties" else without_words(value)
        for key, value in schema.items()
        if key != "description" or not isinstance(value, str)
    }


def record_crds() -> None:
    """Upstream's CRDs of the kinds that are ours, too."""
    ours = {f"{definition.kind.group}_{definition.kind.plural}" for definition in crds.DEFINITIONS}
    for base in BASES:
        for source in sorted((module_source(CLUSTER_API, VERSION) / base).glob("*.yaml")):
            if source.stem in ours:
                crd = without_words(yaml.safe_load(source.read_text()))
                (GOLDEN / "crds" / f"{source.stem}.json").write_text(json.dumps(crd, indent=1) + "\n")


def paths(schema: dict[str, Any], path: str = "") -> dict[str, str]:
    """Each path of a schema with its type."""
    out = {path: schema.get("type", "")}
    for name, each in schema.get("properties", {}).items():
        out |= paths(each, f"{path}.{name}")
    if "items" in schema:
        out |= paths(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        out |= paths(schema["additionalProperties"], f"{path}{{}}")
    return out


def record_read_kinds() -> None:
    """The fields of the kinds that providers read and that are not ours, without the large ones that nobody reads."""
    bases = {
        "core/config/crd/bases/cluster.x-k8s.io_": ["machinepools"],
        "controlplane/kubeadm/config/crd/bases/controlplane.cluster.x-k8s.io_": ["kubeadmcontrolplanes"],
    }
    found = {}
    for prefix, plurals in bases.items():
        for plural in plurals:
            crd = yaml.safe_load((module_source(CLUSTER_API, VERSION) / f"{prefix}{plural}.yaml").read_text())
            (version,) = [each for each in crd["spec"]["versions"] if each["storage"]]
            unread = (".spec.kubeadmConfigSpec.", ".status.deprecated.")
            fields = paths(version["schema"]["openAPIV3Schema"])
            found[crd["spec"]["names"]["kind"]] = {path: kind for path, kind in fields.items() if not path.startswith(unread)}
    (GOLDEN / "read-kinds.json").write_text(json.dumps(found, indent=1) + "\n")


def kubeadm_config_specs(document: Any) -> list[Any]:
    """The KubeadmConfigSpecs of a KubeadmConfig, of a KubeadmControlPlane or of a template of them."""
    if not isinstance(document, dict) or not str(document.get("apiVersion", "")).endswith("cluster.x-k8s.io/v1beta2"):
        return []
    spec = document.get("spec") or {}
    template = (spec.get("template") or {}).get("spec") or {}
    match document.get("kind"):
        case "KubeadmConfig":
            return [spec]
        case "KubeadmConfigTemplate":
            return [template]
        case "KubeadmControlPlane" | "KubeadmControlPlaneTemplate":
            return [each["kubeadmConfigSpec"] for each in (spec, template) if "kubeadmConfigSpec" in each]
    return []


def record_samples() -> None:
    book = module_source(CLUSTER_API, VERSION) / "docs/book/src"
    samples = []
    for page in sorted(book.rglob("*.md")):
        for block in re.findall(r"^```ya?ml[^\n]*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            try:
                documents = list(yaml.safe_load_all(block))
            except yaml.YAMLError:
                # Pieces of a larger whole.
                continue
            specs = [spec for document in documents for spec in kubeadm_config_specs(document)]
            # Dots stand for what is left out.
            samples += [{"page": str(page.relative_to(book)), "spec": spec} for spec in specs if spec and "..." not in json.dumps(spec)]
    (GOLDEN / "samples.json").write_text(json.dumps(samples, indent=1) + "\n")


def main() -> None:
    record_crds()
    record_read_kinds()
    record_samples()
    record_conversions(oracle())


if __name__ == "__main__":
    main()
