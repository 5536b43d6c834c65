from __future__ import annotations

import socket
import time

import pytest

from twospeed.simulator.waiting import Waiter

MS = 1_000_000


@pytest.fixture
def waiter():
    waiter = Waiter()
    yield waiter
    waiter.close()


@pytest.fixture
def pair():
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_a_deadline_is_never_anticipated(waiter):
    for wanted_ms in (0.05, 0.3, 1.0, 4.0):
        deadline_ns = time.monotonic_ns() + round(wanted_ms * MS)
        while waiter.wait(deadline_ns, 1.0) or time.monotonic_ns() < deadline_ns:
            pass
        late_ns = time.monotonic_ns() - deadline_ns
        assert 0 <= late_ns < 200 * MS


def test_one_wait_reaches_a_near_deadline(waiter):
    deadline_ns = time.monotonic_ns() + 3 * MS
    assert waiter.wait(deadline_ns, 1.0) == []
    assert time.monotonic_ns() >= deadline_ns


def test_the_longest_wait_is_kept(waiter):
    start_ns = time.monotonic_ns()
    assert waiter.wait(None, 0.02) == []
    assert time.monotonic_ns() - start_ns >= 19 * MS


def test_what_is_readable_ends_a_wait(waiter, pair):
    one, other = pair
    waiter.watch(one, "owner")
    other.send(b"x")
    start_ns = time.monotonic_ns()
    assert waiter.wait(start_ns + 5_000 * MS, 5.0) == [("owner", True, False)]
    assert time.monotonic_ns() - start_ns < 2_000 * MS


def test_sockets_are_looked_at_even_when_deadlines_are_dense(waiter, pair):
    one, other = pair
    waiter.watch(one, "owner")
    other.send(b"x")
    for _ in range(100):
        if waiter.wait(time.monotonic_ns() + 100_000, 1.0):
            return
    pytest.fail("no wait looked at the socket")


def test_writing_is_told_while_it_is_watched(waiter, pair):
    one, _ = pair
    waiter.watch(one, "owner")
    waiter.watch_writing(one, "owner", on=True)
    assert waiter.wait(None, 1.0) == [("owner", False, True)]
    waiter.watch_writing(one, "owner", on=False)
    assert waiter.wait(None, 0.01) == []
