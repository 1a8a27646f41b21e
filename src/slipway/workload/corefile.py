"""What a Corefile says, and what a newer CoreDNS makes of it.

kubeadm leaves this to the library coredns/corefile-migration; the tables below are what 1.0.31 of it (kubeadm 1.36) knows
of CoreDNS 1.6 and later, and a release that ships an older CoreDNS knows the versions up to its own.  Since CoreDNS 1.8 no
option was removed and none became a default, so that a Corefile of these days is never rewritten: what matters is to
tell which plugins and options nobody has looked at.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

from slipway.api.machinery.errors import OperatorError

VERSIONS = (
    "1.6.0", "1.6.1", "1.6.2", "1.6.3", "1.6.4", "1.6.5", "1.6.6", "1.6.7", "1.6.9", "1.7.0", "1.7.1", "1.8.0", "1.8.3", "1.8.4",
    "1.8.5", "1.8.6", "1.8.7", "1.9.0", "1.9.1", "1.9.2", "1.9.3", "1.9.4", "1.10.0", "1.10.1", "1.11.0", "1.11.1", "1.11.3",
    "1.11.4", "1.12.0", "1.12.1", "1.12.2", "1.12.3", "1.12.4", "1.13.0", "1.13.1", "1.13.2", "1.14.0", "1.14.1", "1.14.2",
)  # fmt: skip
"""Those that had an image, in order; migration goes from one to the next."""

Value = TypeVar("Value")

UNSUPPORTED, IGNORED, REMOVED, NEW_DEFAULT = "unsupported", "ignored", "removed", "newdefault"

_FORWARD = "except,force_tcp,prefer_udp,expire,max_fails,tls,tls_servername,policy,health_check"
_KUBERNETES = "endpoint,tls,kubeconfig,namespaces,labels,pods,endpoint_pod_names,ttl,noendpoints,fallthrough,ignore"
# The options of each plugin, from a version on.
_OPTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "autopath": (("1.6.0", ""),),
    "cache": (
        ("1.6.0", "success,denial,prefetch"),
        ("1.6.6", "success,denial,prefetch,serve_stale"),
        ("1.7.0", "success,denial,prefetch"),
        ("1.9.4", "success,denial,prefetch,serve_stale,disable,servfail"),
        ("1.10.1", "success,denial,prefetch,serve_stale,disable,servfail,keepttl"),
    ),
    "errors": (("1.6.0", "consolidate"), ("1.9.3", "consolidate,stacktrace")),
    "forward": (
        ("1.6.0", _FORWARD),
        ("1.6.9", f"{_FORWARD},max_concurrent"),
        ("1.11.4", f"{_FORWARD},max_concurrent,next,fail_fast"),
        ("1.12.0", f"{_FORWARD},max_concurrent,next,failfast_all_unhealthy_upstreams"),
    ),
    "health": (("1.6.0", "lameduck"),),
    "hosts": (("1.6.0", "ttl,no_reverse,reload,fallthrough"),),
    "k8s_external": (("1.6.0", "apex,ttl"), ("1.11.0", "apex,ttl,fallthrough")),
    "kubernetes": (
        ("1.6.0", f"{_KUBERNETES},resyncperiod,upstream,transfer"),
        ("1.8.0", f"{_KUBERNETES},transfer"),
        ("1.8.3", _KUBERNETES),
    ),
    "loadbalance": (("1.6.0", ""),),
    "log": (("1.6.0", "class"),),
    "loop": (("1.6.0", ""),),
    "prometheus": (("1.6.0", ""),),
    "ready": (("1.6.0", ""),),
    "reload": (("1.6.0", ""),),
    "rewrite": (
        ("1.6.0", "type,class,name,answer name,edns0,ttl"),
        ("1.11.0", "type,class,name,answer name,edns0,ttl,cname_target"),
    ),
    "transfer": (("1.8.0", "to"),),
}
# Lines of hosts are addresses with names.
_HOSTS_LINE = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|[0-9A-Fa-f]{1,4}:[:0-9A-Fa-f]+:[0-9A-Fa-f]{1,4}", re.ASCII)


class Option(NamedTuple):
    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.name, *_quoted(self.arguments)))


class Plugin(NamedTuple):
    name: str
    arguments: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()

    def __str__(self) -> str:
        line = " ".join((self.name, *_quoted(self.arguments)))
        lines = [f"{' ' * 8}{option}" for option in self.options]
        return "\n".join([f"{line} {{", *lines, "    }"]) if lines else line


class Server(NamedTuple):
    zones: tuple[str, ...]
    """Its zones, with ports: ``.:53``."""
    plugins: tuple[Plugin, ...] = ()

    def __str__(self) -> str:
        line = " ".join(_quoted(self.zones))
        return "\n".join([f"{line} {{", *(f"    {plugin}" for plugin in self.plugins), "}\n"]) if self.plugins else line


class Rule(NamedTuple):
    """What became of an option."""

    status: str
    kept_arguments: int | None = None
    """How many arguments it keeps; None: the option goes."""
    added: str = ""
    """The default that is added where the option is absent."""


_IGNORED_OPTION, _REMOVED_OPTION = Rule(IGNORED), Rule(REMOVED)
# By plugin and option, from a version on; None: nothing special any more.
_RULES: dict[tuple[str, str], tuple[tuple[str, Rule | None], ...]] = {
    ("kubernetes", "endpoint"): (("1.6.0", Rule(IGNORED, kept_arguments=1)),),
    ("kubernetes", "resyncperiod"): (("1.6.0", _IGNORED_OPTION), ("1.7.0", _REMOVED_OPTION)),
    ("kubernetes", "upstream"): (("1.6.0", _IGNORED_OPTION), ("1.7.0", _REMOVED_OPTION)),
    ("kubernetes", "transfer"): (("1.6.0", None), ("1.8.0", _REMOVED_OPTION)),
    ("health", "lameduck"): (("1.6.0", None), ("1.6.5", Rule(NEW_DEFAULT, added="lameduck 5s")), ("1.6.6", None)),
    ("forward", "max_concurrent"): (("1.6.0", None), ("1.7.0", Rule(NEW_DEFAULT, added="max_concurrent 1000")), ("1.7.1", None)),
}
# The transfers of a zone became a plugin of their own.
_TRANSFER_PLUGIN_SINCE = "1.8.0"


class Notice(NamedTuple):
    """Something to know about a plugin or one of its options in a version."""

    plugin: str
    option: str
    severity: str
    version: str

    def __str__(self) -> str:
        what = f'Option "{self.option}" in plugin "{self.plugin}"' if self.option else f'Plugin "{self.plugin}"'
        told = {UNSUPPORTED: "unsupported by this migration tool", NEW_DEFAULT: "added as a default"}.get(self.severity, self.severity)
        return f"{what} is {told} in {self.version}."


def parse(text: str) -> tuple[Server, ...]:
    """The server blocks; tokens are split as Caddy's lexer does, on which CoreDNS is built."""
    tokens = list(_tokens(text))
    servers: list[tuple[tuple[str, ...], list[tuple[str, tuple[str, ...], list[Option]]]]] = []
    depth, at = 0, 0
    while at < len(tokens):
        word, line = tokens[at]
        at += 1
        if word in ("{", "}"):
            depth += 1 if word == "{" else -1
            continue
        arguments: list[str] = []
        end = line + word.count("\n")
        while at < len(tokens) and tokens[at][1] == end and tokens[at][0] != "{":
            arguments.append(tokens[at][0])
            end += tokens[at][0].count("\n")
            at += 1
        if depth == 0:
            servers.append(((word, *arguments), []))
        elif depth in (1, 2):
            if not servers or (depth == 2 and not servers[-1][1]):
                raise OperatorError(f'the Corefile cannot be understood: line {line} ("{word}") is in a block that belongs to nothing')
            if depth == 1:
                servers[-1][1].append((word, tuple(arguments), []))
            else:
                servers[-1][1][-1][2].append(Option(word, tuple(arguments)))
    return tuple(
        Server(zones, tuple(Plugin(name, arguments, tuple(options)) for name, arguments, options in plugins)) for zones, plugins in servers
    )


