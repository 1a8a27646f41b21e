"""What can happen to a fleet in the middle of a rollout: how it is provoked, what operators see, what happens by itself, what to do.

Each row names the tests that bring it about.  The table of ``docs/faults.md`` is made from this one by ``tools/faults.py``.
"""

from __future__ import annotations

from typing import NamedTuple

_SIM, _HOST, _LONG_HOST, _LONG = (
    "simulation/test_faults.py",
    "simulation/test_hostfaults.py",
    "e2e/test_hostfaults.py",
    "e2e/test_faults.py",
)
_TROUBLES, _LAB, _SMALL = "simulation/test_troubles.py", "e2e/test_lab_faults.py", "e2e/test_baremetal.py"
LABS = frozenset((_LAB, _SMALL, "e2e/test_baremetal_upgrades.py", "e2e/test_vip.py", "e2e/test_image_switch.py"))
"""The files whose tests are on real hosts."""
SIMULATED = frozenset((_SIM, _HOST, _LONG, _LONG_HOST, _TROUBLES, "e2e/test_demo.py", "e2e/test_soak.py"))
SERVERS = frozenset(("e2e/test_machines.py", "e2e/test_bootstrap_outages.py"))
_METAL = "fleet/baremetal"
_KILLS = f"{_SIM}::test_a_control_plane_goes_from_minor_to_minor_through_faults_and_its_workers_follow_in_one_step"
_EVERY_INSTRUCTION = f"{_LONG}::test_whatever_goes_in_any_instruction_of_both_plans_on_any_host_the_rollout_ends_right"
_SOME_INSTRUCTIONS = f"{_TROUBLES}::test_a_rollout_goes_on_after_whatever_goes_in_any_instruction_of_both_plans"
_LAB_INSTRUCTIONS = f"{_SMALL}::test_a_worker_comes_back_once_whatever_its_host_loses_in_the_instructions_of_its_plans"
_LAB_THREE = f"{_LAB}::test_a_control_plane_of_three_keeps_its_quorum_whatever_its_hosts_lose_in_their_plans"


class Fault(NamedTuple):
    """A row.  ``tells`` are the reasons that operators see: of conditions, or of Events."""

    name: str
    provoked: str
    seen: str
    tells: tuple[str, ...]
    by_itself: str
    to_do: str
    tests: tuple[str, ...]

    @property
    def places(self) -> str:
        """Where it is provoked, in a word or two."""
        files = {test.partition("::")[0] for test in self.tests}
        known = {"lab": LABS, "simulation": SIMULATED, "a real API server": SERVERS}
        return ", ".join(place for place, those in known.items() if files & those) or "controllers"


