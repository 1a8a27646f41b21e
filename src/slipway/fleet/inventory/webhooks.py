"""What the API server asks before it stores a MachineInventory or a MachineRegistration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import MACHINE_INVENTORY, MACHINE_REGISTRATION
from slipway.api.elemental.inventory import MachineInventory
from slipway.api.elemental.placeholders import MissingError, TemplateError, render
from slipway.api.elemental.protocol import TOKEN_PATTERN, is_token
from slipway.api.elemental.registration import MachineRegistration
from slipway.api.machinery.fieldpath import FieldError, Path, forbidden, invalid
from slipway.api.machinery.labels import key_problems
from slipway.fleet.contract.admission import judged
from slipway.runtime.webhook.admission import Validator

if TYPE_CHECKING:
    from collections.abc import Mapping

_STORAGE = (
    "data volumes that outlive a reprovisioning are not managed here: remove them; "
    "what a host keeps of its own accord, outside of Kubernetes' four folders, stays on it"
)
# In CEL: of a host that registers, or is claimed or released, there is nothing to ask.
_CONCERNED = "has(object.spec) && (has(object.spec.storage) || (oldObject != null && has(oldObject.spec) && object.spec != oldObject.spec))"


def webhooks() -> list[Validator]:
    return [
        Validator(MACHINE_INVENTORY, judged(MachineInventory, inventory_errors), condition=_CONCERNED),
        Validator(MACHINE_REGISTRATION, judged(MachineRegistration, registration_errors)),
    ]


def inventory_errors(new: MachineInventory, old: MachineInventory | None) -> list[FieldError]:
    """Volumes are refused; where they were there before, the rest of the object may change.  A host stays the host that it is."""
    path = Path("spec")
    found: list[FieldError] = []
    if new.spec.storage and (old is None or old.spec.storage != new.spec.storage):
        found.append(forbidden(path.child("storage"), _STORAGE))
    if old is not None:
        for field, was, now in (
            ("tpmHash", old.spec.tpm_hash, new.spec.tpm_hash),
            ("machineHash", old.spec.machine_hash, new.spec.machine_hash),
        ):
            if was and was != now:
                detail = "is by what the host is known, and never changes: delete the inventory and let the host register anew"
                found.append(forbidden(path.child(field), detail))
    return found


def registration_errors(new: MachineRegistration, old: MachineRegistration | None) -> list[FieldError]:
    """A token that can be the end of an address, and placeholders that some host can fill."""
    path, spec = Path("spec"), new.spec
    found: list[FieldError] = []
    if spec.token and not is_token(spec.token):
        found.append(invalid(path.child("token"), spec.token, f"must match {TOKEN_PATTERN}"))
    found += _template_errors(spec.machine_name, path.child("machineName"))
    found += _mapping_errors(spec.machine_inventory_labels, path.child("machineInventoryLabels"))
    return found + _mapping_errors(spec.machine_inventory_annotations, path.child("machineInventoryAnnotations"))


def _mapping_errors(templates: Mapping[str, str], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for key, template in templates.items():
        found += [invalid(path, key, problem) for problem in key_problems(key)]
        found += _template_errors(template, path.key(key))
    return found


def _template_errors(template: str, path: Path) -> list[FieldError]:
    unclosed = re.search(r"\$\{[^}]*$", template)
    if unclosed:
        return [invalid(path, template, f'the placeholder "{unclosed[0]}" has no end')]
    empty = next((each for each in re.findall(r"\$\{([^}]*)\}", template) if not all(part.strip() for part in each.split("/"))), None)
    if empty is not None:
        return [invalid(path, template, f'"${{{empty}}}" names nothing: a placeholder is such as ${{System Information/UUID}}')]
    try:
        render(template, {})
    except TemplateError as error:
        return [invalid(path, template, str(error))]
    except MissingError:
        # Which values a host has, only the host knows.
        return []
    return []
