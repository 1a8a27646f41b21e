"""Where the agent keeps what it knows: the places of elemental-register and elemental-system-agent, so that either can follow the other."""

from __future__ import annotations

FOLDER = "/var/lib/elemental/agent"
CONNECTION = f"{FOLDER}/elemental_connection.json"
WORK = f"{FOLDER}/work"
JOURNAL = f"{FOLDER}/journal.json"
STAGING_WORK = f"{WORK}/staging"

CONFIG = "/etc/rancher/elemental/agent/config.yaml"
ENVIRONMENT = "/etc/rancher/elemental/agent/envs"

REGISTRATION_FOLDER = "/oem/registration"
REGISTRATION = f"{REGISTRATION_FOLDER}/config.yaml"
REGISTRATION_STATE = f"{REGISTRATION_FOLDER}/state.yaml"
KEY = f"{REGISTRATION_FOLDER}/tpm.key"

VIRTUAL_ADDRESS = "/etc/keepalived/alive.json"
"""What keepalived of a control plane's host goes by."""

TPM_DEVICE = "/dev/tpmrm0"
UNIT = "/etc/systemd/system/slipway-agent.service"
