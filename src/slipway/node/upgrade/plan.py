"""``upgrade plan``: the versions that a cluster can be upgraded to, and what each of its components would become.

``observe`` reads what the cluster runs, ``available`` decides on the upgrades, ``text`` and ``manifest`` show the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.machinery import tabwriter
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import KNOWN_PATCHES, release_for
from slipway.node import addons
from slipway.node.config import cluster as clusterconfig
from slipway.node.config import version as kubeversion
from slipway.node.preflight import check, machine
from slipway.node.upgrade import health, policy
from slipway.workload import configmaps, images, kubeproxy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext

NodesByVersion = dict[str, list[str]]
"""The names of nodes by the version of a component."""

# The kinds of configuration that kubeadm looks after, with the one version of each that it knows.
_COMPONENT_CONFIGS = ((kubeproxy.GROUP, "v1alpha1"), (configmaps.KUBELET_GROUP, "v1beta1"))


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster runs."""

    api_servers: NodesByVersion
    controller_managers: NodesByVersion
    schedulers: NodesByVersion
    etcds: NodesByVersion
    """Empty where etcd is external."""
    kubelets: NodesByVersion
    dns: str
    """The tag of CoreDNS; empty where there is none."""

    @property
    def version(self) -> Version:
        """That of the newest API server."""
        return max(_version(text, nodes) for text, nodes in self.api_servers.items())


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What the kubeadm that is acted as comes with."""

    kubeadm: str
    dns: str
    etcd: Callable[[str], str]
    """The etcd for a version of Kubernetes."""


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """One possible upgrade."""

    description: str
    target: str
    kubeadm: str
    """The kubeadm that is needed for it."""
    dns: str
    etcd: str
    """Empty where etcd is external."""


class Component(NamedTuple):
    name: str
    current: str
    target: str
    node: str = ""


LookUp = Callable[[str, str], str]
"""The version that a label stands for, and what to call it in an error: OperatorError where that is not to be had."""


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a command line and an UpgradeConfiguration ask for."""

    version: str = ""
    """Empty: look up what there is."""
    experimental: bool = False
    release_candidates: bool = False
    with_etcd: bool = True
    show_configuration: bool = False
    ignored: frozenset[str] = frozenset()
    """Lower-case names of preflight checks whose errors are only told."""


def make(ctx: NodeContext, cluster: Cluster, options: PlanOptions) -> Plan | None:
    """Check the cluster and plan; None where nothing is newer than what it runs.  The context's configuration is set here."""
    say = ctx.progress.say
    say("[preflight] Running pre-flight checks.")
    check.run([machine.privileged_user()], ctx.host, ctx.progress, options.ignored)
    addons.check_corefile(ctx, cluster, options.ignored)
    ctx.config = clusterconfig.read(cluster, ctx.release, ctx.progress, "upgrade/config")
    present = dict(ctx.config.cluster.component_configs)
    health.check(ctx, cluster, options.ignored)
    for warning in policy.gate_warnings(ctx.config.cluster.feature_gates, ctx):
        say(f"[upgrade/config] {warning}")
    if options.show_configuration:
        lines = configmaps.cluster_configuration(ctx.config.cluster, ctx.release).splitlines()
        say("\n".join(["[upgrade/config] Configuration used:", *(f"\t{line}" for line in lines)]))
    say("[upgrade] Fetching available versions to upgrade to")
    state, offer = observe(cluster), offer_of(ctx.release)
    look_up = _given(options.version) if options.version else _asked(ctx)
    upgrades = available(
        state, offer, look_up, ctx.progress, experimental=options.experimental, release_candidates=options.release_candidates
    )
    if not upgrades:
        return None
    listed = [(each.description, components(state, each, offer.kubeadm, with_etcd=options.with_etcd)) for each in upgrades]
    return Plan(upgrades=listed, configs=config_states(present))


def acting_release(environment: Mapping[str, str], requested: str, running: Version) -> Release:
    """The kubeadm of the requested version; where none is, the one that can upgrade the running cluster by a minor."""
    if requested or kubeversion.acts_as_one_release(environment):
        return kubeversion.acting_release(environment, requested)
    minor = min(running.minor + policy.UPGRADE_SKEW, max(KNOWN_PATCHES))
    return release_for(Version(running.major, minor, KNOWN_PATCHES.get(minor, 0)))


def _given(version: str) -> LookUp:
    """A version that was given is every label's, and nothing is looked up."""

    def look_up(_: str, description: str) -> str:
        try:
            Version.parse(version)
        except ValueError:
            raise OperatorError(f'Couldn\'t parse version {description}: could not parse "{version}" as version') from None
        return version

    return look_up


def _asked(ctx: NodeContext) -> LookUp:
    """A release server is asked; one that did not answer is not asked again, because not to answer can take seconds."""
    unanswered: list[str] = []
    ask = kubeversion.release_server(ctx.host)

    def ask_once(url: str) -> str:
        if unanswered:
            raise OperatorError(f'unable to get URL "{url}": the server did not answer before')
        try:
            return ask(url)
        except OperatorError:
            unanswered.append(url)
            raise

    return lambda label, _: kubeversion.resolve(label, ctx.release, ctx.progress.warn, ask_once)


