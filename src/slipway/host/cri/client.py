"""The container runtime of a host, over the CRI: its state, its images, and the Pods and containers that it runs.

gRPC is imported when the first call is made; whether anything listens on the socket at all is found out without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

_RUNTIME, _IMAGES = "RuntimeService", "ImageService"
_PULL = "PullImage"
_NANOSECONDS = 1e9
_STATES = ("created", "running", "exited", "unknown")
_CGROUP_DRIVERS = ("systemd", "cgroupfs")
_SERVICES = {"crio": "crio", "cri-dockerd": "cri-docker"}
"""The unit of a runtime by a part of its socket's name."""
_POD_NAME, _POD_NAMESPACE = "io.kubernetes.pod.name", "io.kubernetes.pod.namespace"
# Answers of the runtime may be long (the configuration of containerd in a verbose status, hundreds of containers).
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.enable_http_proxy", 0),
    ("grpc.default_authority", "localhost"),
)


class ContainerRuntimeError(OperatorError):
    """The container runtime cannot be reached, or refuses what it was asked for."""


class RuntimeVersion(NamedTuple):
    name: str
    version: str
    api_version: str


class Sandbox(NamedTuple):
    """What holds a Pod's namespaces."""

    id: str
    name: str
    namespace: str
    uid: str
    ready: bool


class Container(NamedTuple):
    id: str
    name: str
    pod_name: str
    namespace: str
    sandbox_id: str
    state: str
    """created, running, exited or unknown."""
    created: float
    image: str


class ContainerStatus(NamedTuple):
    log_path: str
    exit_code: int
    reason: str
    message: str
    started: float
    finished: float
    restarts: int


