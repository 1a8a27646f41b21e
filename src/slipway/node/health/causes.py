"""The likely cause of a failure, in a sentence, from what a program wrote before it ended.  Values in, values out.

The texts are those of kube-apiserver, kube-controller-manager, kube-scheduler, etcd, the kubelet and the container runtimes;
the sentences say what they mean for the person who set up the node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Failure(NamedTuple):
    """What is known of a program that does not run as it should."""

    log: tuple[str, ...]
    exits: int
    """How often it has ended."""
    exit_code: int
    message: str
    """What the container runtime says about the end, such as ``OOMKilled``."""


class Cause(NamedTuple):
    """Why, and after how many ends of the same kind no further start will help; None: another one may."""

    sentence: str
    certain_after: int | None
    named: bool = True
    """Whether the text is one that is known; else the sentence only repeats the last error."""
    line: str = ""
    """The line that told."""
    fix: str = ""
    """The commands that would help, where the sentence does not say it already."""

    @property
    def fixes(self) -> tuple[str, ...]:
        return (self.fix,) if self.fix else ()

    @property
    def clause(self) -> str:
        """To be put after what is wrong; empty where the cause is not known."""
        return f": {self.sentence}" if self.named else ""


UNKNOWN = Cause("it left no message", None, named=False)


class _Sign(NamedTuple):
    """A text that tells a cause; ``\\1`` in the sentence and in the fix is what its first group matched."""

    text: re.Pattern[str]
    sentence: str
    certain_after: int | None
    fix: str


def _sign(text: str, sentence: str, certain_after: int | None, fix: str = "") -> _Sign:
    return _Sign(re.compile(text), sentence, certain_after, fix)


# A flag that is unknown today is unknown tomorrow; a port, a file or a disk may be freed between two starts.
_UNMENDING, _TWICE, _UNNAMED = 1, 2, 4

_COMMON = (
    _sign(r"unknown flag: ([^\s\"]+)", r"it does not know the flag \1; take it out of the configuration's extraArgs", _UNMENDING),
    _sign(r"unknown shorthand flag: (.+)", r"it does not know a flag: \1; look at the configuration's extraArgs", _UNMENDING),
    _sign(
        r"flag provided but not defined: (\S+)", r"it does not know the flag \1; take it out of the configuration's extraArgs", _UNMENDING
    ),
    _sign(
        r"""invalid argument \\?"(.*?)\\?" for \\?"(\S+?)\\?" flag""",
        r"\1 is not a value for its flag \2; look at the configuration's extraArgs",
        _UNMENDING,
    ),
    _sign(
        r"invalid value \"(.*?)\" for flag (-[^\s:]+)",
        r"\1 is not a value for its flag \2; look at the configuration's extraArgs",
        _UNMENDING,
    ),
    _sign(
        r"listen tcp\d? (\S+?): bind: address already in use",
        r"the port of \1 is taken by another process; 'ss -ltnp' shows by which one",
        _TWICE,
    ),
    _sign(
        r"listen tcp\d? (\S+?): bind: cannot assign requested address",
        r"this machine does not have the address of \1; look at localAPIEndpoint.advertiseAddress",
        _TWICE,
    ),
    _sign(
        r"no space left on device",
        "the disk is full",
        _TWICE,
        "find what fills it (df -h; du -xh --max-depth=2 /var | sort -h | tail), and remove that, or give the disk more room",
    ),
    _sign(
        r"(?:inotify_init|fsnotify watcher): too many open files",
        "this machine has no inotify instances left; raise fs.inotify.max_user_instances with sysctl",
        3,
    ),
    _sign(r"open (\S+): permission denied", r"it may not read \1", _TWICE),
    _sign(r"(?:open|stat) (\S+): no such file or directory", r"it needs the file \1, which is not there, or is not mounted", _TWICE),
)

# What a component says of another one that it needs: that one is to be looked at, and it may come yet.
_RENEW = "slipway certs check-expiration, then slipway certs renew all, and restart the static Pods"
_DISTRUST = (
    _sign(
        r"x509: certificate has expired or is not yet valid: current time (\S+) is (after|before) ([^\s\"\\]+)",
        r"a certificate is not valid at this machine's time (\1 is \2 \3)",
        3,
        f"look at the clock (timedatectl); if that is right: {_RENEW}",
    ),
    _sign(
        r"(?:authentication handshake failed|Error while dialing).*?(x509: .*?)(?:\\?\"|$)",
        r"it and etcd do not trust each other's certificates (\1)",
        3,
    ),
    _sign(r"remote error: tls: (bad certificate|unknown certificate authority)", r"the other side refuses its certificate (\1)", 3),
)
_COMPACT = (
    "compact and defragment etcd (etcdctl compact REVISION; etcdctl defrag), then etcdctl alarm disarm; "
    "or raise --quota-backend-bytes in /etc/kubernetes/manifests/etcd.yaml"
)
_DEPENDENCY = (
    _sign(r"mvcc: database space exceeded", "etcd's database has reached its quota, and takes no more writes", None, _COMPACT),
    _sign(
        r"etcdserver: no leader",
        "etcd has no leader, since most of its members cannot be reached",
        None,
        "bring the other members back, or take those that are gone for good out of etcd (etcdctl member list; etcdctl member remove ID)",
    ),
    _sign(r"error creating storage factory: context deadline exceeded", "etcd does not answer it in time", None),
    _sign(r"[Ll]eaderelection lost|failed to renew lease", "it lost its lease because the API server did not answer in time", None),
    _sign(
        r"dial tcp (\S+): (?:connect: )?(connection refused|no route to host|i/o timeout)",
        r"it cannot reach \1 (\2), which it needs",
        None,
    ),
)

_RESTORE = (
    "where other members of etcd are well: slipway reset here, and join this control plane again; "
    "else restore a snapshot (etcdutl snapshot restore FILE --data-dir /var/lib/etcd)"
)
_ETCD = (
    _sign(
        r"((?:walpb?|snap): crc mismatch|wal: slice bounds out of range|failed to read WAL, cannot be repaired)",
        r"its write-ahead log is damaged (\1)",
        _TWICE,
        _RESTORE,
    ),
    _sign(
        r"(?:failed to open database|Opening bbolt db).*?(invalid database|checksum error|version mismatch)",
        r"its database file is damaged (\1)",
        _TWICE,
        _RESTORE,
    ),
    _sign(r"etcdserver: corrupt cluster", "its data differ from those of the other members", _TWICE, _RESTORE),
    _sign(r"member count is unequal|member .* has already been bootstrapped", "its data folder belongs to another etcd cluster", _TWICE),
    _sign(r"cluster ID mismatch", "its peers belong to another etcd cluster", _TWICE),
    _sign(r"the member has been permanently removed from the cluster", "its member was removed from the etcd cluster", _TWICE),
)

_RUNTIME = (
    _sign(r"OOMKilled", "it was killed because there was not enough memory", _TWICE),
    _sign(r"executable file not found|exec format error", "its image does not have the program for this machine", _TWICE),
    _sign(r"failed to mount|error mounting", "one of its volumes cannot be mounted", _TWICE),
)

# Told a line before the kubelet gives up for want of another kubeconfig, which is the consequence.
_KUBELET_FIRST = (
    _sign(
        r"part of the existing bootstrap client certificate in (\S+) is expired: ([^\"]+?)\"",
        r"its client certificate in \1 has expired (\2), and it did not get a new one in time",
        _UNMENDING,
        "on a control plane: slipway kubeconfig user --org system:nodes --client-name system:node:NAME > kubelet.conf, "
        "put it to /etc/kubernetes/kubelet.conf of this node, then systemctl restart kubelet",
    ),
)
_KUBELET = (
    _sign(
        r"running with swap on is not supported",
        "swap is on; turn it off ('swapoff -a'), or set failSwapOn: false in the KubeletConfiguration",
        _UNMENDING,
    ),
    _sign(
        r"configuration, error: kubelet is configured to not run on a host using cgroup v1",
        "this machine has cgroup v1, which the kubelet refuses; use cgroup v2, or set failCgroupV1: false in the KubeletConfiguration",
        _UNMENDING,
    ),
    _sign(
        r"failed to validate kubelet configuration, error: (.*?), path: ",
        r"its configuration is not valid: \1",
        _UNMENDING,
    ),
    _sign(
        r"failed to load kubelet config file, path: ([^,]+), error: failed to load Kubelet config file \S+, error (.*?)\"?$",
        r"its configuration file \1 cannot be used: \2",
        _UNMENDING,
    ),
    _sign(
        r"cgroup driver: \\?\"(\w+)\\?\" is different from \S+ cgroup driver: \\?\"(\w+)|expected cgroupsPath to be of format",
        "the kubelet and the container runtime use different cgroup drivers; set cgroupDriver in the KubeletConfiguration to the runtime's",
        3,
    ),
    _sign(
        r"[Ff]ailed to pull (?:and unpack )?image \\?\"(\S+?)\\?\".*?(not found|denied|unauthorized|no such host|timeout|refused)",
        r"the image \1 cannot be pulled (\2)",
        3,
    ),
    _sign(r"failed to get sandbox image \\?\"(\S+?)\\?\"", r"the runtime's sandbox image \1 cannot be had", 3),
    _sign(
        r"couldn't parse as pod\((.*?)\), please check config file",
        r"the kubelet cannot read the manifest: \1",
        _TWICE,
        "correct the file, or have it written anew: slipway init phase control-plane all (etcd's: slipway init phase etcd local)",
    ),
    _sign(
        r"validate CRI v1 (?:runtime|image) API for endpoint \\?\"(\S+?)\\?\".*unknown service runtime",
        r"the container runtime at \1 does not serve the CRI; containerd may have it disabled",
        None,
        "take cri out of disabled_plugins in /etc/containerd/config.toml, then systemctl restart containerd",
    ),
    _sign(
        r"validate CRI v1 (?:runtime|image) API for endpoint \\?\"(\S+?)\\?\"",
        r"the container runtime at \1 does not answer; 'systemctl status containerd' tells more",
        None,
    ),
    _sign(r"(?:unable to read existing bootstrap client config|invalid kubeconfig|unable to load bootstrap kubeconfig)(.*)",
          r"its kubeconfig cannot be used\1", _TWICE),
    _sign(r"failed to initialize top level QOS containers|Failed to start ContainerManager", "it cannot set up the cgroups of Pods", 3),
)  # fmt: skip

# What containerd says when it does not start, or starts without what the kubelet needs.
_CONTAINERD = (
    _sign(
        r"^containerd: failed to load TOML: (?:\S+: failed to load TOML: )?([^\s:]+): (.+)",
        r"its configuration \1 is not valid: \2",
        _UNMENDING,
        r"correct \1, then systemctl restart containerd",
    ),
    _sign(
        r"failed to load plugin (?:id=)?io\.containerd\.(?:grpc\.v1\.cri|cri\.v1\.runtime)\"? error=\"(.*?)\"(?: |$)",
        r"its CRI plugin does not start: \1",
        _TWICE,
        "correct /etc/containerd/config.toml, then systemctl restart containerd",
    ),
    _sign(r"^containerd: (.+)", r"it says: \1", _UNMENDING, "look at /etc/containerd/config.toml, then systemctl restart containerd"),
)

_ERROR_LINE = re.compile(r'^[EF]\d{4} |^Error:|^error:|^panic:|"level":"(?:error|fatal|panic)"|^FATAL|^fatal')
_HARMLESS = re.compile(r'^[IW]\d{4} |^\{"level":"(?:debug|info|warn)"')
_KLOG_HEAD = re.compile(r"^[EFWI]\d{4} \S+ +\d+ \S+\] ")
_VARYING = re.compile(r"\d+")


def cause_of(component: str, failure: Failure) -> Cause:
    """The cause of a container's failure; without a known text it is the last error that the program wrote.

    What is wrong with the component itself comes before what it says of others, which it may only have been waiting for.
    """
    own = (*_RUNTIME, *_COMMON, *(_ETCD if component == "etcd" else ()))
    return (
        _known(own, failure)
        or _known(_DISTRUST, failure, all_lines=True)
        or _known(_DEPENDENCY, failure, all_lines=True)
        or _unnamed(failure)
    )


def kubelet_cause_of(failure: Failure) -> Cause:
    return _known(_KUBELET_FIRST, failure) or _known((*_KUBELET, *_COMMON), failure) or _unnamed(failure)


def runtime_cause_of(failure: Failure) -> Cause:
    return _known((*_CONTAINERD, *_COMMON), failure, all_lines=True) or _unnamed(failure)


def last_error(log: Sequence[str]) -> str:
    """The last line that is an error, without klog's head; the last line of all where none is."""
    lines = [line for line in log if _ERROR_LINE.search(line)] or list(log)
    return _KLOG_HEAD.sub("", lines[-1]).strip() if lines else ""


def _known(signs: Sequence[_Sign], failure: Failure, *, all_lines: bool = False) -> Cause | None:
    """The newest line that has a sign decides, for what was complained about before may have been mended.

    A warning may name a file that is missing without harm, so it counts only where all lines do.
    """
    lines = [line for line in reversed(failure.log) if all_lines or not _HARMLESS.match(line)]
    for line in (failure.message, *lines):
        for sign in signs:
            if line and (match := sign.text.search(line)):
                return Cause(_tidy(match.expand(sign.sentence)), sign.certain_after, line=line, fix=match.expand(sign.fix))
    return None


def _unnamed(failure: Failure) -> Cause:
    error = last_error(failure.log)
    if not error:
        return UNKNOWN
    return Cause(f"it says: {_tidy(error)}", _UNNAMED, named=False)


def same_kind(one: str, other: str) -> bool:
    """Whether two sentences differ in numbers alone: times, ports and process ids."""
    return _VARYING.sub("0", one) == _VARYING.sub("0", other)


def _tidy(text: str) -> str:
    shortened = text.replace('\\"', '"').strip().rstrip(".")
    return shortened if len(shortened) <= 400 else f"{shortened[:400]} …"
