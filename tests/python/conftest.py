"""Shared set-up: one thread per test process, because the processes are what runs in parallel; the command line; every
file that a test of some modules exports is compared with eager (oracle.py)."""

import os
import sys

import pytest

# Before torch or onnxruntime is imported anywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def run(monkeypatch, capsys):
    """The command line in this process: (exit code, stdout, stderr)."""
    from fairlead import cli

    def run(*words) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fairlead", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def pytest_configure(config):
    config.addinivalue_line("markers", "not_compared(why): what it exports cannot be compared by oracle.py")


@pytest.fixture(scope="session", autouse=True)
def watch():
    """Before the fixtures of modules, whose exports are those of their first test."""
    from oracle import Watch

    watching = Watch()
    watching.install()
    return watching


# Whose files are compared, each and all: a module joins once everything in it has been.
COMPARED = {
    "test_alone", "test_axes_alike", "test_bad_requests", "test_caches", "test_clients", "test_contract",
    "test_custom_operators", "test_data_sizes", "test_decompose", "test_direct", "test_einsum", "test_errors",
    "test_examples", "test_excuses", "test_experts", "test_file", "test_float_numbers", "test_free_dims",
    "test_fused", "test_leaves", "test_leftovers", "test_limits", "test_loops", "test_neutral_branches",
    "test_observer", "test_observer_export", "test_operator_alone", "test_oracle", "test_passes", "test_patches",
    "test_probing", "test_random", "test_record", "test_report", "test_report_page", "test_rounding",
    "test_runtime_profile", "test_size_branches", "test_size_ranges", "test_stacks", "test_standard_attention",
    "test_string_type", "test_ties", "test_unseen_sizes", "test_unseen_values", "test_value_branches",
    "test_views_and_writes", "test_whole_numbers", "test_wrong_files",
}  # fmt: skip


def is_compared(item) -> bool:
    return item.module.__name__ in COMPARED


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    from oracle import Watch

    Watch.on = is_compared(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    compares = is_compared(item) and item.get_closest_marker("not_compared") is None
    problems = []
    try:
        outcome = yield
    except BaseException:
        compares = False  # it failed by itself: the next test does not answer for what it exported
        raise
    finally:
        if "watch" in item.funcargs:
            problems = item.funcargs["watch"].taken(look=compares)
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    return outcome
