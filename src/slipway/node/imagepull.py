"""Images are pulled before anything is changed: a registry that does not answer is better found out now than half-way.

``pull_all`` is the preflight check of ``init``, ``join`` and ``upgrade``; ``pulls`` is the work itself, which
``config images pull`` shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.host.cri.client import ContainerRuntimeError
from slipway.node.preflight import check
from slipway.node.preflight.check import Findings
from slipway.workload import images

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from slipway.host.cri.client import ContainerRuntime
    from slipway.node.context import NodeContext

    Warn = Callable[[str], None]

CHECK = "ImagePull"
ALWAYS, IF_NOT_PRESENT, NEVER = "Always", "IfNotPresent", "Never"
TRIES = 5


class Pull(NamedTuple):
    """What became of one image."""

    image: str
    problem: str = ""
    """Why it was not pulled; empty where it is there now."""
    was_there: bool = False
    seconds: float = 0.0
    retries: int = 0


def pull_in_preflight(
    ctx: NodeContext, ignored: Collection[str], *, policy: str | None = None, serial: bool | None = None, tag: str = "[preflight]"
) -> None:
    """Pull what a control plane needs."""
    cluster, release = ctx.config.cluster, ctx.release
    pause = images.pause(cluster, release)
    pull_all(ctx, images.required(cluster, release), sandbox_image=pause, ignored=ignored, policy=policy, serial=serial, tag=tag)


def pull_all(
    ctx: NodeContext,
    images: Sequence[str],
    *,
    sandbox_image: str,
    ignored: Collection[str],
    policy: str | None = None,
    serial: bool | None = None,
    tag: str = "[preflight]",
) -> None:
    """Pull what the policy of the node's registration asks for, and tell how far it is.

    ``sandbox_image`` is the pause image of this release; ``policy`` and ``serial`` are those of an upgrade.
    """
    say, node = ctx.progress.say, ctx.config.node_registration
    say(f"{tag} Pulling images required for setting up a Kubernetes cluster")
    say(f"{tag} This might take a minute or two, depending on the speed of your internet connection")
    say(f"{tag} You can also perform this action beforehand using 'kubeadm config images pull'")
    policy = node.image_pull_policy if policy is None else policy
    serial = node.image_pull_serial is not False if serial is None else serial
    if policy == NEVER:
        return
    if policy not in (ALWAYS, IF_NOT_PRESENT):
        check.tell([(CHECK, Findings(errors=(f'unsupported pull policy "{policy}"',)))], ctx.progress, ignored)
        return
    check.tell([(CHECK, _pull(ctx, images, sandbox_image, policy, serial, tag))], ctx.progress, ignored)


def _pull(ctx: NodeContext, images: Sequence[str], sandbox_image: str, policy: str, serial: bool, tag: str) -> Findings:
    try:
        with ctx.host.container_runtime(ctx.config.node_registration.cri_socket) as runtime:
            used = runtime.sandbox_image()
            if used and used != sandbox_image:
                ctx.warn_once(
                    f'detected that the sandbox image "{used}" of the container runtime is inconsistent with that used by kubeadm. '
                    f'It is recommended to use "{sandbox_image}" as the CRI sandbox image.'
                )
            return _pull_with(ctx, runtime, images, policy, serial, tag)
    except ContainerRuntimeError as error:
        return Findings(errors=(error.message,))


def _pull_with(ctx: NodeContext, runtime: ContainerRuntime, images: Sequence[str], policy: str, serial: bool, tag: str) -> Findings:
    problems: dict[str, str] = {}
    there = 0
    outcomes = pulls(
        runtime,
        images,
        serial=serial,
        if_not_present=policy == IF_NOT_PRESENT,
        warn=lambda text: ctx.progress.warn(f"{tag} {text}"),
    )
    for done, pull in enumerate(outcomes, 1):
        if pull.problem:
            problems[pull.image] = f"failed to pull image {pull.image}: {pull.problem}"
        elif pull.was_there:
            there += 1
        else:
            again = f", {pull.retries} retries" if pull.retries else ""
            ctx.progress.say(f"{tag} Pulled {pull.image} in {pull.seconds:.1f} s{again} ({done} of {len(images)})")
    if there:
        ctx.progress.say(f"{tag} {there} of {len(images)} images were here already")
    return Findings(errors=tuple(problems[image] for image in images if image in problems))


def pulls(
    runtime: ContainerRuntime, images: Sequence[str], *, serial: bool, if_not_present: bool, warn: Warn = lambda text: None
) -> Iterator[Pull]:
    """Pull images, one after another or all at once, and tell of each when it is done; ``warn`` is told of what is tried again."""
    if serial or len(images) < 2:
        yield from (_one(runtime, image, if_not_present, warn) for image in images)
        return
    from queue import SimpleQueue
    from threading import Thread

    outcomes: SimpleQueue[Pull | BaseException] = SimpleQueue()

    def work(image: str) -> None:
        try:
            outcomes.put(_one(runtime, image, if_not_present, warn))
        except BaseException as error:  # raised below, where somebody listens
            outcomes.put(error)

    # Daemons, so that an interrupted run does not wait for a registry.
    for image in images:
        Thread(target=work, args=(image,), daemon=True).start()
    for _ in images:
        outcome = outcomes.get()
        if isinstance(outcome, BaseException):
            raise outcome
        yield outcome


def _one(runtime: ContainerRuntime, image: str, if_not_present: bool, warn: Warn) -> Pull:
    from time import monotonic

    begun = monotonic()
    problem = ""
    for attempt in range(TRIES):
        try:
            if if_not_present and runtime.has_image(image):
                return Pull(image, was_there=True)
            runtime.pull(image)
        except ContainerRuntimeError as error:
            problem = error.message
            if not attempt:
                # A runtime may take many seconds to give up; what it waits for is told at once.
                warn(f"{image} is tried up to {TRIES} times: {problem}")
        else:
            return Pull(image, seconds=monotonic() - begun, retries=attempt)
    return Pull(image, problem=problem, seconds=monotonic() - begun, retries=TRIES - 1)
