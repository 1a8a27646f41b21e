"""The names that Elemental's objects are marked with: labels, annotations, finalizers, condition types and reasons."""

from __future__ import annotations

GROUP_PREFIX = "elemental.cattle.io"

# On a plan Secret.
MANAGED_LABEL = "elemental.cattle.io/managed"
MANAGED = "true"
PLAN_SECRET_TYPE = "elemental.cattle.io/plan"
PLAN_TYPE_ANNOTATION = "elemental.cattle.io/plan.type"
# Which registry the host is to try, and report on while no plan is in flight.
REGISTRY_ADDRESS_ANNOTATION = "slipway.io/registry-address"
# Which image the host is to fetch while it has nothing else to do, as slipway.api.elemental.staging has it.
STAGE_IMAGE_ANNOTATION = "slipway.io/stage-image"
# Hold the agent's hand: system-agent reads both.
PLAN_PAUSED_ANNOTATION = "plan.cattle.io/paused"
PLAN_CANCELED_ANNOTATION = "plan.cattle.io/canceled"

# What Elemental itself calls the plans that its operator writes.
PLAN_EMPTY = "empty"
PLAN_BOOTSTRAP = "bootstrap"
PLAN_RESET = "reset"

# On a MachineInventory: "true" lets its deletion write a reset plan first.
RESETTABLE_ANNOTATION = "elemental.cattle.io/resettable"
# What the host says of itself when it registers.
REGISTRATION_IP_ANNOTATION = "elemental.cattle.io/registration-ip"
AUTH_ANNOTATION = "elemental.cattle.io/auth"
REGISTRATION_VERSION_ANNOTATION = "elemental.cattle.io/reg-version"
OS_ANNOTATION_PREFIX = "elemental.cattle.io/os."
# "true" where the host was not installed by Elemental's toolkit.
OS_UNMANAGED_ANNOTATION = f"{OS_ANNOTATION_PREFIX}unmanaged"
# The MachineRegistration that an inventory, a ServiceAccount or a Role came from.
REGISTRATION_LABEL = "elemental.cattle.io/registration"

MACHINE_INVENTORY_FINALIZER = "machineinventory.elemental.cattle.io"

# How a host proves who it is.
AUTH_TPM = "tpm"
AUTH_MAC = "mac"
AUTH_SYSTEM_UUID = "sys-uuid"
AUTHS = (AUTH_TPM, AUTH_MAC, AUTH_SYSTEM_UUID)

# Who writes a host's network configuration.
CONFIGURATORS = ("none", "nmc", "nmstate", "nmconnections")

# Of status.plan.state of a MachineInventory.
PLAN_APPLIED = "Applied"
PLAN_FAILED = "Failed"

READY_CONDITION = "Ready"
# Of a MachineInventory.
ADOPTION_READY_CONDITION = "AdoptionReady"
NETWORK_CONFIG_READY_CONDITION = "NetworkConfigReady"
# Of a SeedImage.
SEED_IMAGE_READY_CONDITION = "SeedImageReady"

# Of a MachineInventory's Ready.
WAITING_FOR_PLAN_REASON = "WaitingForPlan"
PLAN_SUCCESSFULLY_APPLIED_REASON = "PlanSuccessfullyApplied"
PLAN_FAILURE_REASON = "PlanFailure"
PLAN_CREATION_FAILURE_REASON = "PlanCreationFailure"
# Of a MachineRegistration's Ready.
SUCCESSFULLY_CREATED_REASON = "SuccessfullyCreated"
DUPLICATE_TOKEN_REASON = "DuplicateToken"
MISSING_TOKEN_REASON = "MissingToken"
# Of AdoptionReady and NetworkConfigReady.
NOT_ADOPTED_REASON = "NotAdopted"
NO_NETWORK_CONFIG_REASON = "NoNetworkConfig"
NETWORK_CONFIG_READY_REASON = "NetworkConfigReady"

# Of a SeedImage's status.state.
SEED_IMAGE_NOT_STARTED = "NotStarted"
SEED_IMAGE_INITIALIZED = "Initialized"
SEED_IMAGE_STARTED = "Started"
SEED_IMAGE_COMPLETED = "Completed"
SEED_IMAGE_FAILED = "Failed"
SEED_IMAGE_STATES = (SEED_IMAGE_NOT_STARTED, SEED_IMAGE_INITIALIZED, SEED_IMAGE_STARTED, SEED_IMAGE_COMPLETED, SEED_IMAGE_FAILED)
# Of SeedImageReady.
RESOURCES_CREATED_REASON = "ResourcesSuccessfullyCreated"
BUILD_ONGOING_REASON = "SeedImageBuildOngoing"
BUILD_SUCCEEDED_REASON = "SeedImageBuildSuccess"
BUILD_FAILED_REASON = "SeedImageBuildFailed"
BUILD_NOT_STARTED_REASON = "SeedImageBuildNotStarted"
EXPOSED_REASON = "SeedImageExposed"
EXPOSE_FAILED_REASON = "SeedImageExposeFailed"
CLEANED_UP_REASON = "SeedImageCleanedUp"
