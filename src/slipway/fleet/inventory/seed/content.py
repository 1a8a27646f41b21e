"""What is in a seed: the user-data and meta-data of NoCloud, as values."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

REGISTRATION_FILE = "/oem/registration/config.yaml"
AGENT_UNIT = "slipway-agent.service"


def files(client_config: Manifest, cloud_config: Manifest) -> dict[str, bytes]:
    """The files of a seed; the instance's identity follows from what is in it, so that another seed is another first boot."""
    user_data = b"#cloud-config\n" + goyaml.dump(_user_data(client_config, cloud_config)).encode()
    instance = f"register-{hashlib.sha256(user_data).hexdigest()[:16]}"
    return {"user-data": user_data, "meta-data": goyaml.dump({"instance-id": instance}).encode()}


def _user_data(client_config: Manifest, cloud_config: Manifest) -> Manifest:
    file = {"path": REGISTRATION_FILE, "permissions": "0600", "content": goyaml.dump(client_config)}
    return {
        **cloud_config,
        "write_files": [*_list(cloud_config, "write_files"), file],
        # The agent registers the host by that file, and goes on from there.
        "runcmd": [*_list(cloud_config, "runcmd"), ["systemctl", "enable", "--now", AGENT_UNIT]],
    }


def _list(cloud_config: Manifest, name: str) -> list[object]:
    found = cloud_config.get(name) or []
    if not isinstance(found, list):
        raise OperatorError(f"spec.cloud-config.{name} is to be a list")
    return found
