"""One question to a release server: which version does a label stand for.  Apart, because urllib is slow to import."""

from __future__ import annotations

import urllib.error
import urllib.request

from slipway.api.machinery.errors import OperatorError

# Shorter than kubeadm's 10 s: an air-gapped machine that drops packets should not be waited for.
_TIMEOUT_SECONDS = 3.0


def fetch(url: str) -> str:
    """The text at an address; OperatorError where there is none."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
            text: str = answer.read(4096).decode()
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise OperatorError(f'unable to get URL "{url}": {reason}') from error
    return text.strip()
