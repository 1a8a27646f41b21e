"""Label selectors of objects (metav1.LabelSelector): whom they choose, and how they are written on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.cluster.meta import LabelSelector, LabelSelectorRequirement

_IN, _NOT_IN, _EXISTS, _DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is chosen; an empty selector chooses all."""
    return selector.match_labels.items() <= labels.items() and all(_fits(one, labels) for one in selector.match_expressions)


def text(selector: LabelSelector) -> str:
    """The selector as ``kubectl --selector`` takes it, by the names of the labels; /scale shows it to autoscalers."""
    parts = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    parts += [(one.key, _shown(one)) for one in selector.match_expressions]
    return ",".join(shown for _, shown in sorted(parts, key=lambda part: part[0]))


def problem(selector: LabelSelector) -> str:
    """Why the selector means nothing; empty where it means something."""
    for one in selector.match_expressions:
        if one.operator not in (_IN, _NOT_IN, _EXISTS, _DOES_NOT_EXIST):
            return f'"{one.operator}" is not a valid label selector operator'
        if one.operator in (_IN, _NOT_IN) and not one.values:
            return f"for the operator {one.operator} of the label {one.key} there must be values"
        if one.operator in (_EXISTS, _DOES_NOT_EXIST) and one.values:
            return f"for the operator {one.operator} of the label {one.key} there must be no values"
    return ""


def _fits(one: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    match one.operator:
        case "In":
            return labels.get(one.key) in one.values
        case "NotIn":
            return one.key not in labels or labels[one.key] not in one.values
        case "Exists":
            return one.key in labels
        case "DoesNotExist":
            return one.key not in labels
    raise OperatorError(f'"{one.operator}" is not a valid label selector operator')


def _shown(one: LabelSelectorRequirement) -> str:
    match one.operator:
        case "In":
            return f"{one.key} in ({','.join(sorted(one.values))})"
        case "NotIn":
            return f"{one.key} notin ({','.join(sorted(one.values))})"
        case "Exists":
            return one.key
    return f"!{one.key}"
