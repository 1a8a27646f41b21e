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


class _Sign(NamedTuple):
    """A text that tells a cause; ``\\1`` in the sentence is what its first group matched."""

    text: re.Pattern[str]
    sentence: str
    certain_after: int | None


def _sign(text: str, sentence: str, certain_after: int | None) -> _Sign:
    return _Sign(re.compile(text), sentence, certain_after)


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
    _sign(r"no space left on device", "the disk is full", _TWICE),
    _sign(
        r"(?:inotify_init|fsnotify watcher): too many open files",
        "this machine has no inotify instances left; raise fs.inotify.max_user_instances with sysctl",
        3,
    ),
    _sign(r"open (\S+): permission denied", r"it may not read \1", _TWICE),
    _sign(r"(?:open|stat) (\S+): no such file or directory", r"it needs the file \1, which is not there, or is not mounted", _TWICE),
)

# What a component says of another one that it needs: that one is to be looked at, and it may come yet.
_DISTRUST = (
    _sign(
        r"(?:authentication handshake failed|Error while dialing).*?(x509: .*?)(?:\\?\"|$)",
        r"it and etcd do not trust each other's certificates (\1)",
        3,
    ),
    _sign(r"remote error: tls: (bad certificate|unknown certificate authority)", r"the other side refuses its certificate (\1)", 3),
)
_DEPENDENCY = (
    _sign(r"error creating storage factory: context deadline exceeded", "etcd does not answer it in time", None),
    _sign(r"leaderelection lost|failed to renew lease", "it lost its lease because the API server did not answer in time", None),
    _sign(
        r"dial tcp (\S+): (?:connect: )?(connection refused|no route to host|i/o timeout)",
        r"it cannot reach \1 (\2), which it needs",
        None,
    ),
)

_ETCD = (
    _sign(r"member count is unequal|member .* has already been bootstrapped", "its data folder belongs to another etcd cluster", _TWICE),
    _sign(r"cluster ID mismatch", "its peers belong to another etcd cluster", _TWICE),
    _sign(r"the member has been permanently removed from the cluster", "its member was removed from the etcd cluster", _TWICE),
)

_RUNTIME = (
    _sign(r"OOMKilled", "it was killed because there was not enough memory", _TWICE),
    _sign(r"executable file not found|exec format error", "its image does not have the program for this machine", _TWICE),
    _sign(r"failed to mount|error mounting", "one of its volumes cannot be mounted", _TWICE),
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
        r"validate CRI v1 (?:runtime|image) API for endpoint \\?\"(\S+?)\\?\"",
        r"the container runtime at \1 does not answer; 'systemctl status containerd' tells more",
        None,
    ),
    _sign(r"(?:unable to read existing bootstrap client config|invalid kubeconfig|unable to load bootstrap kubeconfig)(.*)",
          r"its kubeconfig cannot be used\1", _TWICE),
    _sign(r"failed to initialize top level QOS containers|Failed to start ContainerManager", "it cannot set up the cgroups of Pods", 3),
)  # fmt: skip

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
    return _known((*_KUBELET, *_COMMON), failure) or _unnamed(failure)


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
                return Cause(_tidy(match.expand(sign.sentence)), sign.certain_after, line=line)
    return None


def _unnamed(failure: Failure) -> Cause:
    error = last_error(failure.log)
    if not error:
        return Cause("it left no message", None, named=False)
    return Cause(f"it says: {_tidy(error)}", _UNNAMED, named=False)


def same_kind(one: str, other: str) -> bool:
    """Whether two sentences differ in numbers alone: times, ports and process ids."""
    return _VARYING.sub("0", one) == _VARYING.sub("0", other)


def _tidy(text: str) -> str:
    shortened = text.replace('\\"', '"').strip().rstrip(".")
    return shortened if len(shortened) <= 400 else f"{shortened[:400]} …"
