"""Which version a cluster may be upgraded to from here: kubeadm's version and skew policy, and whether add-ons may follow.

``check`` decides and ``enforce`` tells; ``instances_behind`` says which control planes still run another API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.node.config import version as kubeversion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext

UPGRADE_SKEW = 1
"""How many minors a control plane can go up in one upgrade."""
DOWNGRADE_SKEW = 1
KUBELET_SKEW = 3
"""How many minors a kubelet may be older than the control plane."""


class SkewErrors(NamedTuple):
    """What speaks against an upgrade; ``--force`` overrides what is skippable."""

    mandatory: tuple[str, ...] = ()
    skippable: tuple[str, ...] = ()


class Allowed(NamedTuple):
    """The versions that an operator accepts beside releases, and whether skippable errors are."""

    experimental: bool = False
    release_candidates: bool = False
    force: bool = False


RELEASES_ONLY = Allowed()


def check(
    target: str, *, cluster: str, kubeadm: str, kubelets: Iterable[str], minimum: Version, allowed: Allowed = RELEASES_ONLY
) -> SkewErrors:
    """Compare the versions of the target, the cluster, the kubeadm that is acted as, and the kubelets.

    ``minimum`` is the oldest control plane that this kubeadm works with.  All others are texts, which the errors repeat.
    """
    new, running, own = Version.parse(target), Version.parse(cluster), Version.parse(kubeadm)
    mandatory: list[str] = []
    skippable: list[str] = []
    # A version that is no release may be tried, by force.
    graded = skippable if new.prerelease else mandatory
    if new < minimum:
        mandatory.append(
            f'Specified version to upgrade to "{target}" is equal to or lower than the minimum supported version "v{minimum}". '
            "Please specify a higher version to upgrade to"
        )
    if new.minor > running.minor + UPGRADE_SKEW:
        graded.append(
            f'Specified version to upgrade to "{target}" is too high; kubeadm can upgrade only {UPGRADE_SKEW} minor version at a time'
        )
    if new.minor < running.minor - DOWNGRADE_SKEW:
        graded.append(
            f'Specified version to downgrade to "{target}" is too low; kubeadm can downgrade only {DOWNGRADE_SKEW} minor version at a time'
        )
    if own < new and new.minor > own.minor:
        graded.append(
            f'Specified version to upgrade to "{target}" is at least one minor release higher than the kubeadm minor release '
            f"({new.minor} > {own.minor}). Such an upgrade is not supported"
        )
    elif own < new:
        skippable.append(
            f'Specified version to upgrade to "{target}" is higher than the kubeadm version "{kubeadm}". '
            "Upgrade kubeadm first using the tool you used to install kubeadm"
        )
    if own.major > new.major or own.minor > new.minor:
        skippable.append(f"Kubeadm version {kubeadm} can only be used to upgrade to Kubernetes version {own.major}.{own.minor}")
    if new.prerelease and not allowed.experimental and not (allowed.release_candidates and new.prerelease.startswith("rc")):
        skippable.append(
            f'Specified version to upgrade to "{target}" is an unstable version and such upgrades weren\'t allowed via setting '
            "the --allow-*-upgrades flags"
        )
    skippable += _kubelet_errors(new, kubelets)
    return SkewErrors(tuple(mandatory), tuple(skippable))


def enforce(ctx: NodeContext, cluster: Cluster, allowed: Allowed) -> None:
    """Refuse an upgrade to the version of the context that the policy does not allow, or only by force."""
    say, target = ctx.progress.say, ctx.config.cluster.kubernetes_version
    kubeversion.check_supported(target, ctx.release, ctx.progress.warn, fixed=True)
    say(f'[upgrade/preflight] You have chosen to upgrade the cluster version to "{target}"')
    running, kubeadm = f"v{cluster.server_version()}", f"v{ctx.release.version}"
    say(f"[upgrade/versions] Cluster version: {running}")
    say(f"[upgrade/versions] kubeadm version: {kubeadm}")
    try:
        kubelets, unknown = kubelet_versions(cluster.list("v1", "Node", "", {})), []
    except OperatorError as error:
        kubelets, unknown = {}, [f"Unable to fetch kubelet version: {error.message}"]
    minimum = Version(ctx.release.version.major, ctx.release.minor - 1)
    found = check(target, cluster=running, kubeadm=kubeadm, kubelets=kubelets, minimum=minimum, allowed=allowed)
    if found.mandatory:
        raise OperatorError(
            f"the version argument is invalid due to these fatal errors:\n\n{_listed(found.mandatory)}\n"
            "Please fix the misalignments highlighted above and try upgrading again"
        )
    skippable = (*unknown, *found.skippable)
    if skippable and not allowed.force:
        raise OperatorError(
            f"the version argument is invalid due to these errors:\n\n{_listed(skippable)}\nCan be bypassed if you pass the --force flag"
        )
    if skippable:
        count = len(skippable)
        ctx.progress.show(
            f"[upgrade/preflight] Found {count} potential version compatibility errors but skipping since the --force flag is set: "
            f"\n\n{_listed(skippable)}"
        )


def kubelet_versions(nodes: Iterable[Manifest]) -> dict[str, list[str]]:
    """The names of the nodes, by the version of their kubelet."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        version = node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
        found.setdefault(version, []).append(node["metadata"]["name"])
    return found


def addons_wait_for(cluster: Cluster, node_name: str) -> list[str]:
    """The control planes whose API server is not upgraded yet: add-ons are upgraded with the last one."""
    return instances_behind(cluster.list("v1", "Pod", "kube-system", {"component": "kube-apiserver"}), node_name)


def addons_wait_message(names: Sequence[str]) -> str:
    return f"[upgrade/addon] Skipping upgrade of addons because control plane instances [{' '.join(names)}] have not been upgraded"


def instances_behind(pods: Sequence[Manifest], node_name: str) -> list[str]:
    """The nodes whose kube-apiserver has another image than this node's, which is upgraded."""
    if not pods:
        raise OperatorError("cannot find kube-apiserver Pod by label selector: component=kube-apiserver")
    images: dict[str, str] = {}
    for pod in pods:
        container = next((each for each in pod["spec"]["containers"] if each["name"] == "kube-apiserver"), None)
        if container is None:
            raise OperatorError(f'cannot find container by name "kube-apiserver" for Pod kube-system/{pod["metadata"]["name"]}')
        images[pod["spec"].get("nodeName", "")] = container["image"]
    if node_name not in images:
        raise OperatorError(f"cannot find kube-apiserver image for current control plane instance {node_name}")
    return sorted(node for node, image in images.items() if image != images[node_name])


def gate_warnings(gates: Mapping[str, bool], ctx: NodeContext) -> list[str]:
    """What to say about feature gates of the cluster that this release is giving up, or no longer has."""
    known = ctx.release.feature_gates
    found = []
    for name in sorted(gates):
        if name not in known:
            found.append(f"Unknown feature gate flag: {name}")
        elif known[name].stage == "DEPRECATED":
            found.append(known[name].deprecation)
    return found


def _kubelet_errors(new: Version, kubelets: Iterable[str]) -> list[str]:
    too_old = []
    for text in sorted(kubelets):
        try:
            kubelet = Version.parse(text)
        except ValueError:
            return [f"couldn't parse kubelet version {text}"]
        if new.minor > kubelet.minor + KUBELET_SKEW:
            too_old.append(text)
    if not too_old:
        return []
    return [f"There are kubelets in this cluster that are too old that have these versions [{' '.join(too_old)}]"]


def _listed(errors: Iterable[str]) -> str:
    return "".join(f"\t- {error}\n" for error in errors)
