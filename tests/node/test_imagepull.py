"""Images before everything else; cases of kubeadm's TestImagePullCheck and TestPullImagesInParallelImpl (1.36.3)."""

from __future__ import annotations

from threading import Barrier
from typing import TYPE_CHECKING

import pytest
from node.runtime_server import Images, serving

from slipway.api.machinery.errors import PreflightError
from slipway.node import imagepull

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

WANTED = ["img1", "img2", "img3"]


@pytest.fixture
def images() -> Images:
    return Images("img1")


def pull(
    make_context: MakeContext,
    images: Images,
    folder: Path,
    *,
    policy: str = "IfNotPresent",
    serial: bool = True,
    ignored: tuple[str, ...] = (),
) -> None:
    context = make_context()
    with serving(images, folder):
        # Seen from the host of the context, whose root is the folder.
        context.config.node_registration.cri_socket = "unix:///run.sock"
        context.config.node_registration.image_pull_policy = policy
        context.config.node_registration.image_pull_serial = serial
        imagepull.pull_all(context, WANTED, sandbox_image="registry.k8s.io/pause:3.10.2", ignored=ignored)


@pytest.mark.parametrize("serial", [True, False])
@pytest.mark.parametrize(("policy", "pulled"), [("Always", ["img1", "img2", "img3"]), ("IfNotPresent", ["img2", "img3"]), ("Never", [])])
def test_the_policy_says_what_is_pulled(
    policy: str, pulled: list[str], serial: bool, images: Images, make_context: MakeContext, tmp_path: Path
) -> None:
    pull(make_context, images, tmp_path, policy=policy, serial=serial)
    assert sorted(images.pulled) == pulled


def test_an_unknown_policy_is_an_error(images: Images, make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    with pytest.raises(PreflightError):
        pull(make_context, images, tmp_path, policy="Sometimes")
    assert '\t[ERROR ImagePull]: unsupported pull policy "Sometimes"' in lines.warned[-1]


def test_pulls_go_side_by_side_where_that_is_asked_for(images: Images, make_context: MakeContext, tmp_path: Path) -> None:
    images.together = Barrier(2, timeout=10)
    pull(make_context, images, tmp_path, serial=False)
    assert images.present == {"img1", "img2", "img3"}


def test_progress_tells_what_was_pulled_and_what_was_here(images: Images, make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    pull(make_context, images, tmp_path)
    assert lines.said[0] == "[preflight] Pulling images required for setting up a Kubernetes cluster"
    assert [line.split(" in ")[0] for line in lines.said[3:]] == [
        "[preflight] Pulled img2",
        "[preflight] Pulled img3",
        "[preflight] 1 of 3 images were here already",
    ]
    assert lines.said[4].endswith("(3 of 3)")


def test_a_pull_is_tried_five_times_and_the_reason_is_told_at_once(
    images: Images, make_context: MakeContext, tmp_path: Path, lines: Lines
) -> None:
    images.failures = {"img2": 4}
    pull(make_context, images, tmp_path)
    assert images.pulled.count("img2") == 5
    assert lines.warned == ["[preflight] img2 is tried up to 5 times: img2: not found in the registry"]


@pytest.mark.parametrize("serial", [True, False])
def test_every_image_that_cannot_be_pulled_is_named_with_the_reason(
    serial: bool, images: Images, make_context: MakeContext, tmp_path: Path, lines: Lines
) -> None:
    images.failures = {"img2": 5, "img3": 5}
    with pytest.raises(PreflightError):
        pull(make_context, images, tmp_path, serial=serial)
    told = lines.warned[-1].splitlines()[1:-1]
    assert [line.split(":")[1].strip() for line in told] == ["failed to pull image img2", "failed to pull image img3"]
    assert all(line.endswith("not found in the registry") for line in told)


def test_a_pull_that_fails_can_be_ignored(images: Images, make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    images.failures = {"img2": 5}
    pull(make_context, images, tmp_path, ignored=("imagepull",))
    assert lines.warned[-1].startswith("\t[WARNING ImagePull]: failed to pull image img2")


def test_another_sandbox_image_is_warned_of(images: Images, make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    images.sandbox_image = "registry.k8s.io/pause:3.8"
    pull(make_context, images, tmp_path)
    assert lines.warned == [
        'detected that the sandbox image "registry.k8s.io/pause:3.8" of the container runtime is inconsistent with that used by kubeadm. '
        'It is recommended to use "registry.k8s.io/pause:3.10.2" as the CRI sandbox image.'
    ]


def test_a_runtime_that_is_stopped_is_an_error_of_the_pull(make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    context = make_context()
    context.config.node_registration.cri_socket = "unix:///run/containerd.sock"
    context.config.node_registration.image_pull_policy = "Always"
    with pytest.raises(PreflightError):
        imagepull.pull_all(context, WANTED, sandbox_image="pause", ignored=())
    assert "[ERROR ImagePull]: container runtime is not running" in lines.warned[-1]
