"""One question to a release server: which version does a label stand for.  Apart, because urllib is slow to import."""

from __future__ import annotations

import urllib.error
import urllib.request
from threading import Thread

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls

# Shorter than kubeadm's 10 s: an air-gapped machine that drops packets should not be waited for.
_TIMEOUT_SECONDS = 3.0


def fetch(url: str) -> str:
    """The text at an address; OperatorError where there is none.

    The question is asked on a thread of its own, which is left behind where it takes too long: nothing else limits the time
    in which a name is looked up.
    """
    answers: list[str | Exception] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS, context=tls.trusting()) as answer:
                answers.append(answer.read(4096).decode().strip())
        except (OSError, ValueError) as error:
            answers.append(error)

    asking = Thread(target=ask, name="release server", daemon=True)
    asking.start()
    asking.join(_TIMEOUT_SECONDS)
    if not answers:
        raise OperatorError(f'unable to get URL "{url}": no answer within {_TIMEOUT_SECONDS:.0f}s')
    found = answers[0]
    if isinstance(found, str):
        return found
    reason = found.reason if isinstance(found, urllib.error.URLError) else found
    raise OperatorError(f'unable to get URL "{url}": {reason}') from found
