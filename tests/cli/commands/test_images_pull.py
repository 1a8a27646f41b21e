"""``config images pull``, with a runtime that speaks the CRI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.runtime_server import Images, serving

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Outcome, Run

# kubeadm 1.35.4: config images list
IMAGES = [
    "registry.k8s.io/kube-apiserver:v1.35.4",
    "registry.k8s.io/kube-controller-manager:v1.35.4",
    "registry.k8s.io/kube-scheduler:v1.35.4",
    "registry.k8s.io/kube-proxy:v1.35.4",
    "registry.k8s.io/coredns/coredns:v1.13.1",
    "registry.k8s.io/pause:3.10.1",
    "registry.k8s.io/etcd:3.6.6-0",
]


def pull(run: Run, images: Images, folder: Path, *flags: str) -> Outcome:
    with serving(images, folder) as socket:
        return run("config", "images", "pull", "--kubernetes-version=v1.35.4", f"--cri-socket={socket}", *flags, acting_as="v1.35.4")


def test_every_image_is_pulled_even_if_it_is_there(run: Run, tmp_path: Path) -> None:
    images = Images(IMAGES[0])
    outcome = pull(run, images, tmp_path)
    assert (outcome.code, outcome.out) == (0, "".join(f"[config/images] Pulled {image}\n" for image in IMAGES))
    assert images.pulled == IMAGES


def test_the_first_image_that_cannot_be_pulled_ends_it(run: Run, tmp_path: Path) -> None:
    images = Images()
    images.failures = {IMAGES[1]: 5}
    outcome = pull(run, images, tmp_path)
    assert (outcome.code, outcome.out) == (1, f"[config/images] Pulled {IMAGES[0]}\n")
    assert f'failed to pull image "{IMAGES[1]}": ' in outcome.err
    assert "not found in the registry" in outcome.err


def test_the_repository_may_be_another_one(run: Run, tmp_path: Path) -> None:
    images = Images()
    assert pull(run, images, tmp_path, "--image-repository=example.org/k8s").code == 0
    assert [image.rpartition("/")[0] for image in images.pulled] == ["example.org/k8s"] * len(IMAGES)


def test_a_runtime_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    outcome = run("config", "images", "pull", "--kubernetes-version=v1.35.4", f"--cri-socket=unix://{tmp_path}/none.sock")
    assert outcome.code == 1
    assert "container runtime is not running" in outcome.err