class ContainerRuntime:
    """A client of the runtime that listens on ``socket``; may be used from several threads."""

    def __init__(self, socket: str, *, timeout: float = 20.0) -> None:
        from threading import Lock

        self.path = socket.removeprefix("unix://")
        self._timeout = timeout
        self._channel: grpc.Channel | None = None
        self._lock = Lock()

    def __enter__(self) -> ContainerRuntime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def version(self) -> RuntimeVersion:
        answer = self._call(_RUNTIME, "Version")
        return RuntimeVersion(answer.runtime_name, answer.runtime_version, answer.runtime_api_version)

    def status_problems(self, condition: str = "RuntimeReady") -> list[str]:
        """Why the runtime is not ready; it may be ready before its network is (NetworkReady), as that comes with the cluster."""
        conditions = self._call(_RUNTIME, "Status").status.conditions
        return [
            f'container runtime condition "{each.type}" is not true. reason: {each.reason}, message: {each.message}'
            for each in conditions
            if each.type == condition and not each.status
        ]

    def cgroup_driver(self) -> str:
        """systemd or cgroupfs; empty where the runtime is too old to tell (containerd before 2.0)."""
        try:
            driver = self._call(_RUNTIME, "RuntimeConfig").linux.cgroup_driver
        except _UnimplementedError:
            return ""
        return _CGROUP_DRIVERS[driver]

    def sandbox_image(self) -> str:
        """The image of the container that holds a Pod's namespaces; empty where the runtime does not tell."""
        import msgspec

        text = self._call(_RUNTIME, "Status", verbose=True).info.get("config", "")
        try:
            config = msgspec.json.decode(text or "{}")
        except msgspec.DecodeError:
            # What a runtime tells about its own configuration is its own affair.
            return ""
        return str(config.get("sandboxImage", "")) if isinstance(config, dict) else ""

    def has_image(self, image: str) -> bool:
        return bool(self._call(_IMAGES, "ImageStatus", image={"image": image}).HasField("image"))

    def pull(self, image: str, *, timeout: float | None = None) -> None:
        """Without a timeout the pull takes as long as it takes, which only the network knows."""
        self._call(_IMAGES, _PULL, deadline=timeout, image={"image": image})

    def sandboxes(self) -> list[Sandbox]:
        from slipway.host.cri import cri_pb2

        return [
            Sandbox(each.id, each.metadata.name, each.metadata.namespace, each.metadata.uid, each.state == cri_pb2.SANDBOX_READY)
            for each in self._call(_RUNTIME, "ListPodSandbox").items
        ]

    def stop_sandbox(self, sandbox_id: str) -> None:
        self._call(_RUNTIME, "StopPodSandbox", pod_sandbox_id=sandbox_id)

    def remove_sandbox(self, sandbox_id: str) -> None:
        self._call(_RUNTIME, "RemovePodSandbox", pod_sandbox_id=sandbox_id)

    def containers(self, *, all: bool = True) -> list[Container]:  # noqa: A002 - the word of every tool that lists containers
        """Those of Pods, the ended ones too unless ``all`` is false."""
        found = [
            Container(
                id=each.id,
                name=each.metadata.name,
                pod_name=each.labels.get(_POD_NAME, ""),
                namespace=each.labels.get(_POD_NAMESPACE, ""),
                sandbox_id=each.pod_sandbox_id,
                state=_STATES[each.state] if each.state < len(_STATES) else "unknown",
                created=each.created_at / _NANOSECONDS,
                image=each.image.image,
            )
            for each in self._call(_RUNTIME, "ListContainers").containers
        ]
        return found if all else [each for each in found if each.state == "running"]

    def stop_container(self, container_id: str, *, patience: int) -> None:
        """Ask it to end, and kill it after ``patience`` seconds."""
        self._call(_RUNTIME, "StopContainer", container_id=container_id, timeout=patience)

    def container_status(self, container_id: str) -> ContainerStatus:
        status = self._call(_RUNTIME, "ContainerStatus", container_id=container_id).status
        return ContainerStatus(
            log_path=status.log_path,
            exit_code=status.exit_code,
            reason=status.reason,
            message=status.message,
            started=status.started_at / _NANOSECONDS,
            finished=status.finished_at / _NANOSECONDS,
            restarts=status.metadata.attempt,
        )

    def _call(self, service: str, method: str, *, deadline: float | None = -1, **fields: Any) -> Any:
        """One call; ``deadline`` is that of the client unless given, and None for none."""
        listening(self.path)
        import grpc

        from slipway.host.cri import cri_pb2

        request = getattr(cri_pb2, f"{method}Request")(**fields)
        response: Any = getattr(cri_pb2, f"{method}Response")
        call: Callable[..., Any] = self._connected().unary_unary(
            f"/runtime.v1.{service}/{method}", type(request).SerializeToString, response.FromString
        )
        patience = self._timeout if deadline == -1 else deadline
        try:
            return call(request, timeout=patience)
        except grpc.RpcError as error:
            raise self._refused(method, error, patience) from None

    def _connected(self) -> grpc.Channel:
        import grpc

        with self._lock:
            if self._channel is None:
                self._channel = grpc.insecure_channel(f"unix://{self.path}", options=_OPTIONS)
            return self._channel

    def _refused(self, method: str, error: Any, patience: float | None) -> ContainerRuntimeError:
        from grpc import StatusCode

        code, details = error.code(), str(error.details())
        if code == StatusCode.UNIMPLEMENTED and "unknown service" in details:
            return ContainerRuntimeError(
                f"the container runtime at {self.path} does not serve the CRI API v1: its log says why (journalctl -u "
                f"{service_of(self.path)}); containerd may have its plugin cri disabled in /etc/containerd/config.toml, or be too old"
            )
        if code == StatusCode.UNIMPLEMENTED:
            return _UnimplementedError(f"the container runtime at {self.path} does not know the CRI method {method}: update it")
        if code == StatusCode.UNAVAILABLE:
            return ContainerRuntimeError(_not_running(self.path, details))
        if code == StatusCode.DEADLINE_EXCEEDED:
            return ContainerRuntimeError(f"the container runtime at {self.path} did not answer {method} within {patience:g} s")
        if method == _PULL:
            return ContainerRuntimeError(details)  # The registry's reason, with the name of the image.
        return ContainerRuntimeError(f"the container runtime at {self.path} refused {method}: {details}")


class _UnimplementedError(ContainerRuntimeError):
    """The runtime is older than the method."""


def listening(path: str) -> None:
    """Whether something answers at a socket; the reason why not is plainer here than in what gRPC makes of it."""
    import socket

    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except PermissionError:
        raise ContainerRuntimeError(
            f"no permission to talk to the container runtime at {path}: run this as root, or as a user that may write to the socket"
        ) from None
    except OSError as error:
        raise ContainerRuntimeError(_not_running(path, (error.strerror or str(error)).lower())) from None


def _not_running(path: str, reason: str) -> str:
    return (
        f"container runtime is not running: {path}: {reason}: start it (systemctl start {service_of(path)}), "
        "or name the right socket in nodeRegistration.criSocket"
    )


def service_of(path: str) -> str:
    """The systemd unit of the runtime that listens on a socket."""
    return next((name for part, name in _SERVICES.items() if part in path), "containerd")
