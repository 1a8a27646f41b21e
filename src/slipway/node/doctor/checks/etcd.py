"""etcd: this node's member, its data, its peers; and an etcd that is elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.node.doctor.finding import Check, Kind
from slipway.node.etcd.membership import remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Etcd, EtcdEndpoint, Facts
    from slipway.node.doctor.finding import Finding

_NEARLY = 0.8
_REJOIN = (
    "where another member is well: slipway reset here, and join this control plane again",
    "where none is: do not reset, keep the folder as it is, and restore a snapshot with etcdutl",
)
_CTL = (
    "etcdctl --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/server.crt --key /etc/kubernetes/pki/etcd/server.key"
)

SILENT = Kind("etcd-not-answering", "error", "this node's etcd does not answer", ("crictl logs $(crictl ps -a --name etcd -q | head -1)",))
NO_LEADER = Kind(
    "etcd-no-leader",
    "error",
    "etcd has no leader: most of its members cannot be reached, and nothing can be written",
    (f"{_CTL} member list -w table", "bring the other control planes back"),
)
ALARM = Kind("etcd-alarm", "error", "etcd has the alarm {alarm}: {means}", (f"{_CTL} alarm list",))
NEARLY_FULL = Kind(
    "etcd-nearly-full",
    "warning",
    "etcd's database has {size} of {quota} MiB: at its quota it takes no more writes",
    (f"{_CTL} defrag", "raise --quota-backend-bytes in /etc/kubernetes/manifests/etcd.yaml"),
)
LEARNER = Kind(
    "etcd-learner",
    "warning",
    "this node's etcd is a learner, and has no vote: its join did not end",
    ("slipway join phase etcd-join",),
)
NOT_MEMBER = Kind("etcd-not-a-member", "error", "etcd does not count this node among its members", _REJOIN)
MEMBER_LOST = Kind(
    "etcd-member-lost",
    "warning",
    "the member {member} of etcd does not answer: {left} more may be lost",
    ("look at that node: slipway doctor",),
)
DATA_MISSING = Kind("etcd-data-missing", "error", "the folder of etcd's data, {folder}, is not there", _REJOIN)
DATA_UNREADABLE = Kind("etcd-data-unreadable", "error", "etcd's data in {folder} are not those of an etcd", _REJOIN)
EXTERNAL = Kind(
    "etcd-external-not-answering",
    "error",
    "the external etcd at {url} does not answer this node",
    (
        "look at that machine, and at the way to it",
        "look at --etcd-cafile, --etcd-certfile and --etcd-keyfile in /etc/kubernetes/manifests/kube-apiserver.yaml",
    ),
)
DRIFT = Kind(
    "etcd-clock-differs", "warning", "etcd tells of a member whose clock differs from this machine's", ("timedatectl", "chronyc tracking")
)

_CORRUPT = "CORRUPT"
_ALARMS = {
    "NOSPACE": (
        "its database has reached its quota, and takes no more writes",
        (f"{_CTL} compact REVISION", f"{_CTL} defrag", f"{_CTL} alarm disarm"),
    ),
    _CORRUPT: ("the data of its members differ", _REJOIN),
}


def find(facts: Facts) -> Iterator[Finding]:
    etcd = facts.etcd
    if etcd is None or not facts.is_node:
        return
    if etcd.external:
        for endpoint in etcd.others:
            if endpoint.problem:
                yield EXTERNAL.found(endpoint.problem, url=endpoint.url)
        return
    if etcd.data_missing:
        yield DATA_MISSING.found(f"{etcd.data_dir}: no such folder", folder=etcd.data_dir)
    if etcd.owner_problem:
        yield DATA_UNREADABLE.found(etcd.owner_problem, folder=etcd.data_dir)
    if etcd.own is not None:
        yield from _own(facts, etcd, etcd.own)
    yield from _others(etcd)
    if etcd.drift:
        yield DRIFT.found(etcd.drift)


def _own(facts: Facts, etcd: Etcd, own: EtcdEndpoint) -> Iterator[Finding]:
    if own.problem:
        container = next((each.found for each in facts.runtime.components or () if each.name == "etcd"), None)
        # One that has ended is told of with its cause.
        if container is None or container.container.state == "running" or container.running_again:
            yield SILENT.found(own.problem)
        return
    status = own.status
    if status is None:
        return
    if status.leader == 0:
        yield NO_LEADER.found(
            f"{own.url}: its status names no leader",
        )
    for alarm in etcd.alarms:
        means, fix = _ALARMS.get(alarm.kind, ("etcd refuses work", ()))
        if alarm.kind == _CORRUPT and alarm.member_id != status.member_id:
            fix = _elsewhere(etcd, alarm.member_id)
        yield ALARM.found(f"member {alarm.member_id:x}: {alarm.kind}", fix=fix, alarm=alarm.kind, means=means)
    if status.db_size >= etcd.quota * _NEARLY and not etcd.alarms:
        size, quota = status.db_size >> 20, etcd.quota >> 20
        yield NEARLY_FULL.found(f"{own.url}: dbSize {status.db_size}, --quota-backend-bytes {etcd.quota}", size=size, quota=quota)
    if status.is_learner:
        yield LEARNER.found(f"{own.url}: isLearner of member {status.member_id:x}")
    elif etcd.members and status.member_id not in {member.id for member in etcd.members}:
        yield NOT_MEMBER.found(
            f"{own.url} is {status.member_id:x}, and the members are {', '.join(f'{each.id:x}' for each in etcd.members)}"
        )


def _elsewhere(etcd: Etcd, corrupt: int) -> tuple[str, ...]:
    """Of an alarm of another member, or of none that etcd could name: this one's data may be the good ones."""
    member = next((each for each in etcd.members if each.id == corrupt), None)
    if member is None:
        return ("do not reset this node before it is known which member differs", f"{_CTL} endpoint hashkv --cluster -w table")
    return (f"keep this node as it is: the member is {member.name or f'{corrupt:x}'}; look there: slipway doctor",)


def _others(etcd: Etcd) -> Iterator[Finding]:
    voters = [member for member in etcd.members if not member.is_learner]
    lost = [endpoint for endpoint in etcd.others if endpoint.problem]
    spare = max((len(voters) - 1) // 2 - len(lost), 0)
    for endpoint in lost:
        member = next((each for each in etcd.members if endpoint.url in each.client_urls), None)
        name = member.name or f"{member.id:x}" if member is not None else endpoint.url
        gone = (f"if it is gone for good: {remedy(member)}",) if member is not None else ()
        yield MEMBER_LOST.found(endpoint.problem, fix=(f"look at {name}: slipway doctor", *gone), member=name, left=spare)


CHECK = Check(
    "etcd",
    "this node's member of etcd, its data and its peers, or the external etcd",
    (SILENT, NO_LEADER, ALARM, NEARLY_FULL, LEARNER, NOT_MEMBER, MEMBER_LOST, DATA_MISSING, DATA_UNREADABLE, EXTERNAL, DRIFT),
    find,
)
