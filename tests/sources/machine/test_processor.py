"""Kinds of cores, clocks, and what holds the processor back."""

from __future__ import annotations

import pytest

from twospeed.sources.machine.clocks import (
    Throttling,
    being_cooled,
    clock_hz,
    clock_max_hz,
    governor,
    standing_limits,
    throttling,
)
from twospeed.sources.machine.cores import numa_nodes, performance_cores

CPU = "sys/devices/system/cpu"


def cpus(count: int, name: str, values: list[object]) -> dict[str, object]:
    return {f"{CPU}/cpu{n}/{name}": values[n] for n in range(count)}


def test_intels_fast_cores_are_counted_without_their_second_threads(machine):
    siblings = ["0-1", "0-1", "2-3", "2-3", "4", "5"]
    files = cpus(6, "topology/thread_siblings_list", siblings)
    assert performance_cores(machine(files | {"sys/devices/cpu_core/cpus": "0-3"})) == 2


def test_arms_fast_cores_have_the_highest_capacity(machine):
    assert performance_cores(machine(cpus(4, "cpu_capacity", [446, 446, 1024, 1024]))) == 2


def test_apples_fast_cores_are_counted_by_the_system(tmp_path):
    m2 = {"hw.nperflevels": 2, "hw.perflevel0.physicalcpu": 8}
    assert performance_cores(tmp_path, m2.get) == 8
    assert performance_cores(tmp_path, {"hw.nperflevels": 1}.get) is None


def test_cores_that_are_all_alike_have_no_fast_kind(machine):
    assert performance_cores(machine(cpus(4, "cpu_capacity", [1024] * 4))) is None
    assert (
        performance_cores(machine(cpus(4, "topology/thread_siblings_list", [0, 1, 2, 3]))) is None
    )


def test_memory_regions(machine):
    assert numa_nodes(machine({"sys/devices/system/node/node0/x": 1})) == 1
    assert numa_nodes(machine({"sys/devices/system/node/node1/x": 1})) == 2
    assert numa_nodes(machine({}) / "none") is None


def test_the_clock_is_that_of_the_processors_at_work(machine):
    root = machine(
        cpus(4, "cpufreq/scaling_cur_freq", [800_000, 3_000_000, 3_200_000, 800_000])
        | cpus(4, "cpufreq/cpuinfo_max_freq", [4_000_000] * 4)
        | cpus(4, "cpufreq/scaling_max_freq", [4_000_000] * 4)
        | cpus(4, "cpufreq/scaling_governor", ["powersave"] * 3 + ["performance"])
    )
    assert clock_hz(root) == 3.1e9
    assert clock_max_hz(root) == 4.0e9
    assert governor(root) == "powersave"
    assert standing_limits(root) == ()


def test_a_machine_that_shows_no_clock(tmp_path):
    assert (clock_hz(tmp_path), clock_max_hz(tmp_path), governor(tmp_path)) == (None,) * 3
    assert standing_limits(tmp_path) == ()
    assert throttling(tmp_path) is None
    assert not being_cooled(tmp_path)


@pytest.mark.parametrize("file", ["cpufreq/boost", "intel_pstate/no_turbo"])
def test_limits_that_someone_has_set(machine, file):
    off = {f"{CPU}/{file}": 0 if file.endswith("boost") else 1}
    root = machine(
        off
        | cpus(2, "cpufreq/cpuinfo_max_freq", [4_000_000] * 2)
        | cpus(2, "cpufreq/scaling_max_freq", [2_000_000] * 2)
    )
    assert standing_limits(root) == ("boost_off", "clock_cap")


def test_counters_of_heat_and_power(machine):
    counts = (
        cpus(2, "thermal_throttle/core_throttle_count", [3, 4])
        | cpus(2, "thermal_throttle/package_throttle_count", [5, 5])
        | cpus(2, "thermal_throttle/core_power_limit_count", [1, 0])
    )
    told = throttling(machine(counts))
    assert told == Throttling(hot=12, over_power=1)
    assert told.since(Throttling(hot=10)) == Throttling(hot=2)
    assert told.since(Throttling(hot=12, over_power=0)) == Throttling(hot=0, over_power=1)


@pytest.mark.parametrize(
    ("kind", "state", "cooled"),
    [
        ("Processor", 3, True),
        ("Processor", 0, False),
        ("intel_powerclamp", -1, False),
        ("cpufreq-cpu0", 1, True),
        ("Fan", 2, False),
    ],
)
def test_cooling_by_slowing_down(machine, kind, state, cooled):
    device = "sys/class/thermal/cooling_device0"
    root = machine({f"{device}/type": kind, f"{device}/cur_state": state})
    assert being_cooled(root) is cooled
