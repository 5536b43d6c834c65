"""How fast this machine reads memory and multiplies matrices; a short-lived process of its own.

Run as `python -m twospeed.limits.probe_child [THREADS]`: prints one MachineProbe as JSON and ends,
so that its arrays and threads never burden the process that measures the model. Start it through
`machine_probe.measure`, which also keeps the matrix library to one thread per caller.

Rule: bandwidth = bytes of a max reduction over 64-bit integers / seconds, each thread over memory
that it touched first, the best of several rounds and thread counts; 64 MB would measure the cache,
and a float64 sum the adders (docs/physics.md). Matrix speed = 2 n³ / seconds, one product per
thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import psutil

from twospeed.records.run import MachineProbe

Array = (
    np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    | np.ndarray[tuple[int, ...], np.dtype[np.float32]]
)

WANTED_BYTES = 512 * 10**6
LEAST_BYTES = 256 * 10**6
# The probe takes at most this share of the memory that is free.
MEMORY_SHARE = 4
BANDWIDTH_BUDGET_S = 0.6
MATMUL_BUDGET_S = 0.6
ROUNDS = 5
MATRIX_EXTENT = 1024

CGROUP = Path("/sys/fs/cgroup")


def main() -> int:
    """Measure and print one JSON object; with an argument, on no more threads than that."""
    threads = min([physical_cores(), *map(int, sys.argv[1:2])])
    size = probe_bytes(free_memory_bytes())
    bandwidth, best_threads, flops = None, None, None
    with ThreadPoolExecutor(threads) as pool:
        counts = thread_counts(threads)
        if size is not None:
            bandwidth, best_threads = best_bandwidth(pool, size, counts, BANDWIDTH_BUDGET_S)
            flops = best_matmul(pool, MATRIX_EXTENT, counts, MATMUL_BUDGET_S)
    probe = MachineProbe(
        memory_bandwidth_bytes_per_s=bandwidth,
        matmul_flops_per_s=flops,
        threads=best_threads,
        cpu_s=time.process_time(),
    )
    sys.stdout.buffer.write(msgspec.json.encode(probe) + b"\n")
    return 0


def physical_cores() -> int:
    """Cores that this process may use, without the second thread of each."""
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    if sys.platform == "linux":
        cores = min(cores, len(psutil.Process().cpu_affinity()))
    return cores


def thread_counts(threads: int) -> list[int]:
    """Powers of two up to, and including, all threads."""
    return sorted({1 << power for power in range(threads.bit_length() - 1)} | {1, threads})


def free_memory_bytes() -> int:
    """Memory that can be taken without swapping, the container's limit included."""
    free: int = psutil.virtual_memory().available
    limit, used = _cgroup_bytes("memory.max"), _cgroup_bytes("memory.current")
    return free if limit is None or used is None else min(free, max(limit - used, 0))


def _cgroup_bytes(name: str) -> int | None:
    try:
        text = (CGROUP / name).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def probe_bytes(free_bytes: int) -> int | None:
    """How much to read: enough to defeat the caches, never a large part of the free memory."""
    size = min(WANTED_BYTES, free_bytes // MEMORY_SHARE)
    return size if size >= LEAST_BYTES else None


def best_bandwidth(
    pool: ThreadPoolExecutor, size_bytes: int, counts: Sequence[int], budget_s: float
) -> tuple[float, int]:
    """Bytes per second read from memory, and the thread count that read fastest.

    Args:
        pool: at least as many workers as the largest count.
        size_bytes: memory to read in one round, split over the threads.
        counts: thread counts to try.
        budget_s: no further round is begun after so many seconds.
    """
    most = max(counts)
    words = size_bytes // most // 8
    # Each worker touches its own slice first, which places it in the nearest memory.
    slices = list(pool.map(lambda _: np.ones(words, dtype=np.int64), range(most)))
    rates = {
        count: words * 8 * count / seconds
        for count, seconds in _fastest(pool, np.max, slices, counts, budget_s).items()
    }
    best = max(rates, key=lambda count: rates[count])
    return rates[best], best


def best_matmul(
    pool: ThreadPoolExecutor, extent: int, counts: Sequence[int], budget_s: float
) -> float:
    """Operations per second of 32-bit matrix products, the best of the thread counts.

    Args:
        pool: at least as many workers as the largest count.
        extent: rows and columns of the square matrices.
        counts: thread counts to try.
        budget_s: no further round is begun after so many seconds.
    """
    matrices = [np.ones((extent, extent), dtype=np.float32) for _ in range(max(counts))]
    fastest = _fastest(pool, _square, matrices, counts, budget_s)
    return max(2.0 * extent**3 * count / seconds for count, seconds in fastest.items())


def _square(matrix: Array) -> object:
    return matrix @ matrix


def _fastest(
    pool: ThreadPoolExecutor,
    work: Callable[[Array], object],
    items: Sequence[Array],
    counts: Sequence[int],
    budget_s: float,
) -> dict[int, float]:
    """For each thread count, the shortest seconds in which so many items were worked on at once.

    Every count gets one round, and further ones in turn while the budget lasts: a disturbance
    then hits all counts alike.
    """
    began = time.perf_counter()
    fastest: dict[int, float] = {}
    for turn in range(ROUNDS):
        for count in counts:
            if turn and time.perf_counter() - began > budget_s:
                return fastest
            start = time.perf_counter()
            list(pool.map(work, items[:count]))
            seconds = time.perf_counter() - start
            fastest[count] = min(seconds, fastest.get(count, seconds))
    return fastest


if __name__ == "__main__":
    sys.exit(main())
