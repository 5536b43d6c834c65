"""The machine over a run: what is put together from the readers, and what stays unseen."""

from __future__ import annotations

import os

import pytest

from twospeed.records.run import MachineFacts, ServerProcess
from twospeed.sources.machine.clocks import Throttling
from twospeed.sources.machine.counts import Counts, counts_now, with_counts
from twospeed.sources.machine.watch import MachineWatch, unseen_in

CPU = "sys/devices/system/cpu/cpu0"
GROUP = "sys/fs/cgroup/box"
ME = os.getpid()
LINUX = {
    f"{CPU}/cpufreq/scaling_cur_freq": 2_000_000,
    f"{CPU}/cpufreq/scaling_max_freq": 4_000_000,
    f"{CPU}/cpufreq/cpuinfo_max_freq": 4_000_000,
    f"{CPU}/cpufreq/scaling_governor": "schedutil",
    f"{CPU}/thermal_throttle/core_throttle_count": 7,
    "sys/devices/system/node/node0/x": 1,
    "sys/fs/cgroup/cgroup.controllers": "cpu memory",
    f"{GROUP}/cpu.stat": "throttled_usec 1000000",
    f"{GROUP}/cpu.max": "100000 100000",
    f"proc/{ME}/cgroup": "0::/box",
    f"proc/{ME}/stat": f"{ME} (python) S 1 1 1 0 -1 0 50 0 3 0 5 6",
    f"proc/{ME}/io": "read_bytes: 100",
    "proc/vmstat": "pswpin 5",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0",
}


def test_a_run_from_start_to_stop(machine):
    root = machine(LINUX)
    watch = MachineWatch(ME, server_is_local=True, root=root)
    watch.start()
    for khz in (3_000_000, 3_200_000, 2_800_000):
        machine({f"{CPU}/cpufreq/scaling_cur_freq": khz})
        watch.glance()
        watch.sample()
    machine(
        {
            f"{CPU}/thermal_throttle/core_throttle_count": 9,
            f"{GROUP}/cpu.stat": "throttled_usec 3500000",
            f"proc/{ME}/stat": f"{ME} (python) S 1 1 1 0 -1 0 50 0 8 0 5 6",
            f"proc/{ME}/io": "read_bytes: 4196",
            "proc/vmstat": "pswpin 7",
        }
    )
    facts, unseen = watch.stop()
    assert unseen == ()
    assert (facts.clock_hz, facts.clock_max_hz, facts.governor) == (3.0e9, 4.0e9, "schedutil")
    assert (facts.throttle_events, facts.throttled_by) == (2, ("thermal",))
    assert facts.cgroup_throttled_s == 2.5
    assert facts.swap_read_bytes % 2 == 0 < facts.swap_read_bytes
    assert facts.memory_pressure == 0.0
    assert facts.memory_available_bytes > 1_000_000
    assert facts.numa_nodes == 1
    assert facts.logical_cores >= 1
    assert (facts.server.major_faults, facts.server.read_bytes) == (5, 4096)
    assert facts.server.allowed_cores == 1


def test_a_machine_that_shows_nothing_says_what_is_missing(tmp_path):
    watch = MachineWatch(None, server_is_local=True, root=tmp_path)
    watch.start()
    watch.glance()
    facts, unseen = watch.stop()
    assert facts.server is None
    assert (facts.clock_hz, facts.throttle_events, facts.memory_pressure) == (None, None, None)
    assert (facts.cgroup_throttled_s, facts.governor, facts.graphics) == (None, None, ())
    assert [blind.what for blind in unseen] == ["the server's process", "the processor's clock"]


def test_of_a_machine_far_away_nothing_is_read(tmp_path):
    watch = MachineWatch(None, server_is_local=False, root=tmp_path)
    watch.start()
    watch.glance()
    watch.sample()
    assert watch.stop() == (MachineFacts(), ())


def test_without_start_nothing_is_known(tmp_path):
    assert MachineWatch(ME, server_is_local=True, root=tmp_path).stop() == (MachineFacts(), ())


@pytest.mark.parametrize(
    ("server", "clock", "expected"),
    [
        (None, 1e9, ["the server's process"]),
        (ServerProcess(), 1e9, ["whether the server waited for storage"]),
        (ServerProcess(major_faults=0), None, ["the processor's clock"]),
        (ServerProcess(major_faults=0), 1e9, []),
    ],
)
def test_what_a_verdict_would_have_used(server, clock, expected):
    facts = MachineFacts(server=server, clock_max_hz=clock)
    assert [blind.what for blind in unseen_in(facts)] == expected


def counted(**counts):
    return Counts(at_s=10.0, **counts)


def test_unknown_counts_add_nothing():
    for before, after in [
        (Counts(at_s=0.0), counted()),
        (Counts(at_s=0.0), counted(quota_s=1.0)),
        (Counts(at_s=0.0, quota_s=2.0), counted(quota_s=1.0)),
    ]:
        assert with_counts(MachineFacts(), before, after) == MachineFacts()


def test_power_and_heat_are_told_apart():
    before = Counts(at_s=0.0, throttling=Throttling(hot=1, over_power=1))
    hot = counted(throttling=Throttling(hot=1, over_power=4))
    told = with_counts(MachineFacts(throttled_by=("boost_off",)), before, hot)
    assert (told.throttle_events, told.throttled_by) == (3, ("boost_off", "power"))
    calm = with_counts(MachineFacts(), before, counted(throttling=before.throttling))
    assert (calm.throttle_events, calm.throttled_by) == (0, ())


def test_counts_of_this_very_machine_only_grow():
    before, after = counts_now(ME), counts_now(ME)
    told = with_counts(MachineFacts(), before, after)
    assert told.swap_read_bytes is None or told.swap_read_bytes >= 0
    assert told.memory_pressure is None or 0 <= told.memory_pressure <= 1
