"""The fast selection of the Python tests: every folder of the package through its public face, in under 90 seconds.

    python scripts/fast_tests.py [arguments of pytest]

For the minutes of working on something; ./test is what decides. Rows are named explicitly, because collecting all tests
takes longer than these need. tests/python/test_package.py checks that no folder is left out and every row is there.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folder or module of python/fairlead -> tests: a file, or a file::test.
FAST = {
    "api": ["test_contract.py"],
    "base": ["test_alone.py::test_a_signal_that_the_model_swallows_is_raised_at_the_end"],
    "contract": ["test_contract.py"],
    "runtime": ["test_generation.py::test_draws_follow_the_probabilities"],
    "lowerings": ["test_custom_operators.py"],
    "tree": ["test_leaves.py::test_names", "test_leaves.py::test_output_names", "test_string_type.py::test_rows"],
    "patches": [
        "test_patches.py::test_rows_are_applied_in_order_and_undone_to_the_very_object",
        "test_patches.py::test_two_threads_share_a_row_until_the_last_one_ends",
    ],
    "record": [
        "test_record.py::test_every_operator_has_its_module_and_the_models_source_line",
        "test_record.py::test_in_place_operators_become_functional",
    ],
    "verify": [
        "test_rounding.py",
        "test_unseen_values.py::test_a_branch_on_a_value_is_found_where_the_example_took_one_side",
    ],
    "observer": ["test_observer.py::test_scenario_add", "test_observer.py::test_set_batch_dimension_for"],
    "report": ["test_report.py::test_a_result_gives_a_page_with_everything_in_it"],
    "quantize": ["test_quantize.py::test_a_portable_file_has_standard_operators"],
    "options": ["test_bad_requests.py::test_options_that_cannot_be_used"],
    "elsewhere": ["test_elsewhere.py::test_what_has_no_values_is_an_error"],
    "adapters": ["test_lora.py::test_layers_are_found_by_structure"],
    "experiment": [
        "test_errors.py::test_a_branch_on_a_size_that_was_asked_to_vary_is_an_error_with_both_lines",
        "test_transcripts.py::test_what_was_learnt_is_in_it",
        "test_probing.py::test_a_size_of_one_in_the_example_freezes_nothing",
    ],
    "programs": ["test_exported_program.py::test_the_contract_has_the_range_constraints"],
    "targets": [
        "test_program.py::test_a_value_read_is_a_size_of_the_program",
        "test_executorch.py::test_a_backend_says_what_it_needs",
    ],
    "exporters": ["test_exporters.py::test_configs_are_accepted_where_they_make_sense"],
    "generation": ["test_decompose.py::test_what_cannot_be_taken_apart_is_refused"],
    "checkpoint": ["test_cli_checkpoints.py::test_a_package_is_found_without_being_imported"],
    "cli": ["test_cli.py::test_an_axis_can_be_fixed", "test_cli.py::test_help_has_examples_for_every_command"],
}


def main() -> int:
    named = dict.fromkeys(f"tests/python/{row}" for rows in FAST.values() for row in rows)
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2", *named, *sys.argv[1:]]
    return subprocess.run(words, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