def render(servers: tuple[Server, ...]) -> str:
    return "\n".join(map(str, servers))


def steps(current: str, target: str, newest: str) -> tuple[str, ...]:
    """The versions to go through, without the first; an error where there is no way up.  ``newest`` is the last known one."""
    known = VERSIONS[: VERSIONS.index(newest) + 1]
    if current not in known:
        raise OperatorError(f"start version '{current}' not supported")
    if current == target:
        return ()
    if target not in known or known.index(target) < known.index(current):
        raise OperatorError(f"cannot migrate up to '{target}' from '{current}'")
    return known[known.index(current) + 1 : known.index(target) + 1]


def unsupported(text: str, versions: tuple[str, ...]) -> list[Notice]:
    """Plugins and options that are not in the tables: they may be right, but somebody should look at them."""
    found: list[Notice] = []
    for version in versions:
        for plugin in _plugins(text):
            options = _options(plugin.name, version)
            if options is None:
                found.append(Notice(plugin.name, "", UNSUPPORTED, version))
                continue
            names = [option.name for option in plugin.options if option.name not in options]
            if plugin.name == "hosts":
                names = [name for name in names if not _HOSTS_LINE.search(name)]
            found += [Notice(plugin.name, name, UNSUPPORTED, version) for name in names]
    return found


