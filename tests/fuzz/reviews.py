"""Reviews as strangers may send them to the webhooks' port: every body is answered or refused, and never with a trace.

The first byte chooses what is asked: a webhook of ours, or a conversion.  The rest is the body as it comes in, or, for every other
choice, the object of a review that is whole, so that most inputs come past the envelope.
"""

from __future__ import annotations

import msgspec

from slipway.api.cluster.conversion import convert
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap.webhooks import webhooks
from slipway.fleet.controlplane.webhooks import webhooks as controlplane
from slipway.fleet.machines.webhooks import webhooks as machines
from slipway.runtime.webhook import admission, conversion

_WEBHOOKS = [*webhooks(), *machines(), *controlplane(lambda *_: None)]
_VERSIONS = tuple(
    f"{group}cluster.x-k8s.io/{version}".encode() for group in ("bootstrap.", "", "controlplane.") for version in ("v1beta1", "v1beta2")
)


def fuzz(data: bytes) -> None:
    """Only an OperatorError may come out, of which BadReviewError is one."""
    choice, rest = (data[0], data[1:]) if data else (0, b"")
    webhook = _WEBHOOKS[choice // 4 % len(_WEBHOOKS)]
    try:
        match choice % 4:
            case 0:
                answer = admission.review(rest, webhook)
            case 1:
                answer = admission.review(_admission(rest), webhook)
            case 2:
                answer = conversion.review(rest, convert)
            case _:
                answer = conversion.review(_conversion(rest, _VERSIONS[choice // 4 % len(_VERSIONS)]), convert)
    except OperatorError:
        return
    msgspec.json.encode(answer)


def _admission(obj: bytes) -> bytes:
    request = b'{"uid":"u","operation":"UPDATE","dryRun":true,"object":%s,"oldObject":%s}' % (obj, obj)
    return b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":%s}' % request


def _conversion(obj: bytes, desired: bytes) -> bytes:
    request = b'{"uid":"u","desiredAPIVersion":"%s","objects":[%s]}' % (desired, obj)
    return b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":%s}' % request
