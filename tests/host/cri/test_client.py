"""The client of the CRI: what it says where there is no runtime, and its messages against those of the real interface."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from node.runtime_server import Images, serving

from slipway.host.cri import cri_pb2
from slipway.host.cri.client import ContainerRuntime, ContainerRuntimeError

GO_MODULES = Path.home() / "go/pkg/mod/k8s.io"
PUBLISHED = sorted(GO_MODULES.glob("cri-api@v0.3[3-6].*/pkg/apis/runtime/v1/api.proto"))


def test_a_missing_socket_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ContainerRuntimeError, match=r"no such file or directory: start it \(systemctl start containerd\)"):
        ContainerRuntime(f"unix://{tmp_path}/containerd.sock").version()


def test_the_service_is_that_of_the_runtime(tmp_path: Path) -> None:
    with pytest.raises(ContainerRuntimeError, match="systemctl start crio"):
        ContainerRuntime(f"unix://{tmp_path}/crio.sock").version()


def test_a_socket_on_which_nobody_listens_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "containerd.sock"))
    with pytest.raises(ContainerRuntimeError, match="connection refused"):
        ContainerRuntime(f"{tmp_path}/containerd.sock").version()


def test_a_runtime_that_is_too_old_to_tell_its_cgroup_driver_is_no_failure(tmp_path: Path) -> None:
    with serving(Images(), tmp_path) as address, ContainerRuntime(address) as runtime:
        assert runtime.cgroup_driver() == ""
        assert runtime.status_problems() == []


@pytest.mark.parametrize(("told", "found"), [("pause:1", "pause:1"), ('"', ""), ("", "")])
def test_the_sandbox_image_is_known_where_the_runtime_tells_it(told: str, found: str, tmp_path: Path) -> None:
    images = Images()
    images.sandbox_image = told
    with serving(images, tmp_path) as address, ContainerRuntime(address) as runtime:
        assert runtime.sandbox_image() == found


@pytest.mark.skipif(not PUBLISHED, reason="the Go module k8s.io/cri-api is not in the module cache")
@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parts[-6])
def test_messages_have_the_names_and_numbers_of_the_published_interface(path: Path) -> None:
    published = _fields(path.read_text())
    ours = _fields((Path(cri_pb2.__file__).parent / "cri.proto").read_text())
    assert ours
    assert {name: fields for name, fields in ours.items() if not fields <= published.get(name, set())} == {}
    generated = {
        name: {(field.name, str(field.number)) for field in kind.fields} for name, kind in cri_pb2.DESCRIPTOR.message_types_by_name.items()
    }
    assert generated == {name: {(field, number) for _, field, number in fields} for name, fields in ours.items() if name in generated}


def _fields(proto: str) -> dict[str, set[tuple[str, str, str]]]:
    """The type, name and number of every field, by message or enum."""
    text = re.sub(r"//[^\n]*", "", proto)
    blocks = re.findall(r"\b(?:message|enum)\s+(\w+)\s*\{([^{}]*)\}", text)
    field = re.compile(r"([\w. ]*(?:map<[\w, ]+>)?)\s*\b(\w+)\s*=\s*(\d+)\s*(?:\[[^\]]*\])?;")
    return {name: {(re.sub(r"\s+", "", kind), word, number) for kind, word, number in field.findall(body)} for name, body in blocks}
