"""A container runtime that has images, and the containers that a test gives it: the real wire of the CRI, over a unix socket."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import TYPE_CHECKING, Any

import grpc

from slipway.host.cri import cri_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Images:
    """The images that a runtime has, and what its registry does when it is asked for others."""

    def __init__(self, *present: str) -> None:
        self.present = set(present)
        self.failures: dict[str, int] = {}
        """How many pulls of an image fail before one works."""
        self.pulled: list[str] = []
        self.sandbox_image = "registry.k8s.io/pause:3.10.2"
        self.together: Barrier | None = None
        """Where set, no pull ends before all have begun."""
        self.containers: list[Any] = []
        self.statuses: dict[str, Any] = {}
        """Of containers, by id."""
        self.network_ready = True

    def status(self, request: Any, context: grpc.ServicerContext) -> Any:
        config = {"config": f'{{"sandboxImage": "{self.sandbox_image}"}}'} if request.verbose else {}
        condition = cri_pb2.RuntimeCondition(type="RuntimeReady", status=True)
        network = cri_pb2.RuntimeCondition(
            type="NetworkReady",
            status=self.network_ready,
            reason="NetworkPluginNotReady",
            message="Network plugin returns error: cni plugin not initialized",
        )
        return cri_pb2.StatusResponse(status=cri_pb2.RuntimeStatus(conditions=[condition, network]), info=config)

    def version(self, request: Any, context: grpc.ServicerContext) -> Any:
        return cri_pb2.VersionResponse(runtime_name="containerd", runtime_version="v2.3.7", runtime_api_version="v1")

    def list_containers(self, request: Any, context: grpc.ServicerContext) -> Any:
        return cri_pb2.ListContainersResponse(containers=self.containers)

    def container_status(self, request: Any, context: grpc.ServicerContext) -> Any:
        return cri_pb2.ContainerStatusResponse(status=self.statuses[request.container_id])

    def image_status(self, request: Any, context: grpc.ServicerContext) -> Any:
        there = request.image.image in self.present
        return cri_pb2.ImageStatusResponse(image=cri_pb2.Image(id="sha256:1") if there else None)

    def pull(self, request: Any, context: grpc.ServicerContext) -> Any:
        name = request.image.image
        self.pulled.append(name)
        if self.together is not None:
            self.together.wait()
        if self.failures.get(name, 0):
            self.failures[name] -= 1
            context.abort(grpc.StatusCode.UNKNOWN, f"{name}: not found in the registry")
        self.present.add(name)
        return cri_pb2.PullImageResponse(image_ref=name)


@contextmanager
def serving(images: Images, folder: Path) -> Iterator[str]:
    """The socket on which a runtime with these images listens."""
    path = folder / "run.sock"
    server = grpc.server(ThreadPoolExecutor(16))
    server.add_generic_rpc_handlers(
        (
            _service(
                "RuntimeService",
                {
                    "Status": images.status,
                    "Version": images.version,
                    "ListContainers": images.list_containers,
                    "ContainerStatus": images.container_status,
                },
            ),
            _service("ImageService", {"ImageStatus": images.image_status, "PullImage": images.pull}),
        )
    )
    server.add_insecure_port(f"unix://{path}")
    server.start()
    try:
        yield f"unix://{path}"
    finally:
        server.stop(None)


def _service(name: str, methods: dict[str, Callable[[Any, grpc.ServicerContext], Any]]) -> grpc.GenericRpcHandler:
    handlers = {
        method: grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=getattr(cri_pb2, f"{method}Request").FromString,
            response_serializer=getattr(cri_pb2, f"{method}Response").SerializeToString,
        )
        for method, answer in methods.items()
    }
    return grpc.method_handlers_generic_handler(f"runtime.v1.{name}", handlers)
