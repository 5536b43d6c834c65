"""The stopwatch watches itself: how late it was, what it used, and when that is too much."""

from __future__ import annotations

import asyncio
import gc
import sys
import time

import pytest

from twospeed.sources.live.garbage import collection_held
from twospeed.sources.live.self_check import (
    MOST_LAG_S,
    PERIOD_S,
    OwnUse,
    SelfCheck,
    lag_of,
    peak_bytes,
)


def use(**changes) -> OwnUse:
    return OwnUse(**{"cpu_s": 0.1, "wall_s": 10.0, "loop_lag_s": 0.001, "peak_bytes": 1} | changes)


def watched(work) -> OwnUse:
    async def main():
        check = SelfCheck()
        check.start()
        await work()
        return check.stop()

    return asyncio.run(main())


def test_a_loop_that_was_held_up_is_noticed():
    async def hold_up():
        await asyncio.sleep(PERIOD_S / 2)
        ends_s = time.monotonic() + 0.1
        while time.monotonic() < ends_s:
            pass
        await asyncio.sleep(0)

    own = watched(hold_up)
    assert own.loop_lag_s > 0.1 - PERIOD_S
    assert own.cpu_s > 0.05
    assert own.wall_s > 0.1
    assert any("held up" in warning for warning in own.warnings("kernel"))


def test_too_short_a_run_has_no_lag():
    async def nothing():
        await asyncio.sleep(0)

    assert watched(nothing).loop_lag_s is None


def test_the_watch_ends_with_stop():
    async def main():
        check = SelfCheck()
        check.start()
        check.stop()
        await asyncio.sleep(2 * PERIOD_S)
        return check.stop().loop_lag_s

    assert asyncio.run(main()) is None


@pytest.mark.parametrize(
    ("late_s", "lag_s"),
    [
        ([], None),
        ([0.2, 0.1], 0.2),
        ([0.001] * 99, 0.001),
        ([0.001] * 99 + [0.5], 0.001),
        ([0.001] * 98 + [0.4, 0.5], 0.4),
        ([0.001] * 196 + [0.3, 0.4, 0.5, 0.6], 0.4),
    ],
)
def test_one_call_in_a_hundred_may_be_later(late_s, lag_s):
    assert lag_of(late_s) == lag_s


@pytest.mark.parametrize("clock", ["user", "kernel"])
def test_the_bound_on_lateness_is_that_of_the_clock(clock):
    assert use(loop_lag_s=MOST_LAG_S[clock]).warnings(clock) == ()
    (warning,) = use(loop_lag_s=MOST_LAG_S[clock] * 1.5).warnings(clock)
    assert f"more than {MOST_LAG_S[clock] * 1e3:.0f} ms" in warning
    assert MOST_LAG_S["user"] < MOST_LAG_S["kernel"]


def test_most_of_a_processor_is_too_much():
    assert use(cpu_s=8.0).warnings("kernel") == ()
    (warning,) = use(cpu_s=8.5).warnings("kernel")
    assert "85% of a processor" in warning
    assert use(cpu_s=0.9, wall_s=0.9).warnings("kernel") == (), "too short to tell"
    assert use(loop_lag_s=None).warnings("user") == ()


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's own file")
def test_the_peak_is_that_of_this_program(tmp_path):
    status = tmp_path / "status"
    status.write_text("Name:\tx\nVmHWM:\t  61444 kB\nVmRSS:\t  50000 kB\n")
    assert peak_bytes(status) == 61444 * 1024
    status.write_text("Name:\tx\n")
    assert peak_bytes(status) is None
    assert peak_bytes() > 10_000_000
    assert peak_bytes(tmp_path / "none") > 10_000_000, "the system call stands in"


def test_collection_is_held_and_comes_back_as_it_was():
    assert gc.isenabled()
    with collection_held():
        assert not gc.isenabled()
        with collection_held():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the outer one still holds"
    assert gc.isenabled()


def test_collection_that_was_off_stays_off():
    gc.disable()
    try:
        with collection_held():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collection_comes_back_after_a_failure():
    with pytest.raises(ZeroDivisionError), collection_held():
        _ = 1 / 0
    assert gc.isenabled()


def test_overlapping_holders_all_have_their_wish():
    async def hold(seconds, seen):
        with collection_held():
            await asyncio.sleep(seconds)
            seen.append(gc.isenabled())

    async def main():
        seen: list[bool] = []
        await asyncio.gather(hold(0.001, seen), hold(0.003, seen))
        return seen

    assert asyncio.run(main()) == [False, False]
    assert gc.isenabled()
