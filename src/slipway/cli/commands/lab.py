"""``lab``: argv in, text out; what is done is in slipway.lab."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.host.progress import TextProgress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.cli.argv.parser import Invocation
    from slipway.lab.record import Lab


def components(call: Invocation) -> None:
    from slipway.lab.programs import cache, catalog
    from slipway.lab.programs.obtain import obtain

    if call.switch("list"):
        _table(call, cache.listing(), ("program", "version", "size", "source"))
        return
    if call.switch("prune"):
        freed = cache.prune(call.arguments)
        sys.stdout.write(f"[components] Freed {freed / 1e6:.0f} MB; kept: {', '.join(call.arguments) or 'nothing'}\n")
        return
    if not call.arguments:
        raise UsageError("name the versions to obtain, such as v1.35.4")
    for version in call.arguments:
        for found in obtain(version, catalog.PROGRAMS, folder=_folder(call), progress=TextProgress()).values():
            sys.stdout.write(f"[components] {found.program} {found.version}: {found.path} ({found.source})\n")


def image_build(call: Invocation) -> None:
    from slipway.lab.lab import build_image

    tool: Any = call.text("node-tool")
    image = build_image(call.text("kubernetes-version"), node_tool=tool, folder=_folder(call), progress=TextProgress())
    sys.stdout.write(f"{image.name} {image.digest[:16]}\n")


def image_list(call: Invocation) -> None:
    from slipway.lab.osimage.image import list_images

    _table(call, list_images(), ("name", "digest", "version", "node_tool"))


def up(call: Invocation) -> None:
    from slipway.lab.lab import bring_up
    from slipway.lab.osimage.image import find

    bring_up(
        call.text("lab"),
        find(call.text("image")),
        call.number("hosts"),
        TextProgress(),
        bridge=call.text("bridge") or None,
        host_range=call.text("host-range") or None,
        pod_range=call.text("pod-range") or None,
        registration=_registration(call),
    )


def down(call: Invocation) -> None:
    from slipway.lab import teardown

    teardown.down(_lab(call), TextProgress())


def network(call: Invocation) -> None:
    from slipway.lab.lab import up

    lab = up(
        call.text("lab"),
        TextProgress(out=sys.stderr),
        bridge=call.text("bridge") or None,
        hosts=call.text("host-range") or None,
        pods=call.text("pod-range") or None,
    )
    _table(call, [lab.record], ("name", "bridge", "hosts", "pods"))


def host(call: Invocation) -> None:
    """The commands that do one thing to one host."""
    from slipway.lab.hosts import hosts
    from slipway.lab.osimage.image import find

    lab, name, progress = _lab(call), _host_name(call), TextProgress()
    action = call.command.name
    if action == "create":
        data = call.text("user-data")
        user_data = call.host.read(data).decode() if data else None
        hosts.create(lab, name, find(call.text("image")), user_data=user_data, registration=_registration(call))
    elif action == "start":
        hosts.start(lab, name, progress)
    elif action == "reboot":
        hosts.restart(lab, name, progress)
    else:
        simple = {
            "cut": hosts.cut,
            "delete": hosts.delete,
            "power-off": hosts.power_off,
            "restore": hosts.restore_link,
            "stop": hosts.stop,
        }
        simple[action](lab, name)
    progress.say(f"[host] {name}: {action} done")


def host_exec(call: Invocation) -> None:
    from slipway.lab.hosts import hosts

    name, *command = call.arguments or [""]
    if not name or not command:
        raise UsageError("name a host and a command: lab host exec NAME -- COMMAND")
    sys.stdout.flush()
    code = hosts.execute(_lab(call), name, command)
    if code:
        raise SystemExit(code)


def host_install(call: Invocation) -> None:
    from slipway.lab.hosts import install
    from slipway.lab.osimage.image import find

    lab, name, image, progress = _lab(call), _host_name(call), find(call.text("image")), TextProgress()
    install.install_images(lab, name, image, progress)
    if not call.switch("images-only"):
        install.install_programs(lab, name, image, progress)


def host_list(call: Invocation) -> None:
    from slipway.lab.hosts import hosts

    _table(call, hosts.list_hosts(_lab(call)), ("name", "state", "address", "pod_range", "version", "link", "boots"))


def host_logs(call: Invocation) -> None:
    from slipway.lab.hosts import hosts

    code = hosts.logs(
        _lab(call),
        _host_name(call),
        console=call.switch("console"),
        follow=call.switch("follow"),
        unit=call.text("unit"),
        lines=call.number("lines"),
    )
    if code:
        raise SystemExit(code)


def management_up(call: Invocation) -> None:
    from slipway.lab.management import plan, plane, state
    from slipway.lab.network import addresses
    from slipway.lab.programs.obtain import obtain

    version = call.text("kubernetes-version")
    found = obtain(version, plan.PROGRAMS, folder=_folder(call), progress=TextProgress())
    paths = {name: obtained.path for name, obtained in found.items()}
    lab = _lab(call)
    address = addresses.gateway(lab.record.host_network) if lab.exists else None
    if address is None and call.switch("expose"):
        raise OperatorError("the lab has no network on which hosts could reach the management plane: make it with `slipway lab network`")
    # A plane that was there before the network stays where it is, unless it is asked for by name.
    wanted = str(address) if address is not None and (call.switch("expose") or state.load(lab.management) is None) else None
    started = plane.up(lab.management, version, paths, TextProgress(), address=wanted)
    sys.stdout.write(f"export KUBECONFIG={started.kubeconfig}\n")


def management_down(call: Invocation) -> None:
    from slipway.lab.management import plane

    plane.down(_lab(call).management, TextProgress(), purge=True)


def management_status(call: Invocation) -> None:
    from slipway.lab.management import status

    _table(call, [status.status(_lab(call).management)], ("version", "healthy", "server", "kubeconfig"))


def registry_up(call: Invocation) -> None:
    from slipway.lab.registry import server

    sys.stdout.write(f"{server.up(_lab(call), TextProgress(out=sys.stderr)).address}\n")


def registry_down(call: Invocation) -> None:
    from slipway.lab.registry import server

    server.down(_lab(call), TextProgress())


def registry_push(call: Invocation) -> None:
    from slipway.lab.osimage.image import find
    from slipway.lab.registry import server

    if not call.arguments:
        raise UsageError("name what the image is to be: REPOSITORY:TAG")
    pushed = server.push(_lab(call), find(call.text("image")), call.arguments[0], TextProgress(out=sys.stderr))
    _table(call, [pushed], ("reference", "digest"))


def _registration(call: Invocation) -> str | None:
    path = call.text("registration")
    return call.host.read(path).decode() if path else None


def _lab(call: Invocation) -> Lab:
    from slipway.lab.record import DEFAULT_ROOT, Lab

    name = call.text("lab")
    return Lab(name, DEFAULT_ROOT / name)


def _host_name(call: Invocation) -> str:
    if not call.arguments:
        raise UsageError("name a host")
    return call.arguments[0]


def _folder(call: Invocation) -> Path | None:
    return Path(call.text("folder")) if call.text("folder") else None


def _table(call: Invocation, rows: Sequence[Any], columns: tuple[str, ...]) -> None:
    """Rows for a person, or all that is known of them as JSON."""
    chosen = call.text("output")
    if chosen == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows, enc_hook=str), indent=2).decode() + "\n")
        return
    if chosen != "text":
        raise OperatorError(f'"{chosen}" is not an output format of this command: use text or json')
    cells = [[column.upper().replace("_", " ") for column in columns], *([str(getattr(row, column)) for column in columns] for row in rows)]
    widths = [max(len(line[number]) for line in cells) for number in range(len(columns))]
    for line in cells:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n")