def observe(cluster: Cluster) -> State:
    """Ask the cluster what it runs."""

    def versions(component: str) -> NodesByVersion:
        found: NodesByVersion = {}
        for pod in cluster.list("v1", "Pod", "kube-system", {"component": component, "tier": "control-plane"}):
            # Tags have no +, so that of a build is written as _.
            tag = images.tag_of(pod["spec"]["containers"][0]["image"]).replace("_", "+", 1)
            found.setdefault(tag, []).append(pod["spec"].get("nodeName", ""))
        return found

    api_servers = versions("kube-apiserver")
    if not api_servers:
        raise OperatorError(
            "cannot find the Pods of kube-apiserver (labels component=kube-apiserver, tier=control-plane) in kube-system: "
            "is this cluster one of kubeadm?"
        )
    return State(
        api_servers=api_servers,
        controller_managers=versions("kube-controller-manager"),
        schedulers=versions("kube-scheduler"),
        etcds=versions("etcd"),
        kubelets=policy.kubelet_versions(cluster.list("v1", "Node", "", {})),
        dns=addons.deployed_coredns(cluster).version,
    )


def offer_of(release: Release) -> Offer:
    def etcd(version: str) -> str:
        known = release.etcd_versions
        return known[min(max(Version.parse(version).minor, min(known)), max(known))]

    return Offer(kubeadm=f"v{release.version}", dns=release.coredns_version, etcd=etcd)


def available(
    state: State, offer: Offer, look_up: LookUp, progress: Progress, *, experimental: bool = False, release_candidates: bool = False
) -> list[Upgrade]:
    """The upgrades that kubeadm would offer: the newest patch of the cluster's minor, the newest release, and previews if allowed."""
    running = state.version
    if len(state.api_servers) > 1:
        told = ", ".join(f"{version} on nodes [{' '.join(nodes)}]" for version, nodes in sorted(state.api_servers.items()))
        progress.warn(
            f"Different API server versions in the cluster were discovered: {told}. "
            "Please upgrade your control plane nodes to the same version of Kubernetes"
        )
    progress.say(f"[upgrade/versions] Cluster version: {running}")
    progress.say(f"[upgrade/versions] kubeadm version: {offer.kubeadm}")
    try:
        stable = look_up("stable", "stable version")
        progress.say(f"[upgrade/versions] Target version: {stable}")
    except OperatorError as error:
        progress.warn(f"[upgrade/versions] WARNING: {error.message}")
        progress.warn("[upgrade/versions] WARNING: Falling back to current kubeadm version as latest stable version")
        stable = offer.kubeadm

    def upgrade(description: str, target: str, kubeadm: str = "") -> Upgrade:
        etcd = offer.etcd(target) if state.etcds else ""
        return Upgrade(description=description, target=target, kubeadm=kubeadm or target, dns=offer.dns, etcd=etcd)

    found = []
    newest, own = Version.parse(stable), Version.parse(offer.kubeadm)
    has_newer_minor = running < newest
    # Before the first release of a minor there are no patches of it.
    if newest >= running:
        description = f"version in the v{running.major}.{running.minor} series"
        try:
            patch = look_up(f"stable-{running.major}.{running.minor}", description)
        except OperatorError as error:
            progress.warn(f"[upgrade/versions] WARNING: {error.message}")
        else:
            progress.say(f"[upgrade/versions] Latest {description}: {patch}")
            has_newer_minor = Version.parse(patch) < newest
            if running < Version.parse(patch):
                found.append(upgrade(description, patch, offer.kubeadm if own >= Version.parse(patch) else patch))
    if has_newer_minor:
        found.append(upgrade("stable version", stable))
    if experimental or release_candidates:
        found += _previews(running, look_up, progress, upgrade, experimental=experimental, release_candidates=release_candidates)
    progress.say("")
    return found


def components(state: State, upgrade: Upgrade, kubeadm: str, *, with_etcd: bool) -> list[Component]:
    """What becomes of each component, in kubeadm's order; kubelets are left out where all are there already."""

    def rows(name: str, found: NodesByVersion, target: str) -> list[Component]:
        return [Component(name, version, target, node) for version in sorted(found) for node in found[version]]

    kubelets = state.kubelets if can_upgrade_kubelets(state.kubelets, upgrade.target) else {}
    return [
        *rows("kubelet", kubelets, upgrade.target),
        *rows("kube-apiserver", state.api_servers, upgrade.target),
        *rows("kube-controller-manager", state.controller_managers, upgrade.target),
        *rows("kube-scheduler", state.schedulers, upgrade.target),
        Component("kube-proxy", str(state.version), upgrade.target),
        Component("CoreDNS", state.dns, upgrade.dns),
        Component("kubeadm", kubeadm, upgrade.kubeadm),
        *(rows("etcd", state.etcds, upgrade.etcd) if with_etcd else ()),
    ]


