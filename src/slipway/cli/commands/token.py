"""``token``: the tokens with which nodes join."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.cli.argv.values import quote
from slipway.credentials import tokens
from slipway.node.cluster import tokens as clustertokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.releases import Release
    from slipway.cli.argv.parser import Invocation
    from slipway.node.cluster.interface import Cluster

# Seconds, as kubeadm has it.
_PATIENCE = 60.0


def generate(call: Invocation) -> None:
    sys.stdout.write(f"{tokens.generate()}\n")


def create(call: Invocation) -> None:
    from slipway.api.kubeadm.v1beta4 import BootstrapToken
    from slipway.api.kubeadm.validation.rules import refuse_mixed_arguments
    from slipway.cli.session import node_context
    from slipway.node import kubeconfigs
    from slipway.node.init import joincommand

    refuse_mixed_arguments(call.given)
    certificate_key = call.text("certificate-key")
    if certificate_key and not call.switch("print-join-command"):
        raise UsageError("cannot use --certificate-key without --print-join-command")
    wanted = BootstrapToken(
        token=tokens.check(call.arguments[0]) if call.arguments else None,
        description=call.text("description"),
        ttl=call.duration("ttl"),
        usages=call.texts("usages"),
        groups=call.texts("groups"),
    )
    path = _kubeconfig_path(call)
    ctx = node_context(call, {} if call.changed("config") else {"bootstrapTokens": [wanted]}, look_up=False)
    clustertokens.create(_cluster(call, path, ctx.release, patience=_PATIENCE), ctx.config.bootstrap_tokens, call.host.now())
    token = str(ctx.config.bootstrap_tokens[0].token)
    if not call.switch("print-join-command"):
        sys.stdout.write(f"{token}\n")
        return
    server, ca = kubeconfigs.leads_to(ctx.host, path)
    pins = joincommand.pins_of(ca, path)
    command = (
        joincommand.control_plane(server, pins, token, certificate_key) if certificate_key else joincommand.worker(server, pins, token)
    )
    # On one line, for scripts.
    sys.stdout.write(command.replace("\\\n", "").replace("\t", "") + "\n")


def delete(call: Invocation) -> None:
    from slipway.node.config import version

    forms = f"{quote(tokens.PATTERN)} or {quote(tokens.ID_PATTERN)}"
    if not call.arguments:
        raise UsageError(f"missing argument; 'token delete' is missing token of form {forms}")
    cluster = _cluster(call, _kubeconfig_path(call), version.acting_release(call.host.environment))
    for given in call.arguments:
        if not tokens.is_token_id(given) and not tokens.is_token(given):
            raise OperatorError(f"given token didn't match pattern {forms}")
        token_id = given.partition(".")[0]
        clustertokens.delete(cluster, token_id)
        sys.stdout.write(f'bootstrap token "{token_id}" deleted\n')


def list_tokens(call: Invocation) -> None:
    from slipway.cli.printer import output_format, print_object
    from slipway.node.config import version

    cluster = _cluster(call, _kubeconfig_path(call), version.acting_release(call.host.environment))
    chosen = output_format(call)
    first = True
    for secret in clustertokens.secrets(cluster):
        try:
            token = tokens.from_secret(secret)
        except OperatorError as error:
            sys.stdout.flush()
            sys.stderr.write(f"{error.message}\n")
            continue
        if chosen == "yaml" and not first:
            sys.stdout.write("---\n")
        print_object(clustertokens.manifest(token), chosen, clustertokens.text(token, call.host.now(), first=first))
        first = False


def _kubeconfig_path(call: Invocation) -> str:
    """The kubeconfig that is named, or the first that is there: of the environment, of the user, of the administrator."""
    from slipway.kube import kubeconfig
    from slipway.node import paths

    if call.changed("kubeconfig") and call.text("kubeconfig"):
        return call.text("kubeconfig")
    # As cmdutil.GetKubeConfigPath of kubeadm 1.35.4: the first of these files, and the first of the names where none is there.
    files = [*kubeconfig.standard_files(call.host.environment), paths.ADMIN_CONF]
    return next((path for path in files if call.host.exists(path)), files[0])


def _cluster(call: Invocation, path: str, release: Release, *, patience: float = 0) -> Cluster:
    """In a dry run the cluster is only read; only for a token that is made is a cluster waited for."""
    from slipway.host.progress import TextProgress
    from slipway.node.cluster.dryrun import DryRunCluster
    from slipway.node.cluster.live import connect

    call.release = release
    if not call.switch("dry-run"):
        return connect(call.host, path, patience=patience, waiting=TextProgress().warn)
    return DryRunCluster(TextProgress(), release, real=connect(call.host, path, patience=0))
