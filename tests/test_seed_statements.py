"""The guide that asked for all this, as fifty statements: each is held by tests, and this table says by which.

A statement without a test fails here, and so does one that names a test that does not exist.  Tests under e2e run on real hosts.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent
_METAL, _SIM, _E2E = "fleet/baremetal", "simulation", "e2e/test_baremetal.py"
_LIFE = f"{_SIM}/test_life.py::test_a_cluster_is_made_and_upgraded_by_replacing_every_node_with_no_spare_host"
_TROUBLES = f"{_SIM}/test_troubles.py"
_FAULTS = f"{_SIM}/test_faults.py::test_a_control_plane_goes_from_minor_to_minor_through_faults_and_its_workers_follow_in_one_step"
_UPGRADES = "e2e/test_baremetal_upgrades.py"
_FIVE = f"{_UPGRADES}::test_a_cluster_of_five_is_upgraded_with_no_spare_host_and_with_some"
_TWO = f"{_UPGRADES}::test_workers_follow_over_two_minor_versions_at_once_however_often_the_manager_is_killed"
_REASONS = f"{_METAL}/test_reasons.py::test_the_rows_of"
_PREFLIGHT = f"{_METAL}/rollouts/test_preflight.py"
_GUARDS = f"{_METAL}/rollouts/test_guards.py"
_CATALOG = f"{_METAL}/plans/test_catalog.py"
_PLAN = f"{_METAL}/plans/test_plan.py"
_CHART = "e2e/test_chart.py::test_a_release_is_installed_and_upgraded_with_a_version_more"
_WORKERS = "fleet/machines/deployment/test_reconciler.py"
_PLANES = "fleet/controlplane/test_reconciler.py"
_GUIDE = "fleet/test_upgrade_guide.py::test_the_page_can_be_followed_to_its_end"
_REFUSED = "fleet/test_upgrade_guide.py::test_a_rollout_that_cannot_end_is_refused_as_the_page_says"


class Statement(NamedTuple):
    """What the guide says, in our words, and the tests that hold it."""

    words: str
    tests: tuple[str, ...]


STATEMENTS: dict[int, Statement] = {
    1: Statement("An upgrade replaces every node; no host runs kubeadm upgrade.", (_LIFE, _FIVE)),
    2: Statement(
        "Machines are deleted one at a time, as the rollout strategy has it.",
        ("fleet/controlplane/test_reconciler.py::test_without_surge_a_machine_goes_before_the_next_comes", _LIFE),
    ),
    3: Statement(
        "The host of a deleted Machine gets a clean plan, in the plan Secret of its inventory.",
        (f"{_METAL}/machine/test_life.py::test_a_deleted_machine_gives_its_host_back_once_it_is_clean",),
    ),
    4: Statement(
        "The host ends kubelet, containers and containerd, and is Available again in its pool.",
        (
            f"{_PLAN}::test_a_host_is_cleaned",
            f"{_SIM}/test_agent.py::test_a_power_cut_anywhere_in_a_clean_ends_in_a_host_that_does_not_come_back",
            _FAULTS,
        ),
    ),
    5: Statement(
        "A replacement is made for a Machine that went.",
        ("fleet/machines/deployment/test_reconciler.py::test_a_new_version_is_rolled_out_within_the_bounds", _LIFE),
    ),
    6: Statement(
        "A free host of the same pool is taken, its image looked up in the catalog, a reprovision plan written.",
        (f"{_METAL}/machine/test_life.py::test_the_plan_has_the_image_of_the_catalog_and_data_made_fit_for_the_host",),
    ),
    7: Statement(
        "The host cleans cloud-init, switches to the image, and reboots.",
        (
            f"{_PLAN}::test_the_steps_come_in_the_order_of_the_guide",
            f"{_SIM}/test_agent.py::test_a_power_cut_anywhere_in_a_reprovision_ends_in_the_same_host",
            f"{_TROUBLES}::test_a_rollout_goes_on_after_whatever_goes_in_any_instruction_of_both_plans",
        ),
    ),
    8: Statement(
        "Four folders of Kubernetes' state are cleared by every reprovision, and nothing else is.",
        (f"{_SIM}/test_agent.py::test_a_reprovision_plan_switches_the_image_clears_four_folders_and_runs_cloud_init_once", _LIFE, _FIVE),
    ),
    9: Statement(
        "cloud-init runs anew after the boot, and inits or joins.",
        (f"{_SIM}/test_agent.py::test_a_reprovision_plan_switches_the_image_clears_four_folders_and_runs_cloud_init_once", _LIFE),
    ),
    10: Statement(
        "Whether the same host comes back does not matter.",
        (f"{_METAL}/machine/test_life.py::test_the_host_that_came_back_is_taken_again", _FIVE),
    ),
    11: Statement(
        "Without a surge old and new are never there together, and a pool of exactly the replicas is enough.",
        (_LIFE, f"{_E2E}::test_a_worker_is_replaced_on_the_only_host_that_its_pool_has"),
    ),
    12: Statement(
        "Controllers must be well before a rollout begins, and one that is exchanged in the middle goes on.",
        (
            f"{_PREFLIGHT}::test_what_is_missing_is_told",
            f"{_METAL}/machine/test_killed.py::test_a_manager_that_takes_over_goes_on_where_the_last_one_was",
            _FAULTS,
            "e2e/test_faults.py::test_a_rollout_whose_manager_is_killed_a_hundred_times_ends_as_if_nothing_had_been",
        ),
    ),
    13: Statement(
        "The platform's own version is asked for, and named as not checkable.",
        (f"{_PREFLIGHT}::test_the_distribution_version_is_named_as_not_checkable",),
    ),
    14: Statement(
        "The registration image of the target version is named before.",
        (f"{_PREFLIGHT}::test_the_registration_image_is_beside_the_base_image",),
    ),
    15: Statement(
        "Workers come after their control plane.",
        (
            f"{_GUARDS}::test_workers_ahead_of_their_control_plane_are_told",
            _LIFE,
            f"{_WORKERS}::test_workers_wait_for_the_version_of_their_control_plane",
        ),
    ),
    16: Statement(
        "Workers are replaced within maxUnavailable, one or two at a time.",
        (
            f"{_WORKERS}::test_a_new_version_is_rolled_out_within_the_bounds",
            f"{_TROUBLES}::test_workers_move_to_another_pool_by_a_new_template_and_two_at_once_where_two_may_be_missing",
            _LIFE,
        ),
    ),
    17: Statement(
        "The address answers and all Nodes are Ready before, and stay so.",
        (
            f"{_PREFLIGHT}::test_what_is_missing_is_told",
            f"{_SIM}/test_world.py::test_the_virtual_address_goes_to_another_host_when_its_holder_loses_its_power",
            _FIVE,
        ),
    ),
    18: Statement(
        "Every host says whether it reaches the registry.",
        (
            f"{_PREFLIGHT}::test_what_is_missing_is_told",
            f"{_METAL}/hosts/test_reconciler.py::test_hosts_of_a_pool_are_told_which_registry_to_try_unless_they_work_on_a_plan",
        ),
    ),
    19: Statement(
        "maxSurge must be 0, in either version of the API.", (f"{_GUARDS}::test_a_surge_is_told_at_the_path_that_it_has_in_its_version",)
    ),
    20: Statement(
        "Pools must have the hosts that a rollout needs.", (f"{_GUARDS}::test_a_pool_that_is_too_small_or_missing_is_told", _REFUSED)
    ),
    21: Statement("An upgrade of the package renders the catalog anew.", (_CHART,)),
    22: Statement("Versions in the chart's values get the registry's address in front.", (_CHART,)),
    23: Statement(
        "The catalog is read again without a restart.",
        (f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added",),
    ),
    24: Statement(
        "A JSON patch of one key adds a version, by tag or by digest.",
        (
            f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added",
            f"{_CATALOG}::test_the_registry_is_replaced_and_the_rest_stays",
            _GUIDE,
        ),
    ),
    25: Statement("The catalog can be looked at by the guide's command.", (_GUIDE,)),
    26: Statement(
        "A key has a leading v, and one without it is told.",
        (f"{_CATALOG}::test_a_version_without_its_v_has_the_key_with_it", f"{_GUARDS}::test_a_key_without_its_v_is_named"),
    ),
    27: Statement(
        "A version that the catalog lacks fails the machine without a plan, until it is added.",
        (f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added", _REASONS),
    ),
    28: Statement(
        "Registration images are not made again by themselves, and lie beside the base image.",
        (
            "fleet/inventory/test_seed.py::test_an_image_is_not_made_again_by_itself",
            f"{_PREFLIGHT}::test_the_registration_image_is_beside_the_base_image",
        ),
    ),
    29: Statement(
        "Version and image tags in one edit are one rollout, and all take effect.",
        (f"{_PLANES}::test_version_and_image_tags_in_one_edit_are_one_rollout", _FAULTS, _FIVE),
    ),
    30: Statement(
        "A version needs no new template; another pool does, and machines move there.",
        (
            f"{_METAL}/vip/test_vip.py::test_a_control_plane_that_moves_has_the_hosts_of_both_pools",
            _LIFE,
            _GUIDE,
            f"{_TROUBLES}::test_workers_move_to_another_pool_by_a_new_template_and_two_at_once_where_two_may_be_missing",
            f"{_E2E}::test_workers_move_to_another_pool_by_a_new_template",
        ),
    ),
    31: Statement(
        "The guide's commands show what an operator wants to see.",
        (
            "api/cluster/infrastructure/test_definitions.py::test_the_columns_are_those_that_operators_watch",
            f"{_E2E}::test_kubectl_shows_the_columns_that_operators_know",
            _GUIDE,
        ),
    ),
    32: Statement(
        "A Machine that is to go makes its BaremetalMachine Preparing.",
        (f"{_METAL}/machine/test_life.py::test_a_deleted_machine_gives_its_host_back_once_it_is_clean",),
    ),
    33: Statement(
        "A host that was given back is Available and belongs to nobody.",
        (f"{_METAL}/machine/test_life.py::test_a_deleted_machine_gives_its_host_back_once_it_is_clean", _LIFE),
    ),
    34: Statement(
        "A new Machine of the version gets a host of the pool, a plan, a Node, and is Running.",
        (f"{_METAL}/machine/test_life.py::test_a_machine_becomes_a_node", _LIFE),
    ),
    35: Statement(
        "The address is looked after all along, and its hosts learn of changes.",
        (
            f"{_METAL}/vip/test_reconciler.py::test_the_others_know_of_a_control_plane_when_it_gets_its_plan",
            "workload/alive/test_sidecar.py::test_new_peers_are_written_and_keepalived_reads_them",
            "e2e/test_vip.py::test_new_peers_reach_keepalived_without_the_address_moving",
        ),
    ),
    36: Statement("The guide's patch of the MachineDeployment rolls the workers.", (_LIFE, _FIVE, _GUIDE)),
    37: Statement(
        "Workers have the version of their image, and a wrong one is noticed before it boots.",
        (
            f"{_SIM}/test_agent.py::test_an_image_of_another_version_is_noticed_before_it_boots",
            f"{_PLAN}::test_the_kubelet_of_the_image_is_checked_before_the_boot",
        ),
    ),
    38: Statement(
        "Another bootstrap template is a rollout of its own.",
        (
            f"{_WORKERS}::test_another_bootstrap_template_is_a_rollout_of_its_own",
            f"{_TROUBLES}::test_a_new_bootstrap_template_replaces_the_workers_at_the_same_version",
            f"{_E2E}::test_a_new_bootstrap_template_replaces_the_workers",
            _GUIDE,
        ),
    ),
    39: Statement(
        "A control plane goes one minor version at a time; more is refused, or walked when asked.",
        (
            "fleet/controlplane/test_upgrade.py::test_goes_one_minor_version_at_a_time",
            f"{_PREFLIGHT}::test_two_minor_versions_at_once_fail",
            f"{_PLANES}::test_an_upgrade_over_two_minor_versions_goes_step_by_step",
            _FAULTS,
            _REFUSED,
        ),
    ),
    40: Statement(
        "Workers may take two minor versions in one step, after the control plane.",
        (
            f"{_PREFLIGHT}::test_workers_may_take_two_minor_versions_at_once",
            f"{_GUARDS}::test_workers_may_be_three_minor_versions_behind",
            f"{_WORKERS}::test_workers_follow_their_control_plane_over_two_minor_versions_in_one_step",
            _FAULTS,
            _TWO,
        ),
    ),
    41: Statement(
        "More than one minor version takes no more hosts.", (f"{_GUARDS}::test_nothing_speaks_against_a_rollout_as_it_should_be", _LIFE)
    ),
    42: Statement("At the end all machines are Running, at the version, with Ready Nodes of that kubelet.", (_LIFE, _FIVE)),
    43: Statement("Every plan Secret in use is of a reprovision at the end.", (_LIFE, _FIVE)),
    44: Statement(
        "The counters of a pool always add up, and nothing is on its way at rest.",
        (f"{_METAL}/hosts/test_reconciler.py::test_the_counters_add_up_for_any_hosts", _LIFE),
    ),
    45: Statement(
        "A stuck first node says whether the key or the registry's address is missing.",
        (f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added", _REASONS),
    ),
    46: Statement(
        "A failed plan is final and told with the host's output; a host that never joins has a deadline.",
        (
            f"{_TROUBLES}::test_a_host_that_cannot_reach_its_registry_is_told_with_its_output_and_replaced",
            _REASONS,
            f"{_TROUBLES}::test_a_host_that_dies_while_it_boots_is_told_and_joins_when_it_comes_back",
        ),
    ),
    47: Statement(
        "Lease, holder and logs of the address can be seen.",
        (
            "workload/alive/test_sidecar.py::test_the_host_with_the_address_holds_the_lease_and_lets_go_of_it",
            f"{_SIM}/test_world.py::test_the_virtual_address_goes_to_another_host_when_its_holder_loses_its_power",
            "e2e/test_vip.py::test_the_lease_names_the_holder",
            "e2e/test_faults.py::test_a_control_plane_that_cannot_join_is_told_with_what_to_look_at_and_replaced",
        ),
    ),
    48: Statement(
        "A surge is told, with maxUnavailable as the way.",
        (
            f"{_GUARDS}::test_the_way_for_workers_is_max_unavailable",
            f"{_TROUBLES}::test_a_surge_is_told_with_the_way_that_there_is",
            "e2e/test_guards.py::test_the_servers_answers_are_the_guards",
            _REFUSED,
        ),
    ),
    49: Statement(
        "An exhausted pool is told, and goes on when a host is added or comes back.",
        (
            f"{_TROUBLES}::test_an_exhausted_pool_is_told_and_a_host_that_is_added_lets_it_go_on",
            _REASONS,
            f"{_METAL}/machine/test_life.py::test_the_host_that_came_back_is_taken_again",
        ),
    ),
    50: Statement(
        "All reasons with their way out are in one reference, made from the table that tests run.",
        (
            f"{_METAL}/test_reasons.py::test_every_row_of_the_table_is_brought_about",
            f"{_METAL}/test_reasons.py::test_the_reference_is_the_table",
        ),
    ),
}


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    found = (node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(name for name in found if name.startswith("test_"))


def test_there_are_fifty_statements() -> None:
    assert list(STATEMENTS) == list(range(1, 51))


@pytest.mark.parametrize("number", STATEMENTS)
def test_a_statement_is_held_by_tests_that_exist(number: int) -> None:
    words, tests = STATEMENTS[number]
    assert tests, f"nothing holds statement {number}: {words}"
    for each in tests:
        place, _, name = each.partition("::")
        path = TESTS / place
        assert path.exists(), f"statement {number}: there is no {place}"
        assert name in functions_of(path), f"statement {number}: {place} has no {name}"