def can_upgrade_kubelets(kubelets: NodesByVersion, target: str) -> bool:
    return len(kubelets) > 1 or (bool(kubelets) and target not in kubelets)


def config_states(present: Mapping[str, object]) -> list[Manifest]:
    """The versions of the component configurations; what the cluster does not have will be made anew."""
    return [
        {
            "group": group,
            "currentVersion": version if group in present else "",
            "preferredVersion": version,
            "manualUpgradeRequired": False,
        }
        for group, version in _COMPONENT_CONFIGS
    ]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The possible upgrades, with the components of each."""

    upgrades: list[tuple[str, list[Component]]]
    configs: list[Manifest]

    def manifest(self) -> Manifest:
        """The plan in the output API of kubeadm; its JSON has the kind first."""
        listed = [
            {"description": description, "components": [_fields(component) for component in found]} for description, found in self.upgrades
        ]
        return {
            "kind": "UpgradePlan",
            "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
            **({"availableUpgrades": listed} if listed else {}),
            **({"configVersions": self.configs} if self.configs else {}),
        }

    def text(self) -> str:
        """The plan for a person."""
        return "".join(_upgrade_text(description, found) for description, found in self.upgrades) + _config_text(self.configs)


_SEPARATOR = f"{'_' * 69}\n\n"
_HEADER = ("COMPONENT", "NODE", "CURRENT", "TARGET")


def _upgrade_text(description: str, found: Sequence[Component]) -> str:
    target = next(component.target for component in found if component.name == "kube-apiserver")
    kubeadm = next(component for component in found if component.name == "kubeadm")
    by_hand = [_row(component) for component in found if component.name == "kubelet"]
    others = [_row(component) for component in found if component.name not in ("kubelet", "kubeadm")]
    preview = Version.parse(target).prerelease
    flag = "release-candidate" if preview.startswith("rc") else "experimental"
    note = f"Note: Before you can perform this upgrade, you have to update kubeadm to {kubeadm.target}.\n\n"
    return (
        "Components that must be upgraded manually after you have upgraded the control plane with 'kubeadm upgrade apply':\n"
        f"{tabwriter.aligned([_HEADER, *by_hand])}\n"
        f"Upgrade to the latest {description}:\n\n"
        f"{tabwriter.aligned([_HEADER, *others])}\n"
        "You can now apply the upgrade by executing the following command:\n\n"
        f"\tkubeadm upgrade apply {target}{f' --allow-{flag}-upgrades' if preview else ''}\n\n"
        f"{note if kubeadm.current != kubeadm.target else ''}"
        f"{_SEPARATOR}"
    )


def _config_text(configs: Sequence[Manifest]) -> str:
    rows = [
        (
            state["group"],
            state["currentVersion"] or "-",
            state["preferredVersion"] or "-",
            "yes" if state["manualUpgradeRequired"] else "no",
        )
        for state in configs
    ]
    table = tabwriter.aligned([("API GROUP", "CURRENT VERSION", "PREFERRED VERSION", "MANUAL UPGRADE REQUIRED"), *rows])
    return f"{_CONFIG_EXPLANATION}{table}{_SEPARATOR}"


_CONFIG_EXPLANATION = """
The table below shows the current state of component configs as understood by this version of kubeadm.
Configs that have a "yes" mark in the "MANUAL UPGRADE REQUIRED" column require manual config upgrade or
resetting to kubeadm defaults before a successful upgrade can be performed. The version to manually
upgrade to is denoted in the "PREFERRED VERSION" column.

"""


def _row(component: Component) -> tuple[str, str, str, str]:
    return component.name, component.node, component.current, component.target


def _fields(component: Component) -> Manifest:
    fields = {"name": component.name, "currentVersion": component.current, "newVersion": component.target}
    return {**fields, "nodeName": component.node} if component.node else fields


def _previews(
    running: Version,
    look_up: LookUp,
    progress: Progress,
    upgrade: Callable[[str, str], Upgrade],
    *,
    experimental: bool,
    release_candidates: bool,
) -> list[Upgrade]:
    """The newest version of all is an alpha; the minor before it may be near its release, and is then of more interest."""
    latest = look_up("latest", "experimental version")
    progress.say(f"[upgrade/versions] Latest experimental version: {latest}")
    alpha = Version.parse(latest)
    previous = look_up(f"latest-1.{alpha.minor - 1}", "previous version")
    progress.say(f"[upgrade/versions] Latest previous version: {previous}")
    candidate = Version.parse(previous)
    found = []
    if release_candidates and candidate.prerelease.startswith("rc") and running < candidate:
        found.append(upgrade("release candidate version", previous))
    if experimental and running < alpha:
        found.append(upgrade("experimental version", previous if alpha.prerelease == "alpha.0" else latest))
    return found


def _version(text: str, nodes: Sequence[str]) -> Version:
    try:
        return Version.parse(text)
    except ValueError:
        raise OperatorError(f"couldn't parse kube-apiserver version {text} from nodes [{' '.join(nodes)}]") from None
