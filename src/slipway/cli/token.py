"""``token``: the tokens with which nodes join."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import UsageError
from slipway.cli.values import quote
from slipway.node import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.parser import Invocation


def generate(call: Invocation) -> None:
    sys.stdout.write(f"{tokens.generate()}\n")


def create(call: Invocation) -> None:
    from slipway.api.kubeadm.validation import refuse_mixed_arguments
    from slipway.cli.session import not_yet

    refuse_mixed_arguments(call.given)
    if call.arguments:
        tokens.check(call.arguments[0])
    raise not_yet("token create", "a live cluster")


def delete(call: Invocation) -> None:
    from slipway.cli.session import not_yet

    if not call.arguments:
        forms = f"{quote(tokens.PATTERN)} or {quote(tokens.ID_PATTERN)}"
        raise UsageError(f"missing argument; 'token delete' is missing token of form {forms}")
    raise not_yet("token delete", "a live cluster")


def list_tokens(call: Invocation) -> None:
    from slipway.cli.printer import output_format
    from slipway.cli.session import not_yet

    output_format(call)
    raise not_yet("token list", "a live cluster")
