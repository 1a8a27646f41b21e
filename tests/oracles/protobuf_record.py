"""Records how Kubernetes' own types are written in protobuf, from the tags of their Go declarations.

``python tests/oracles/protobuf_record.py`` needs Go, for the modules' sources only, and rewrites
src/slipway/embedded/endpoints/protobuf.json.
The .proto files would not do: they do not tell a field that is a pointer, whose zero is a value, from one that is not.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from slipway.lab.programs.gobuild import module_source

RELEASE = "v0.35.4"
TABLE = Path(__file__).parent.parent.parent / "src/slipway/embedded/endpoints/protobuf.json"
META = "k8s.io/apimachinery/pkg/apis/meta/v1"
SPECIAL = {
    f"{META}.Time": "Time",
    f"{META}.MicroTime": "MicroTime",
    f"{META}.Duration": "Duration",
    f"{META}.FieldsV1": "Raw",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "Raw",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
    "k8s.io/apimachinery/pkg/types.UID": "string",
}
SCALARS = {"string", "bool", "int32", "int64", "float64"}
DECLARATION = re.compile(r"^type (\w+) (struct \{\n(.*?)^\}|.+?)$", re.MULTILINE | re.DOTALL)
FIELD = re.compile(
    r'^\t(?:(?P<name>\w+)\s+)?(?P<type>[^\s`]+)\s+`json:"(?P<json>[^",]*)[^"]*"[^`]*?protobuf:"[^,"]*,(?P<number>\d+)', re.MULTILINE
)
IMPORT = re.compile(r'^\s*(?:import\s+)?(?:(\w+)\s+)?"(k8s\.io/[^"]+)"', re.MULTILINE)


class Package:
    """The declarations of one Go package."""

    def __init__(self, folder: Path, path: str) -> None:
        self.path = path
        self.imports: dict[str, str] = {}
        self.structs: dict[str, str] = {}
        self.named: dict[str, str] = {}
        for source in sorted(
            path for path in folder.glob("*.go") if not path.name.startswith(("zz_", "generated")) and "_test" not in path.name
        ):
            text = source.read_text()
            self.imports |= {alias or target.rpartition("/")[2]: target for alias, target in IMPORT.findall(text)}
            for name, body, fields in DECLARATION.findall(text):
                if body.startswith("struct"):
                    self.structs[name] = fields
                else:
                    self.named[name] = body.removeprefix("=").partition("//")[0].strip()


def packages() -> dict[str, Package]:
    api, machinery = module_source("k8s.io/api", RELEASE), module_source("k8s.io/apimachinery", RELEASE)
    folders = {f"k8s.io/api/{folder.parent.name}/{folder.name}": folder for folder in api.glob("*/v[12]") if (folder / "types.go").exists()}
    folders[META] = machinery / "pkg/apis/meta/v1"
    return {path: Package(folder, path) for path, folder in folders.items()}


def key(path: str, name: str) -> str:
    return f"{'/'.join(path.split('/')[-2:])}.{name}"


def resolved(expression: str, package: Package, known: dict[str, Package]) -> str:
    """A Go type in the words of the table."""
    if expression == "[]byte":
        return "bytes"
    for prefix, word in (("*", "*"), ("[]", "[]")):
        if expression.startswith(prefix):
            return word + resolved(expression.removeprefix(prefix), package, known)
    if found := re.fullmatch(r"map\[[\w.]+\](.+)", expression):
        return "map " + resolved(found[1], package, known)
    if expression in SCALARS:
        return expression
    alias, _, name = expression.rpartition(".")
    path = package.imports[alias] if alias else package.path
    if special := SPECIAL.get(f"{path}.{name}"):
        return special
    home = known[path]
    if name in home.structs:
        return key(path, name)
    inner = resolved(home.named[name], home, known)
    # A list with a name is a message of its own in protobuf.
    return f"items {inner.removeprefix('[]')}" if inner.startswith("[]") else inner


def main() -> None:
    known = packages()
    table: dict[str, dict[str, str]] = {}
    for path, package in known.items():
        for name, body in package.structs.items():
            fields = {}
            for field in FIELD.finditer(body):
                type_ = resolved(field["type"], package, known)
                fields[field["number"]] = f"{field['json']} {type_}"
            if fields and f"{path}.{name}" not in SPECIAL:
                table[key(path, name)] = fields
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(table[name], separators=(',', ':'))}" for name in sorted(table))
    TABLE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