def changes(text: str, versions: tuple[str, ...]) -> list[Notice]:
    """What the versions ignore, no longer have, or have as a new default."""
    found = []
    for version in versions:
        for plugin in _plugins(text):
            for option in plugin.options:
                rule = _rule(plugin.name, option.name, version)
                if rule is not None and rule.status != NEW_DEFAULT:
                    found.append(Notice(plugin.name, option.name, rule.status, version))
            found += [Notice(plugin.name, name, NEW_DEFAULT, version) for name, _ in _new_defaults(plugin, version)]
    return found


def migrate(text: str, versions: tuple[str, ...]) -> str:
    """The Corefile for the last of the versions; the text itself where there is none to go to."""
    if not versions:
        return text
    servers = parse(text)
    for version in versions:
        if version == _TRANSFER_PLUGIN_SINCE:
            servers = tuple(map(_with_transfer_plugin, servers))
        servers = tuple(Server(zones, tuple(_migrated(plugin, version) for plugin in plugins)) for zones, plugins in servers)
    return render(servers)


def is_default(text: str) -> bool:
    """Whether it is the Corefile that some Kubernetes up to 1.20 came with; an empty one is, too."""
    servers = parse(text)
    return not servers or any(_matches_default(servers, parse(default)) for default in _DEFAULTS)


def _plugins(text: str) -> list[Plugin]:
    return [plugin for server in parse(text) for plugin in server.plugins]


def _options(plugin: str, version: str) -> frozenset[str] | None:
    options = _at(_OPTIONS.get(plugin, ()), version)
    return None if options is None else frozenset(filter(None, options.split(",")))


def _rule(plugin: str, option: str, version: str) -> Rule | None:
    options = _options(plugin, version)
    return _at(_RULES.get((plugin, option), ()), version) if options and option in options else None


def _new_defaults(plugin: Plugin, version: str) -> list[tuple[str, str]]:
    present = {option.name for option in plugin.options}
    rules = {name: _rule(owner, name, version) for owner, name in _RULES if owner == plugin.name and name not in present}
    return [(name, rule.added) for name, rule in rules.items() if rule is not None and rule.status == NEW_DEFAULT]


def _migrated(plugin: Plugin, version: str) -> Plugin:
    options = []
    for option in plugin.options:
        rule = _rule(plugin.name, option.name, version)
        if rule is None or rule.status == NEW_DEFAULT:
            options.append(option)
        elif rule.kept_arguments is not None:
            options.append(Option(option.name, option.arguments[: rule.kept_arguments]))
    # The whole default is the name, as in the library: a later version does not see it as the option that it is.
    options += [Option(added) for _, added in _new_defaults(plugin, version)]
    return Plugin(plugin.name, plugin.arguments, tuple(options))


def _with_transfer_plugin(server: Server) -> Server:
    """``transfer to ADDRESS`` of kubernetes is the plugin ``transfer ZONE`` from now on."""
    zone = ""
    to: tuple[str, ...] = ()
    for plugin in server.plugins:
        if plugin.name == "kubernetes":
            zone = plugin.arguments[0] if plugin.arguments else ""
            to = next((option.arguments for option in reversed(plugin.options) if option.name == "transfer"), to)
    if len(to) < 2:
        return server
    return Server(server.zones, (*server.plugins, Plugin("transfer", (zone,), (Option("to", to[1:]),))))


