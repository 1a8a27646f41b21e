"""Walk through the program as a reader would: the modules of slipway in the order in which they are first called.

    python tools/walk.py init            # `init --config f --dry-run`, from the command line on
    python tools/walk.py kubeadmconfig   # a KubeadmConfig event to its Secret, in a controller on the embedded API server
    python tools/walk.py patch           # a PATCH on the embedded API server to its watchers

A module counts when one of its functions is called on the walk, on whatever thread; being imported does not count.  What stands
at the other end of a connection belongs to another walk: the API server to a controller, the client to a server.  `--imports`
adds the modules that were only imported.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import io
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = f"{ROOT / 'src' / 'slipway'}{os.sep}"

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 10.0.0.5
nodeRegistration:
  name: control-1
  criSocket: unix:///run/containerd/containerd.sock
  ignorePreflightErrors: [all]
bootstrapTokens:
- token: abcdef.0123456789abcdef
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
"""


class Walk:
    """What was called, in order."""

    def __init__(self, *, without: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> None:
        self._without = without
        self._only = only
        self.called: dict[str, None] = {}
        self.imported: dict[str, None] = {}

    @contextlib.contextmanager
    def traced(self) -> Iterator[None]:
        """From here on, on this thread and on those that it starts."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(PACKAGE):
            return
        module = path[len(PACKAGE) : -3].replace(os.sep, ".").removesuffix(".__init__")
        if not module.startswith(self._only or ("",)) or self._elsewhere(frame):
            return
        if _while_importing(frame):
            self.imported.setdefault(module)
        else:
            self.called.setdefault(module)

    def _elsewhere(self, frame: FrameType | None) -> bool:
        """Whether what is called, or one of its callers, stands at the other end of a connection."""
        while self._without and frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(PACKAGE) and path[len(PACKAGE) : -3].replace(os.sep, ".").startswith(self._without):
                return True
            frame = frame.f_back
        return False


def _while_importing(frame: FrameType | None) -> bool:
    """Whether a module's own lines, or the body of a class, are what runs this frame."""
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        if not frame.f_code.co_flags & inspect.CO_NEWLOCALS:
            return True
        frame = frame.f_back
    return False


def init(walk: Walk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "kubeadm.yaml")
        config.write_text(CONFIG)
        os.environ["KUBEADM_INIT_DRYRUN_DIR"] = f"{folder}/dry"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), walk.traced():
            from slipway.cli.main import main

            code = main(["init", "--config", str(config), "--dry-run"])
    if code != 0:
        raise SystemExit(printed.getvalue())


def kubeadmconfig(walk: Walk) -> None:
    asyncio.run(_kubeadmconfig(walk))


async def _kubeadmconfig(walk: Walk) -> None:
    """A worker's KubeadmConfig is made; the controller of a manager has its event, and writes its Secret."""
    from fleet.world import World, preserving_crd
    from support.waiting import eventually

    from slipway.api.cluster import crds
    from slipway.api.cluster.kinds import MACHINE_POOL
    from slipway.embedded.server import EmbeddedServer
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.registry import FleetOptions, controllers
    from slipway.runtime.manager import Manager, ManagerOptions

    async def nobody(_: World) -> Any:
        raise AssertionError("nobody else takes part")

    async with EmbeddedServer() as server, World(server.connection(), "fleet", nobody) as world:
        await world.install_crds(*crds.crds(), preserving_crd(MACHINE_POOL))
        await world.ready()
        manager = Manager(server.connection(), ManagerOptions(metrics_address="0", health_address="0"))
        for reconciler, _ in controllers(("bootstrap",), manager, FleetOptions(BootstrapOptions())):
            manager.add(reconciler)
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))

        async def written(name: str) -> bool:
            return bool(((await world.config(name)).get("status") or {}).get("dataSecretName"))

        # One before: informers are listed, caches are warm, and what happens once has happened.
        await world.machine("before")
        await eventually(lambda: written("before"), "the first Secret is written")
        with walk.traced():
            await world.machine("traced")
            await eventually(lambda: written("traced"), "the Secret is written")
        stop.set()
        await task


def patch(walk: Walk) -> None:
    asyncio.run(_patch(walk))


async def _patch(walk: Walk) -> None:
    """A ConfigMap is patched, and a watch on ConfigMaps tells of it."""
    from slipway.api.cluster.kinds import CONFIG_MAP
    from slipway.embedded.server import EmbeddedServer
    from slipway.kube.aio import AsyncClient, PatchType

    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
        await client.create(CONFIG_MAP, {"metadata": {"name": "walked", "namespace": "default"}, "data": {"a": "1"}})
        opened = asyncio.Event()

        async def watch() -> None:
            async for event in client.watch(CONFIG_MAP, "default", on_open=opened.set):
                if b'"a":"2"' in bytes(event.object):
                    return

        watching = asyncio.create_task(watch())
        await opened.wait()
        with walk.traced():
            await client.patch(CONFIG_MAP, "walked", "default", {"data": {"a": "2"}}, type=PatchType.MERGE)
            await watching


WALKS: dict[str, tuple[Callable[[Walk], None], Callable[[], Walk]]] = {
    "init": (init, Walk),
    "kubeadmconfig": (kubeadmconfig, lambda: Walk(without=("embedded.",))),
    "patch": (patch, lambda: Walk(only=("embedded.", "api."))),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walk", choices=WALKS)
    parser.add_argument("--imports", action="store_true", help="count what was only imported, too")
    given = parser.parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    run, made = WALKS[given.walk]
    walk = made()
    run(walk)
    modules = [*walk.called, *(name for name in walk.imported if given.imports and name not in walk.called)]
    for module in modules:
        print(f"slipway.{module}")
    print(f"{len(modules)} modules", file=sys.stderr)


if __name__ == "__main__":
    main()
