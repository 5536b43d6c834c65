"""The local probe: sizes, thread counts, and a helper process that may fail."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from twospeed.limits.machine_probe import measure
from twospeed.limits.probe_child import (
    best_bandwidth,
    best_matmul,
    probe_bytes,
    thread_counts,
)
from twospeed.records.run import MachineProbe


@pytest.mark.parametrize(
    ("threads", "counts"),
    [(1, [1]), (2, [1, 2]), (3, [1, 3]), (6, [1, 2, 6]), (8, [1, 2, 4, 8])],
)
def test_thread_counts_end_with_all(threads, counts):
    assert thread_counts(threads) == counts


@pytest.mark.parametrize(
    ("free", "size"),
    [(64 * 10**9, 512 * 10**6), (1200 * 10**6, 300 * 10**6), (10**9, None), (0, None)],
)
def test_probe_takes_a_quarter_of_free_memory_or_nothing(free, size):
    assert probe_bytes(free) == size


def test_small_measurements_are_plausible():
    """Any processor lies between 0.1 GB/s and 10 TB/s, and above 10 MFLOP/s."""
    with ThreadPoolExecutor(2) as pool:
        rate, threads = best_bandwidth(pool, 8_000_000, [1, 2], 0.05)
        flops = best_matmul(pool, 64, [1, 2], 0.05)
    assert 1e8 < rate < 1e13
    assert threads in (1, 2)
    assert 1e7 < flops < 1e15


def helper(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_helper_answer_is_read():
    code = """print('{"memory_bandwidth_bytes_per_s":2e9,"matmul_flops_per_s":3e9,"threads":2}')"""
    assert measure(20.0, helper(code)) == MachineProbe(
        memory_bandwidth_bytes_per_s=2e9, matmul_flops_per_s=3e9, threads=2
    )


def test_helper_gets_a_single_threaded_matrix_library():
    code = (
        "import os; n = int(os.environ['OPENBLAS_NUM_THREADS']);"
        """print('{"memory_bandwidth_bytes_per_s":1e9,"threads":%d}' % n)"""
    )
    probe = measure(20.0, helper(code))
    assert probe is not None
    assert probe.threads == 1


@pytest.mark.parametrize(
    "code",
    ["raise SystemExit(1)", "print('not json')", "print('{}')", "print('[1]')", "pass"],
)
def test_failing_helper_gives_none(code):
    assert measure(20.0, helper(code)) is None


def test_helper_that_hangs_or_is_missing_gives_none(tmp_path):
    assert measure(0.2, helper("import sys, threading; threading.Event().wait(30)")) is None
    assert measure(1.0, (str(tmp_path / "absent"),)) is None


def test_helper_is_told_how_many_threads_the_server_has():
    answer = '{"memory_bandwidth_bytes_per_s":1e9,"threads":%s}'
    code = f"import sys; print({answer!r} % sys.argv[1])"
    probe = measure(20.0, helper(code), threads=3)
    assert probe is not None
    assert probe.threads == 3
