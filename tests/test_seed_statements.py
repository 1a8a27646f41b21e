"""The guide that asked for all this, as fifty statements: each is held by tests, and this table says by which.

A statement without a test fails here, and so does one that names a test that does not exist.  Tests under e2e run on real hosts.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
_METAL, _SIM, _E2E = "fleet/baremetal", "simulation", "e2e/test_baremetal.py"
_LIFE = f"{_SIM}/test_life.py::test_a_cluster_is_made_and_upgraded_by_replacing_every_node_with_no_spare_host"
_TROUBLES = f"{_SIM}/test_troubles.py"
_FAULTS = f"{_SIM}/test_faults.py::test_a_control_plane_goes_from_minor_to_minor_through_faults_and_its_workers_follow_in_one_step"
_FIVE = f"{_E2E}::test_a_cluster_of_five_is_upgraded_with_no_spare_host_and_with_some"
_REASONS = f"{_METAL}/test_reasons.py::test_the_rows_of"
_PREFLIGHT = f"{_METAL}/rollouts/test_preflight.py"
_GUARDS = f"{_METAL}/rollouts/test_guards.py"
_CATALOG = f"{_METAL}/plans/test_catalog.py"
_PLAN = f"{_METAL}/plans/test_plan.py"
_CHART = "e2e/test_chart.py::test_a_release_is_installed_and_upgraded_with_a_version_more"

STATEMENTS: dict[int, tuple[str, ...]] = {
    1: (_LIFE, _FIVE),
    2: ("fleet/controlplane/test_reconciler.py::test_without_surge_a_machine_goes_before_the_next_comes", _LIFE),
    3: (f"{_METAL}/machine/test_life.py::test_a_deleted_machine_gives_its_host_back_once_it_is_clean",),
    4: (
        f"{_PLAN}::test_a_host_is_cleaned",
        _FAULTS,
        f"{_SIM}/test_agent.py::test_a_power_cut_anywhere_in_a_clean_ends_in_a_host_that_does_not_come_back",
    ),
    5: ("fleet/machines/deployment/test_reconciler.py::test_a_new_version_is_rolled_out_within_the_bounds", _LIFE),
    6: (f"{_METAL}/machine/test_life.py::test_the_plan_has_the_image_of_the_catalog_and_data_made_fit_for_the_host",),
    7: (
        f"{_PLAN}::test_the_steps_come_in_the_order_of_the_guide",
        f"{_SIM}/test_agent.py::test_a_power_cut_anywhere_in_a_reprovision_ends_in_the_same_host",
        f"{_TROUBLES}::test_a_rollout_goes_on_after_whatever_goes_in_any_instruction_of_both_plans",
    ),
    8: (
        f"{_SIM}/test_agent.py::test_a_reprovision_plan_switches_the_image_clears_four_folders_and_runs_cloud_init_once",
        _LIFE,
        _FIVE,
    ),
    9: (f"{_SIM}/test_agent.py::test_a_reprovision_plan_switches_the_image_clears_four_folders_and_runs_cloud_init_once", _LIFE),
    10: (f"{_METAL}/machine/test_life.py::test_the_host_that_came_back_is_taken_again", _FIVE),
    11: (_LIFE, f"{_E2E}::test_a_worker_is_replaced_on_the_only_host_that_its_pool_has"),
    12: (
        f"{_PREFLIGHT}::test_what_is_missing_is_told",
        f"{_METAL}/machine/test_killed.py::test_a_manager_that_takes_over_goes_on_where_the_last_one_was",
        _FAULTS,
        "e2e/test_faults.py::test_a_rollout_whose_manager_is_killed_a_hundred_times_ends_as_if_nothing_had_been",
    ),
    13: (f"{_PREFLIGHT}::test_the_distribution_version_is_named_as_not_checkable",),
    14: (f"{_PREFLIGHT}::test_the_registration_image_is_beside_the_base_image",),
    15: (f"{_GUARDS}::test_workers_ahead_of_their_control_plane_are_told", _LIFE),
    16: (
        "fleet/machines/deployment/test_reconciler.py::test_both_bounds_zero_leave_one_machine_to_be_unavailable",
        f"{_TROUBLES}::test_workers_move_to_another_pool_by_a_new_template_and_two_at_once_where_two_may_be_missing",
        _LIFE,
    ),
    17: (
        f"{_PREFLIGHT}::test_what_is_missing_is_told",
        f"{_SIM}/test_world.py::test_the_virtual_address_goes_to_another_host_when_its_holder_loses_its_power",
    ),
    18: (
        f"{_PREFLIGHT}::test_what_is_missing_is_told",
        f"{_METAL}/hosts/test_reconciler.py::test_hosts_of_a_pool_are_told_which_registry_to_try_unless_they_work_on_a_plan",
    ),
    19: (f"{_GUARDS}::test_a_surge_is_told_at_the_path_that_it_has_in_its_version",),
    20: (f"{_GUARDS}::test_a_pool_that_is_too_small_or_missing_is_told",),
    21: (_CHART,),
    22: (_CHART,),
    23: (f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added",),
    24: (f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added",),
    25: (f"{_CATALOG}::test_a_miss_says_what_to_add",),
    26: (f"{_CATALOG}::test_a_version_without_its_v_has_the_key_with_it", f"{_GUARDS}::test_a_key_without_its_v_is_named"),
    27: (f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added", _REASONS),
    28: (
        "fleet/inventory/test_seed.py::test_an_image_is_not_made_again_by_itself",
        f"{_PREFLIGHT}::test_the_registration_image_is_beside_the_base_image",
    ),
    29: ("fleet/controlplane/test_reconciler.py::test_a_rollout_tells_kubeadm_the_new_version_first", _FAULTS, _FIVE),
    30: (
        f"{_METAL}/vip/test_vip.py::test_a_control_plane_that_moves_has_the_hosts_of_both_pools",
        f"{_TROUBLES}::test_workers_move_to_another_pool_by_a_new_template_and_two_at_once_where_two_may_be_missing",
        _LIFE,
    ),
    31: (
        "api/cluster/infrastructure/test_definitions.py::test_the_columns_are_those_that_operators_watch",
        f"{_E2E}::test_kubectl_shows_the_columns_that_operators_know",
    ),
    32: (f"{_METAL}/machine/test_life.py::test_a_deleted_machine_gives_its_host_back_once_it_is_clean",),
    33: (f"{_METAL}/machine/test_life.py::test_a_deleted_machine_gives_its_host_back_once_it_is_clean", _LIFE),
    34: (f"{_METAL}/machine/test_life.py::test_a_machine_becomes_a_node", _LIFE),
    35: (
        f"{_METAL}/vip/test_reconciler.py::test_the_others_know_of_a_control_plane_when_it_gets_its_plan",
        "workload/alive/test_sidecar.py::test_new_peers_are_written_and_keepalived_reads_them",
    ),
    36: (_LIFE, _FIVE),
    37: (f"{_SIM}/test_agent.py::test_an_image_of_another_version_is_noticed_before_it_boots",),
    38: (f"{_TROUBLES}::test_a_new_bootstrap_template_replaces_the_workers_at_the_same_version",),
    39: (
        "fleet/controlplane/test_upgrade.py::test_goes_one_minor_version_at_a_time",
        f"{_PREFLIGHT}::test_two_minor_versions_at_once_fail",
        _FAULTS,
    ),
    40: (
        f"{_PREFLIGHT}::test_workers_may_take_two_minor_versions_at_once",
        f"{_GUARDS}::test_workers_may_be_three_minor_versions_behind",
        _FAULTS,
    ),
    41: (f"{_GUARDS}::test_nothing_speaks_against_a_rollout_as_it_should_be", _LIFE),
    42: (_LIFE, _FIVE),
    43: (_LIFE, _FIVE),
    44: (f"{_METAL}/hosts/test_reconciler.py::test_the_counters_add_up_for_any_hosts", _LIFE),
    45: (f"{_TROUBLES}::test_a_version_that_the_catalog_lacks_fails_and_goes_on_by_itself_when_it_is_added", _REASONS),
    46: (f"{_TROUBLES}::test_a_host_that_cannot_reach_its_registry_is_told_with_its_output_and_replaced", _REASONS),
    47: (
        "e2e/test_faults.py::test_a_control_plane_that_cannot_join_is_told_with_what_to_look_at_and_replaced",
        "workload/alive/test_sidecar.py::test_the_host_with_the_address_holds_the_lease_and_lets_go_of_it",
        f"{_SIM}/test_world.py::test_the_virtual_address_goes_to_another_host_when_its_holder_loses_its_power",
    ),
    48: (f"{_GUARDS}::test_the_way_for_workers_is_max_unavailable", f"{_TROUBLES}::test_a_surge_is_told_with_the_way_that_there_is"),
    49: (f"{_TROUBLES}::test_an_exhausted_pool_is_told_and_a_host_that_is_added_lets_it_go_on", _REASONS),
    50: (
        f"{_METAL}/test_reasons.py::test_every_row_of_the_table_is_brought_about",
        f"{_METAL}/test_reasons.py::test_the_reference_is_the_table",
    ),
}


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("number", range(1, 51))
def test_a_statement_is_held_by_tests_that_exist(number: int) -> None:
    named = STATEMENTS.get(number, ())
    assert named, f"nothing holds statement {number}"
    for each in named:
        place, _, name = each.partition("::")
        path = TESTS / place
        assert path.exists(), f"statement {number}: there is no {place}"
        assert name in functions_of(path), f"statement {number}: {place} has no {name}"