def _at(stages: tuple[tuple[str, Value], ...], version: str) -> Value | None:
    place = VERSIONS.index(version)
    return next((value for since, value in reversed(stages) if VERSIONS.index(since) <= place), None)


def _tokens(text: str) -> list[tuple[str, int]]:
    """Words and the lines that they begin on; quotes hold words together, ``#`` begins a comment."""
    found: list[tuple[str, int]] = []
    line, start, word = 1, 1, ""
    comment = quoted = escaped = False
    for char in text.removeprefix("\ufeff"):
        if quoted:
            line += char == "\n"
            if not escaped and char == "\\":
                escaped = True
            elif not escaped and char == '"':
                found.append((word, start))
                word, quoted = "", False
            else:
                word += f"\\{char}" if escaped and char != '"' else char
                escaped = False
        elif _is_space(char):
            if char == "\r":
                continue
            if char == "\n":
                line += 1
                comment = False
            if word:
                found.append((word, start))
                # The lexer forgets the comment that it is in when a word ends.
                word, comment = "", False
        elif char == "#" or comment:
            comment = True
        else:
            if not word:
                start = line
                if char == '"':
                    quoted = True
                    continue
            word += char
    return [*found, (word, start)] if word else found


def _is_space(char: str) -> bool:
    """Go's notion of white space: Python adds four separators."""
    return char.isspace() and char not in "\x1c\x1d\x1e\x1f"


def _quoted(words: tuple[str, ...]) -> list[str]:
    return ['"{}"'.format(word.replace('"', '\\"')) if len(word.split()) > 1 else word for word in words]


def _matches_default(servers: tuple[Server, ...], defaults: tuple[Server, ...]) -> bool:
    """Each server, plugin and option has its counterpart; the order does not matter."""
    if len(servers) != len(defaults):
        return False
    for server in servers:
        model = next((default for default in defaults if _matches(server.zones, default.zones)), None)
        if model is None or len(server.plugins) != len(model.plugins):
            return False
        for plugin in server.plugins:
            own = next((p for p in model.plugins if p.name == plugin.name and _matches(plugin.arguments, p.arguments)), None)
            if own is None or len(plugin.options) != len(own.options):
                return False
            if not all(
                any(o.name == option.name and _matches(option.arguments, o.arguments) for o in own.options) for option in plugin.options
            ):
                return False
    return True


def _matches(words: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """``*`` stands for one word, ``***`` for all that follow."""
    for place, wanted in enumerate(pattern):
        if wanted == "***":
            return True
        if wanted != "*" and (place >= len(words) or words[place] != wanted):
            return False
    return len(words) == len(pattern)


_TAIL = "loop\n reload\n loadbalance\n}"
_ANSWERS = "fallthrough in-addr.arpa ip6.arpa"
_MODERN = f"kubernetes * *** {{\n pods insecure\n {_ANSWERS}\n ttl 30\n }}\n prometheus :9153\n"
_UPSTREAM = f"kubernetes * *** {{\n pods insecure\n upstream\n {_ANSWERS}\n "
_LAMEDUCK = ".:53 {\n errors\n health {\n lameduck 5s\n }\n ready\n "
# What Kubernetes 1.19, 1.17, 1.16, 1.14, 1.12 and 1.11 came with.
_DEFAULTS = (
    f"{_LAMEDUCK}{_MODERN} forward . * {{\n max_concurrent 1000\n }}\n cache 30\n {_TAIL}",
    f"{_LAMEDUCK}{_MODERN} forward . *\n cache 30\n {_TAIL}",
    f".:53 {{\n errors\n health\n ready\n {_MODERN} forward . *\n cache 30\n {_TAIL}",
    f".:53 {{\n errors\n health\n {_UPSTREAM}ttl 30\n }}\n prometheus :9153\n forward . *\n cache 30\n {_TAIL}",
    f".:53 {{\n errors\n health\n {_UPSTREAM}}}\n prometheus :9153\n proxy . *\n cache 30\n {_TAIL}",
    f".:53 {{\n errors\n health\n {_UPSTREAM}}}\n prometheus :9153\n proxy . *\n cache 30\n reload\n}}",
)
