"""kubeadm's own black-box tables (cmd/kubeadm/test/cmd of v1.35.4), driven through our command line.

Each row is one of theirs: its name, its arguments, and whether the command succeeds.  A version is given where theirs
lets the internet decide, and what the rows share (``--dry-run``, ``--ignore-preflight-errors=all``) is added as they do.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Outcome, Run

_VERSION = "v1.35.4"

_CLUSTER = "apiVersion: kubeadm.k8s.io/{version}\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.4\n"
_INIT_FILE = "apiVersion: kubeadm.k8s.io/{version}\nkind: InitConfiguration\n---\n" + _CLUSTER
_KUBELET = "---\napiVersion: kubelet.config.k8s.io/{version}\nkind: KubeletConfiguration\n"
_FILES = {
    **{f"{version}.yaml": _INIT_FILE.format(version=version) for version in ("v1beta1", "v1beta2", "v1beta3", "v1beta4")},
    "current-component-config.yaml": _CLUSTER.format(version="v1beta4") + _KUBELET.format(version="v1beta1"),
    "old-component-config.yaml": _CLUSTER.format(version="v1beta4") + _KUBELET.format(version="v1alpha1"),
}

# (name, arguments, succeeds); {init} is the folder of the files.
_INIT = [
    ("invalid token size", "--token=abcd:1234567890abcd --kubernetes-version=1.35.4", False),
    ("invalid token non-lowercase", "--token=Abcdef:1234567890abcdef --kubernetes-version=1.35.4", False),
    ("valid token is accepted", "--token=abcdef.0123456789abcdef --kubernetes-version=1.35.4", True),
    ("invalid semantic version string is detected", "--kubernetes-version=v1.1", False),
    ("valid version is accepted", "--kubernetes-version=1.35.4", True),
    ("fail on non existing path", "--config=/does/not/exist/foo/bar", False),
    ("can't load v1beta1 config", "--config={init}/v1beta1.yaml", False),
    ("can't load v1beta2 config", "--config={init}/v1beta2.yaml", False),
    ("can load v1beta3 config", "--config={init}/v1beta3.yaml", True),
    ("can load v1beta4 config", "--config={init}/v1beta4.yaml", True),
    ("don't allow mixed arguments v1beta3", "--kubernetes-version=1.11.0 --config={init}/v1beta3.yaml", False),
    ("can load current component config", "--config={init}/current-component-config.yaml", True),
    ("can't load old component config", "--config={init}/old-component-config.yaml", False),
    ("fail on non-string port", "--apiserver-bind-port=foobar --kubernetes-version=1.35.4", False),
    ("fail on too large port number", "--apiserver-bind-port=100000 --kubernetes-version=1.35.4", False),
    ("fail on negative port number", "--apiserver-bind-port=-6000 --kubernetes-version=1.35.4", False),
    ("accept a valid port number", "--apiserver-bind-port=6000 --kubernetes-version=1.35.4", True),
]

_JOIN = [
    ("config", "--config=foobar"),
    ("config path", "--config=/does/not/exist/foo/bar"),
    ("valid discovery file", "--discovery-file=foobar"),
    ("invalid discovery file", "--discovery-file=file:wrong"),
    ("valid discovery token", "--discovery-token=foobar"),
    ("valid discovery token url", "--discovery-token=token://asdf:asdf"),
    ("valid node name", "--node-name=foobar"),
    ("valid bootstrap token", "--tls-bootstrap-token=foobar"),
    ("valid bootstrap token url", "--tls-bootstrap-token=token://asdf:asdf"),
    ("valid token", "--token=foobar"),
    ("valid token url", "--token=token://asdf:asdf"),
    (
        "discovery-token and discovery-file can't both be set",
        "--discovery-token=abcdef.1234567890123456 --discovery-file=file:///tmp/foo.bar",
    ),
    ("discovery-token or discovery-file must be set", ""),
    ("discovery-token and config", "--discovery-token=abcdef.1234567890abcdef --config=/etc/kubernetes/kubeadm.config"),
]

_OTHERS = [
    ("shell not expected", "completion", False),
    ("unsupported shell type", "completion foo", False),
    ("a deliberate typo", "token genorate", False),
    ("no token provided", "token delete", False),
    ("invalid token", "token delete foobar", False),
    ("invalid output option", "version --output=valid", False),
]


@pytest.fixture
def init(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name, text in _FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBEADM_INIT_DRYRUN_DIR", str(tmp_path))

    def call(arguments: str) -> Outcome:
        given = arguments.format(init=tmp_path).split()
        return run("init", "--dry-run", "--ignore-preflight-errors=all", *given, program="kubeadm", acting_as=_VERSION)

    return call


@pytest.mark.parametrize(("name", "arguments", "succeeds"), _INIT, ids=[row[0] for row in _INIT])
def test_init(name: str, arguments: str, succeeds: bool, init: Run) -> None:
    outcome = init(arguments)
    assert (outcome.code == 0) == succeeds, outcome.err
    assert "this is a bug" not in outcome.err


@pytest.mark.parametrize(
    "arguments",
    ["--kubernetes-version=1.35.4", "--kubernetes-version=1.35.4 --feature-gates=PublicKeysECDSA=true"],
    ids=["no feature gates passed", "feature gate PublicKeysECDSA=true"],
)
def test_init_with_feature_gates(arguments: str, init: Run) -> None:
    """Theirs only asks that it does not panic; ours must succeed."""
    assert init(arguments).code == 0


@pytest.mark.parametrize(("name", "arguments"), _JOIN, ids=[row[0] for row in _JOIN])
def test_join_fails(name: str, arguments: str, run: Run) -> None:
    outcome = run("join", *arguments.split(), "--ignore-preflight-errors=all", program="kubeadm", acting_as=_VERSION)
    assert outcome.code == 1
    assert outcome.err.startswith("error: ")
    # The reason must be the arguments: nothing may have been asked of a machine or a cluster yet.
    assert "error execution phase" not in outcome.err
    assert "this is a bug" not in outcome.err


@pytest.mark.parametrize(("name", "arguments", "succeeds"), _OTHERS, ids=[row[0] for row in _OTHERS])
def test_other_commands(name: str, arguments: str, succeeds: bool, run: Run) -> None:
    outcome = run(*arguments.split(), program="kubeadm", acting_as=_VERSION)
    assert (outcome.code == 0) == succeeds
    assert "this is a bug" not in outcome.err


def test_token_generate_prints_a_token(run: Run) -> None:
    assert re.search(r"^\S{6}\.\S{16}\n$", run("token", "generate").out)


def test_config_images_list_finds_an_etcd_version(run: Run) -> None:
    outcome = run("config", "images", "list", "--v=1", "--kubernetes-version=1.35.4")
    assert outcome.code == 0
    assert "could not find officially supported version of etcd" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["--output=short"], r"^v.+\n$"),
        (
            [],
            r'^kubeadm version: &version\.Info{Major:".+", Minor:".+", GitVersion:".+", GitCommit:".+", GitTreeState:".+", '
            r'BuildDate:".+", GoVersion:".+", Compiler:".+", Platform:".+"}\n$',
        ),
    ],
    ids=["short output", "default output"],
)
def test_version_has_the_expected_form(arguments: list[str], pattern: str, run: Run) -> None:
    assert re.search(pattern, run("version", *arguments).out)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_version_as_a_document_has_every_field(output: str, run: Run) -> None:
    text = run("version", f"--output={output}").out
    document = json.loads(text) if output == "json" else yaml.safe_load(text)
    info = document["clientVersion"]
    for key in ("major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"):
        assert info[key], key
