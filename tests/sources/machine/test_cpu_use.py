"""How much of the processors others used, and when that makes a run doubtful."""

from __future__ import annotations

import dataclasses
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.sources.machine.cpu_use import CpuSample, HostWatch, conditions_between

START = CpuSample(total_s=1000, idle_s=500, steal_s=5, own_s=3, ours_s=40)


def later(
    *, total: float, idle: float, steal: float = 0, own: float = 0, ours: float | None = 0
) -> CpuSample:
    return CpuSample(
        total_s=START.total_s + total,
        idle_s=START.idle_s + idle,
        steal_s=START.steal_s + steal,
        own_s=START.own_s + own,
        ours_s=None if ours is None else START.ours_s + ours,
    )


def test_the_load_of_others_is_what_neither_we_nor_the_server_used():
    after = later(total=100, idle=40, steal=2, own=1, ours=48)
    conditions = conditions_between(START, after)
    assert conditions.host_load == pytest.approx(0.10)
    assert conditions.steal == pytest.approx(0.02)
    assert conditions.own_cpu_s == 1
    assert conditions.trusted
    assert conditions.warnings == ()


def test_a_busy_machine_is_not_trusted_and_the_warning_says_all():
    conditions = conditions_between(START, later(total=100, idle=10, ours=50), load_average=7.24)
    assert not conditions.trusted
    (warning,) = conditions.warnings
    assert "40 %" in warning.replace("40%", "40 %")
    assert "load average 7.2" in warning
    assert "slower" in warning
    assert "Stop them" in warning


def test_a_fifth_is_the_bound():
    assert conditions_between(START, later(total=100, idle=80, ours=0)).trusted
    assert not conditions_between(START, later(total=100, idle=79, ours=0)).trusted


def test_stolen_time_is_not_trusted_either():
    conditions = conditions_between(START, later(total=100, idle=70, steal=30))
    assert not conditions.trusted
    assert conditions.host_load == 0
    assert "hypervisor" in conditions.warnings[0]


def test_without_the_servers_process_the_load_is_unknown():
    conditions = conditions_between(START, later(total=100, idle=0, ours=None))
    assert conditions.host_load is None
    assert conditions.trusted
    watch = HostWatch(server_is_local=True)
    watch.start()
    assert watch.stop().host_load is None


def test_a_span_too_short_to_tell():
    conditions = conditions_between(START, later(total=0, idle=0, own=0.5))
    assert (conditions.host_load, conditions.steal) == (None, None)
    assert conditions.own_cpu_s == 0.5


def test_stop_without_start_knows_nothing():
    assert HostWatch().stop().host_load is None


@given(*[st.floats(0, 1e4) for _ in range(5)])
def test_shares_stay_between_zero_and_one(total, idle, steal, own, ours):
    conditions = conditions_between(
        START, later(total=total, idle=idle, steal=steal, own=own, ours=ours)
    )
    for share in (conditions.host_load, conditions.steal):
        assert share is None or 0 <= share <= 1


def test_our_own_work_is_not_the_work_of_others():
    watch = HostWatch(os.getpid())
    watch.start()
    end_s = time.process_time() + 0.1
    while time.process_time() < end_s:
        sum(range(1000))
    conditions = watch.stop()
    assert conditions.own_cpu_s >= 0.05  # the system counts in ticks of 10 ms
    assert conditions.host_load is None or 0 <= conditions.host_load <= 1


def pressed(seconds: float, *, span_s: float = 10.0) -> tuple[CpuSample, CpuSample]:
    """Samples between which some task waited so long for a processor."""
    after = later(total=100, idle=90)
    return (
        dataclasses.replace(START, at_s=100.0, waited_s=50.0),
        dataclasses.replace(after, at_s=100.0 + span_s, waited_s=50.0 + seconds),
    )


def test_pressure_is_the_share_of_time_in_which_someone_waited():
    conditions = conditions_between(*pressed(2.0))
    assert conditions.cpu_pressure == pytest.approx(0.2)
    assert conditions.trusted
    assert conditions_between(*pressed(2.0, span_s=0.0)).cpu_pressure is None
    assert conditions_between(START, later(total=100, idle=90)).cpu_pressure is None


def test_pressure_counts_against_the_numbers_only_where_no_model_runs():
    assert conditions_between(*pressed(9.0)).trusted, "its own threads wait for each other"
    away = conditions_between(*pressed(9.0), server_is_local=False)
    assert not away.trusted
    assert "waited for a processor during 90%" in away.warnings[0]
    assert conditions_between(*pressed(2.5), server_is_local=False).trusted
