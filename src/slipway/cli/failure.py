"""What a failed command prints, and the exit code that it ends with."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import OperatorError, PreflightError, ValidationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.releases import Release
    from slipway.cli.argv.parser import Invocation

# At this verbosity and above, kubeadm shows where an error comes from.
_TRACE = 5


def report(error: Exception, call: Invocation) -> int:
    """Tell the operator on standard error; the return value is the exit code."""
    sys.stdout.flush()
    if isinstance(error, OperatorError) and call.command.is_ours:
        # A sentence says what to do; where it came from in the program is no help.
        sys.stderr.write(f"error: {_said(error)}\n")
        if call.verbosity >= _TRACE:
            _trace(error)
        return error.exit_code
    release = call.release or _release(call)
    if isinstance(error, OperatorError):
        sys.stderr.write(f"{release.error_prefix}{error.message}\n")
        if call.verbosity >= _TRACE:
            _trace(error)
        else:
            sys.stderr.write("To see the stack trace of this error execute with --v=5 or higher\n")
        return _exit_code(error, release)
    if isinstance(error, OSError):
        sys.stderr.write(f"{release.error_prefix}{_described(error)}\n")
    else:
        sys.stderr.write(f"{release.error_prefix}this is a bug in {call.program}: {type(error).__name__}: {error}\n")
    if call.verbosity >= _TRACE:
        _trace(error)
    else:
        sys.stderr.write("To see the stack trace of this error execute with --v=5 or higher\n")
    return 1


def _said(error: OperatorError) -> str:
    from slipway.kube.errors import UnauthorizedError

    if isinstance(error, UnauthorizedError):
        return (
            f"the API server does not know who is asking ({error.message}): the certificate or the token of the kubeconfig is wrong, "
            "or its time is over"
        )
    return error.message


def _exit_code(error: OperatorError, release: Release) -> int:
    preflight, validation = release.exit_codes
    if error.message.startswith("error execution phase "):
        # What fails within a phase is wrapped, and kubeadm's exit codes do not see through that.
        return error.exit_code
    if isinstance(error, PreflightError):
        return preflight
    if isinstance(error, ValidationError):
        return validation
    return error.exit_code


def _described(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"{place}{error.strerror or error}"


def _trace(error: Exception) -> None:
    import traceback

    traceback.print_exception(error)


def _release(call: Invocation) -> Release:
    """The release that is acted as: that of the configuration that failed, if it says, or else the default one.

    An unusable SLIPWAY_AS_KUBEADM or version is then what the error is about, so it cannot be asked.
    """
    from slipway.api.releases import NEWEST, release_for

    try:
        from slipway.api.kubeadm import documents
        from slipway.node.config import load, version

        if call.config_text is not None and not version.acts_as_one_release(call.host.environment):
            return load.release_of(call.host, documents.split(call.config_text))
        return version.acting_release(call.host.environment)
    except Exception:
        # What goes wrong here went wrong before, or is less than the error that is told: it must not take its place.
        return release_for(NEWEST)
