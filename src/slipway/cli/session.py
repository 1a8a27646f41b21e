"""What commands that work on a node have in common: where they report to, and the context of one that is set up already."""

from __future__ import annotations

from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.cli.overrides import config_text
from slipway.node.progress import JsonProgress, Progress, TextProgress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.parser import Invocation
    from slipway.node.context import NodeContext


def progress_for(call: Invocation) -> Progress:
    """Lines for a person, or with ``-o json`` an event a line; sub-commands of phases have no ``-o``."""
    chosen = call.text("output") if "output" in call.flags else "text"
    if chosen == "json":
        return JsonProgress()
    if chosen != "text":
        raise UsageError(f'invalid output format "{chosen}": use text or json')
    return TextProgress()


def node_context(call: Invocation, fields: dict[str, object]) -> NodeContext:
    """The context of a command that looks at a node: the file's configuration, or the defaults with ``fields``."""
    from slipway.node import configuration
    from slipway.node.context import NodeContext

    progress = TextProgress()
    config, release = configuration.load_init(
        call.host, config_text(call), fields, progress, source=call.config_path, skip_cri_detection=True
    )
    call.release = release
    return NodeContext(config=config, release=release, host=call.host, progress=progress)


def not_yet(what: str, needs: str) -> OperatorError:
    """For the commands that this version of the program does not have."""
    return OperatorError(f"{what} needs {needs}, and this version of the program cannot reach one yet")