FAULTS = (
    Fault(
        "The manager is killed",
        'SIGKILL after any write, again and again (`make soak ARGS="--clusters 6 --kills 1000"`: a thousand times)',
        "Nothing; another leader in the Lease.",
        (),
        "The next one goes on from what stands in the objects: nothing is done twice.",
        "Nothing.",
        (
            _KILLS,
            f"{_LONG}::test_a_rollout_whose_manager_is_killed_a_hundred_times_ends_as_if_nothing_had_been",
            "e2e/test_soak.py::test_a_manager_that_is_killed_a_hundred_times_loses_nothing",
            "e2e/test_baremetal_upgrades.py::test_workers_follow_over_two_minor_versions_at_once_however_often_the_manager_is_killed",
            f"{_METAL}/machine/test_killed.py::test_a_provisioning_that_is_killed_after_any_write_ends_in_one_claim_and_one_plan",
            f"{_METAL}/machine/test_killed.py::test_a_removal_that_is_killed_after_any_write_ends_in_one_clean_host",
        ),
    ),
    Fault(
        "The manager is upgraded",
        "one of an earlier commit is killed in the middle of a rollout, and this one takes over its objects and plans",
        "Nothing.",
        (),
        "The new one goes on with the plans that are in flight; they are not written again.",
        "Nothing. CRDs first, then the manager, as `slipway manager install` and the chart do it.",
        (f"{_LONG}::test_a_manager_that_is_upgraded_in_the_middle_of_a_rollout_goes_on_with_what_the_older_one_wrote",),
    ),
    Fault(
        "Two managers at once",
        "two that elect a leader; the leader is frozen until the other has taken over, and then wakes up",
        "Another leader in the Lease; the manager that was frozen ends.",
        (),
        "One leads. One that missed its renewal ends before it does anything else; what it wrote late is refused by its precondition.",
        "Nothing. Do not switch the leader election off with more than one replica.",
        (
            f"{_LONG}::test_of_two_managers_one_leads_and_one_that_was_frozen_while_the_other_took_over_does_nothing_twice",
            "runtime/test_leader.py::test_a_lease_that_cannot_be_renewed_is_lost_before_anybody_can_take_it",
            "e2e/test_machines.py::test_when_the_leader_is_killed_the_other_goes_on_within_the_lease",
            f"{_METAL}/hosts/test_claim.py::test_of_machines_that_race_for_the_last_host_one_has_it_every_time",
        ),
    ),
    Fault(
        "The API server of the management cluster restarts, or is gone for minutes",
        "it is stopped while hosts work on their plans, and started again later",
        "kubectl does not answer; the log of the manager and of the agents.",
        (),
        "Hosts go on with their plans, and keep the outcome until it can be told. Manager and agents find it again.",
        "Bring it back.",
        (
            f"{_LONG}::test_an_api_server_that_is_gone_for_minutes_holds_a_rollout_up_for_no_longer_than_that",
            "e2e/test_demo.py::test_with_a_fault_it_tells_what_is_wrong_and_what_to_do_and_ends_right",
            "e2e/test_machines.py::test_an_api_server_that_restarts_during_a_rollout_does_not_stop_it",
            "e2e/test_bootstrap_outages.py::test_leaders_die_and_the_api_server_goes_away",
        ),
    ),
    Fault(
        "The agent is killed in an instruction",
        "SIGKILL before and after each instruction of both plans, on workers and control planes",
        "PlanApplied: `PlanRunning`, a little longer.",
        ("PlanRunning",),
        "systemd starts it, and the plan begins anew: each instruction bears that. The host joins once.",
        "Nothing.",
        (_EVERY_INSTRUCTION, _SOME_INSTRUCTIONS, _LAB_INSTRUCTIONS, _LAB_THREE),
    ),
    Fault(
        "The power goes in an instruction",
        "the plug is pulled before and after each instruction of both plans, on workers and control planes without a spare host",
        "PlanApplied: `PlanRunning`, or NodeJoined: `WaitingForNode`; `HostSilent` where the power stays away.",
        ("PlanRunning", "WaitingForNode"),
        "With power the plan begins anew, or the host boots into the node. etcd keeps its quorum: no other control plane is touched "
        "meanwhile.",
        "Switch it on.",
        (_EVERY_INSTRUCTION, _SOME_INSTRUCTIONS, _LAB_INSTRUCTIONS, _LAB_THREE),
    ),
    Fault(
        "A worker's host is dead for good",
        "no power any more, with a MachineHealthCheck on the workers",
        "The Node is Unknown; HostCleaned: `CleanDeadlineExceeded` after `--host-deadline`; Event `HostGivenUp`.",
        ("CleanDeadlineExceeded", "HostGivenUp"),
        "The health check has the Machine deleted, and another one comes up on a free host of the pool. The host is Unavailable until its "
        "agent has applied its clean plan and says that it is clean; what became of its Node goes.",
        "`kubectl annotate baremetalmachine NAME slipway.io/force-release='why'`: who did it, when and why is in the Event of the host.",
        (
            f"{_HOST}::test_a_worker_whose_host_dies_is_replaced_from_the_pool_and_its_host_stays_out_of_use_until_it_is_clean",
            f"{_LAB}::test_a_worker_whose_host_is_dead_is_replaced_from_the_pool_and_its_host_comes_back_only_when_it_is_clean",
            f"{_METAL}/hosts/test_reconciler.py::test_a_host_that_was_given_up_comes_back_once_it_has_been_cleaned",
            f"{_METAL}/hosts/test_reconciler.py::"
            "test_the_node_that_a_given_up_host_became_again_when_it_came_back_goes_once_the_host_is_clean",
        ),
    ),
    Fault(
        "A control plane's host is dead for good",
        "no power any more while another control plane is being replaced, with a MachineHealthCheck and a free host in the pool",
        "EtcdMemberHealthy and the Node are Unknown; HostCleaned: `CleanDeadlineExceeded`; Event `HostGivenUp`.",
        ("CleanDeadlineExceeded", "HostGivenUp"),
        "Its etcd member is removed before its Machine goes, and the rollout waits until it has gone: the quorum is kept.",
        "The same annotation; the control plane goes on when the Machine is gone.",
        (f"{_LONG}::test_a_control_plane_whose_host_dies_in_the_middle_of_a_rollout_is_replaced_without_its_etcd_member_and_its_node",),
    ),
    Fault(
        "A host dies in its plan",
        "no power any more while it pulls its image",
        "PlanApplied: `HostSilent` after `--host-deadline`.",
        ("HostSilent",),
        "Nothing: the plan may be all but done.",
        "Delete the Machine: another host is taken. Then the annotation, as above.",
        (f"{_LONG_HOST}::test_a_host_that_dies_in_its_plan_is_told_as_silent_and_another_one_is_taken",),
    ),
    Fault(
        "A host dies while it boots",
        "it hangs after its plan is applied",
        "NodeJoined: `WaitingForNode`, and `JoinDeadlineExceeded` after `--join-deadline`.",
        ("WaitingForNode", "JoinDeadlineExceeded"),
        "Goes on where it was when it comes back.",
        "Switch it off and on, or delete the Machine.",
        (
            f"{_TROUBLES}::test_a_host_that_dies_while_it_boots_is_told_and_joins_when_it_comes_back",
            "e2e/test_demo.py::test_with_a_fault_it_tells_what_is_wrong_and_what_to_do_and_ends_right",
        ),
    ),
    Fault(
        "A host's link flaps",
        "it is cut for a moment, again and again, while the host works on both plans",
        "Nothing, or PlanApplied: `PlanRunning`, a little longer.",
        (),
        "A plan is not begun anew for it, and its outcome is told when the link is there.",
        "Nothing.",
        (
            f"{_LONG_HOST}::test_hosts_whose_link_flaps_end_their_plans_once",
            f"{_LAB}::test_a_host_whose_link_flaps_while_it_works_on_its_plans_becomes_a_node_once",
        ),
    ),
    Fault(
        "A host's link is cut",
        "for longer than a plan may take",
        "PlanApplied: `HostSilent`.",
        ("HostSilent",),
        "The host ends its plan, and tells so when the link is back.",
        "Mend the link, or delete the Machine.",
        (f"{_LONG_HOST}::test_a_host_whose_link_is_cut_for_longer_than_a_plan_may_take_is_told_as_silent_and_goes_on_when_it_is_back",),
    ),
    Fault(
        "A host's clock is wrong by a day",
        "ahead and behind, through a whole replacement of a worker",
        "Nothing.",
        (),
        "Agents count times of their own by differences, and keep to no end of a token that the server still takes.",
        "Set the clock: certificates that are younger than the error are not believed by a host whose clock is behind.",
        (f"{_LONG_HOST}::test_hosts_whose_clock_is_a_day_off_are_replaced_as_others_are",),
    ),
    Fault(
        "A control plane's clock is ahead by a day when it joins",
        "on the host that is taken next, until its join has failed",
        "NodeKubeadmLabelsAndTaintsSet: `NotSet`; the rollout waits.",
        ("NotSet",),
        "Nothing: what kubeadm signs by such a clock is not believed by the others, so that its join ends with a Node and no control "
        "plane. No other control plane is touched.",
        "Set the clock, delete the Machine: its etcd member goes with it.",
        (f"{_LONG}::test_a_control_plane_whose_clock_is_ahead_when_it_joins_is_told_and_replaced",),
    ),
    Fault(
        "The manager's clock is wrong by a day",
        "one that takes over in the middle of a plan is a day ahead, or behind",
        "Deadlines are told a day too early, or too late.",
        (),
        "What a host does is judged by its plan, not by the time: nothing is written again, and nothing is given up. Tokens are checked by "
        "the manager's clock and by the cluster's.",
        "Set the clock.",
        (
            f"{_METAL}/machine/test_killed.py::test_a_manager_whose_clock_is_a_day_off_goes_on_where_the_last_one_was",
            f"{_METAL}/machine/test_killed.py::test_a_host_that_has_not_begun_with_a_plan_of_tomorrow_is_cleaned_today",
        ),
    ),
    Fault(
        "A host's disk is full",
        "nothing can be written any more, the agent's journal included",
        "HostCleaned: `CleanFailed`, or PlanApplied: `PlanFailed`, with *No space left on device*.",
        ("CleanFailed",),
        "Nothing of a plan is done that could not be written down before; the host is Unavailable.",
        "Make room; then `slipway.io/retry-clean` on the BaremetalMachine, or delete the Machine.",
        (
            f"{_LONG_HOST}::test_a_host_whose_disk_is_full_says_so_and_is_cleaned_once_there_is_room",
            f"{_LAB}::test_a_host_whose_disk_is_full_says_so_and_goes_on_once_there_is_room",
        ),
    ),
    Fault(
        "The registry is slow",
        "a layer does not get on",
        "PlanApplied: `PlanRunning`, and `HostSilent` after `--host-deadline`.",
        ("HostSilent",),
        "Goes on when the registry does.",
        "Nothing, or a nearer registry.",
        (f"{_LONG_HOST}::test_a_registry_that_is_slow_is_waited_for_and_told_when_it_takes_too_long",),
    ),
    Fault(
        "The registry ends in the middle of a layer",
        "the connection is cut within a layer",
        "PlanApplied: `PlanRunning`, *after 1 failed attempts*, with what the host printed; `PlanFailed` after the third.",
        ("PlanRunning", "PlanFailed"),
        "Nothing is staged; the plan is tried again after 30 seconds, three times.",
        "After the third: mend the registry, delete the Machine.",
        (
            f"{_LONG}::test_a_layer_that_ends_in_its_middle_is_pulled_again_by_itself",
            f"{_LONG_HOST}::test_a_registry_that_ends_in_the_middle_of_a_layer_stages_nothing_and_is_told_with_what_the_host_printed",
            "agent/staging/test_fetch.py::test_a_layer_that_ends_in_the_middle_is_refused",
        ),
    ),
    Fault(
        "The registry does not answer",
        "it is away for a while",
        "PlanApplied: `PlanRunning`, then `PlanFailed`, with *ended with 18*.",
        ("PlanRunning", "PlanFailed"),
        "The plan is tried three times.",
        "Bring the registry back; after the third time delete the Machine.",
        (
            f"{_LONG}::test_a_registry_that_is_away_for_a_while_is_told_and_holds_the_rollout_up_no_longer_than_that",
            f"{_TROUBLES}::test_a_host_that_cannot_reach_its_registry_is_told_with_its_output_and_replaced",
            "e2e/test_image_switch.py::test_a_registry_that_is_down_stages_nothing_until_it_is_back",
        ),
    ),
    Fault(
        "A wrong digest in the catalog",
        "the entry of the target version names a digest that the registry does not have",
        "PlanApplied: `PlanFailed`, with what `elemental upgrade` printed.",
        ("PlanFailed",),
        "Nothing is staged. Nothing goes on.",
        "Mend the entry, delete the Machine.",
        (
            f"{_LONG_HOST}::test_an_image_whose_digest_the_registry_does_not_have_is_told_and_a_right_one_lets_it_go_on",
            f"{_LAB}::test_an_image_whose_digest_the_registry_does_not_have_is_told_and_the_right_one_lets_it_go_on",
            "lab/osimage/test_elemental.py::test_a_digest_that_the_registry_answers_with_other_bytes_is_refused",
        ),
    ),
    Fault(
        "The key of the target version is removed from the catalog",
        "after the rollout began",
        "ImageResolved: `ImageCatalogMiss`.",
        ("ImageCatalogMiss",),
        "Goes on when the key is there again.",
        "Add the key.",
        (_KILLS, f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added"),
    ),
    Fault(
        "A plan Secret is changed by hand",
        "another plan is put into it while the host works on ours",
        "PlanApplied: `PlanEdited`.",
        ("PlanEdited",),
        "The host ends ours and runs the other one; then ours is written again, unless the host is the Node by then.",
        "Nothing. To work on a host by hand, pause the Cluster.",
        (
            f"{_LONG_HOST}::test_a_plan_secret_that_somebody_changes_or_deletes_while_its_host_works_on_it_costs_time_and_nothing_else",
            f"{_METAL}/machine/test_plan_secret.py::"
            "test_a_plan_that_somebody_changed_is_told_and_written_again_when_the_host_has_ended_that_one",
        ),
    ),
    Fault(
        "A plan Secret is deleted",
        "while the host works on the plan in it",
        "PlanApplied: `PlanSecretMissing`, for a moment.",
        ("PlanSecretMissing",),
        "It is made anew, and gets the plan again, unless the host is the Node by then.",
        "Nothing.",
        (
            f"{_LONG_HOST}::test_a_plan_secret_that_somebody_changes_or_deletes_while_its_host_works_on_it_costs_time_and_nothing_else",
            f"{_LAB}::test_a_plan_secret_that_is_deleted_while_its_host_works_on_it_costs_time_and_nothing_else",
            f"{_METAL}/machine/test_plan_secret.py::test_a_host_that_became_the_node_by_a_plan_that_its_secret_lost_is_not_made_one_again",
        ),
    ),
    Fault(
        "An inventory is deleted",
        "that of a host in use, before its machine is replaced",
        "Its condition Ready: `InUse`.",
        ("InUse",),
        "It goes when the machine has given its host back, clean; the host registers anew within a minute, and its pool has it again.",
        "Nothing. To take a host away, take it out of its pool and remove its registration's configuration first.",
        (
            f"{_LONG_HOST}::test_an_inventory_that_is_deleted_goes_when_its_machine_does_and_its_host_registers_anew",
            "agent/registration/test_registration.py::test_an_agent_whose_inventory_is_deleted_while_it_watches_registers_anew",
        ),
    ),
    Fault(
        "A bootstrap token ends before its host boots",
        "the manager is away for longer than a token lives, while the host hangs at its boot",
        "Event `BootstrapTokenRestored` of the KubeadmConfig; BootstrapReady: `BootstrapTokenExpired` where the plan is not written yet.",
        ("BootstrapTokenRestored",),
        "Tokens are extended until the Node is there; one that ended is made again, the same: the host has it in its data.",
        "Nothing.",
        (
            f"{_LONG_HOST}::test_a_token_that_ended_before_its_host_booted_is_restored_and_the_host_joins_with_it",
            f"{_METAL}/test_reasons.py::test_the_rows_of",
        ),
    ),
    Fault(
        "An etcd member never starts",
        "etcd of a control plane that joins ends as soon as it starts",
        "EtcdMemberHealthy of the Machine is not True; the rollout waits.",
        ("EtcdMemberHealthy",),
        "It stays a learner, which does not vote; no other control plane is touched.",
        "Look at the log of etcd on the host; mend it and delete the Machine: its member goes with it.",
        (f"{_LONG}::test_an_etcd_member_that_never_starts_is_told_and_goes_with_its_machine",),
    ),
    Fault(
        "A PodDisruptionBudget that never allows an eviction",
        "one Pod, and a budget that wants it",
        "Deleting of the Machine: `DrainingNode`, with the Pod and the budget.",
        ("DrainingNode",),
        "It is tried again every 20 seconds, for as long as `nodeDrainTimeoutSeconds` says, or for ever.",
        "Give the Pod another replica, change the budget, or set that timeout.",
        (f"{_LONG_HOST}::test_a_budget_that_never_allows_an_eviction_is_told_at_the_machine_and_holds_it_until_somebody_gives_way",),
    ),
    Fault(
        "The holder of the virtual address is cut off",
        "its link is cut while workers are replaced",
        "Nothing for long: another control plane has the address within seconds.",
        (),
        "The holder lets go of the address, as its API server has no quorum; when it is back it does not take it.",
        "Mend the link.",
        (
            f"{_LONG}::test_when_the_holder_of_the_address_is_cut_off_another_one_has_it_and_the_rollout_goes_on",
            "e2e/test_vip.py::test_it_moves_when_the_holder_is_cut_off",
        ),
    ),
    Fault(
        "A control plane is cut off while another one is being replaced",
        "without a spare host: one of two that are left",
        "VIPReady: `APINotReachable`.",
        ("APINotReachable",),
        "One of two is no quorum, so that nothing can be done and nothing is; all goes on when it is back.",
        "Mend the link. A control plane with a spare host in its pool is not spared this: old and new never vote together.",
        (f"{_LONG}::test_a_control_plane_that_is_cut_off_while_another_is_being_replaced_is_waited_for",),
    ),
    Fault(
        "A control plane cannot join",
        "`kubeadm join` fails on its host",
        "NodeJoined: `JoinDeadlineExceeded`, with where to look.",
        ("JoinDeadlineExceeded",),
        "No other control plane is touched.",
        "Mend the cause, delete the Machine.",
        (f"{_LONG}::test_a_control_plane_that_cannot_join_is_told_with_what_to_look_at_and_replaced",),
    ),
    Fault(
        "A cleaned host loses its power before its next plan",
        "it is switched off and on",
        "Nothing.",
        (),
        "Its kubelet is masked: it neither joins nor brings the address back.",
        "Nothing.",
        (_KILLS, f"{_SMALL}::test_a_host_that_was_cleaned_and_lost_its_power_does_not_come_back"),
    ),
)


def table() -> str:
    """In Markdown."""
    lines = ["| fault | how it is provoked | what operators see | by itself | what to do | provoked in |", "|---|---|---|---|---|---|"]
    lines += [f"| {row.name} | {row.provoked} | {row.seen} | {row.by_itself} | {row.to_do} | {row.places} |" for row in FAULTS]
    return "\n".join(lines) + "\n"


def held_by() -> str:
    """Which tests hold each row, in Markdown."""
    lines = ["| fault | tests |", "|---|---|"]
    lines += [f"| {row.name} | {'<br>'.join(f'`{_shown(test)}`' for test in row.tests)} |" for row in FAULTS]
    return "\n".join(lines) + "\n"


def _shown(test: str) -> str:
    place, _, name = test.partition("::")
    return f"{place} {name.removeprefix('test_')}"
