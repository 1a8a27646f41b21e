"""``config``: print, check and migrate configuration files; list images."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.cli.fields import config_text, feature_gates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import InitConfiguration
    from slipway.api.releases import Release
    from slipway.cli.argv.parser import Invocation

_IMAGE_FIELDS = {
    "cri-socket": "nodeRegistration.criSocket",
    "image-repository": "imageRepository",
    "kubernetes-version": "kubernetesVersion",
}


def print_init(call: Invocation) -> None:
    _print_defaults(call, "init", call.texts("component-configs"))


def print_join(call: Invocation) -> None:
    _print_defaults(call, "join", [])


def print_reset(call: Invocation) -> None:
    _print_defaults(call, "reset", [])


def print_upgrade(call: Invocation) -> None:
    _print_defaults(call, "upgrade", [])


def validate(call: Invocation) -> None:
    from slipway.node.config import documents

    text = _required_text(call, "config")
    allowed = call.switch("allow-deprecated-api")
    call.release = documents.validate(text, call.host, _warn, source=call.text("config"), allow_deprecated=allowed)
    sys.stdout.write("ok\n")


def migrate(call: Invocation) -> None:
    text = _required_text(call, "old-config")
    source = call.text("old-config")
    if call.switch("strict-compat"):
        from slipway.node.config import documents

        migrated = documents.migrate_as_kubeadm(text, _acting(call), call.host, source=source, warn=_warn)
    else:
        from slipway.api.kubeadm.migrate import migrate as migrate_text

        migrated, notes = migrate_text(text, source)
        for note in notes:
            # What only moved is as it was; that is for the curious.
            if note.action != "moved" or call.verbosity >= 1:
                _warn(str(note))
    target = call.text("new-config")
    if not target:
        sys.stdout.write(migrated)
        return
    try:
        call.host.write(target, migrated.encode(), 0o644)
    except OSError as error:
        raise OperatorError(f'failed to write the new configuration to the file "{target}": {error.strerror or error}') from None


def images_list(call: Invocation) -> None:
    from slipway.cli.printer import output_format, print_object
    from slipway.workload import images

    chosen = output_format(call)
    config, call.release = _load(call)
    required = images.required(config.cluster, call.release)
    fields = {"kind": "Images", "apiVersion": "output.kubeadm.k8s.io/v1alpha3", "images": required}
    print_object(fields, chosen, "".join(f"{image}\n" for image in required))


def images_pull(call: Invocation) -> None:
    """Every image is pulled, whether it is there or not: its tag may have moved."""
    from slipway.node import imagepull
    from slipway.workload import images

    config, call.release = _load(call, needs_runtime=True)
    required = images.required(config.cluster, call.release)
    serial = config.node_registration.image_pull_serial is not False
    with call.host.container_runtime(config.node_registration.cri_socket) as runtime:
        for pull in imagepull.pulls(runtime, required, serial=serial, if_not_present=False, warn=_warn):
            if pull.problem:
                raise OperatorError(f'failed to pull image "{pull.image}": {pull.problem}')
            sys.stdout.write(f"[config/images] Pulled {pull.image}\n")
            sys.stdout.flush()


def schema(call: Invocation) -> None:
    from slipway.api.kubeadm.schema import schema as json_schema
    from slipway.cli.printer import print_object

    print_object(json_schema(), "json", "")


def _print_defaults(call: Invocation, kind: str, component_configs: list[str]) -> None:
    from slipway.node.config import documents

    call.release = _acting(call)
    sys.stdout.write(documents.print_defaults(kind, component_configs, call.release, call.host))


def _load(call: Invocation, *, needs_runtime: bool = False) -> tuple[InitConfiguration, Release]:
    """The file's configuration, or the default one with what the flags say; where there is a file, it decides alone."""
    from slipway.host.progress import TextProgress
    from slipway.node.config import load as configuration
    from slipway.node.config import version

    progress = TextProgress()
    text = config_text(call)
    fields: dict[str, object] = {}
    if text is None:
        fields = {field: call.text(name) for name, field in _IMAGE_FIELDS.items() if name in call.flags and call.changed(name)}
        release = version.acting_release(call.host.environment, str(fields.get("kubernetesVersion", "")))
        fields["featureGates"] = feature_gates(call.text("feature-gates"), release, progress)
    return configuration.load_init(call.host, text, fields, progress, source=call.config_path, skip_cri_detection=not needs_runtime)


def _acting(call: Invocation) -> Release:
    from slipway.node.config import version

    return version.acting_release(call.host.environment)


def _required_text(call: Invocation, flag: str) -> str:
    text = config_text(call, flag)
    if text is None:
        raise UsageError(f"the --{flag} flag is mandatory")
    return text


def _warn(text: str) -> None:
    sys.stderr.write(f"{text}\n")
