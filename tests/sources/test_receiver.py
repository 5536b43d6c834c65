"""Where arrival stamps come from, and what a stepping wall clock does to them: nothing."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass, field

import pytest

from twospeed.sources.live.clock import MonotonicClock
from twospeed.sources.live.receiver import (
    SO_TIMESTAMPNS,
    TIMESPEC,
    KernelReceiver,
    UserReceiver,
    best_receiver,
    stamp_of,
)

S = 1_000_000_000
MS = 1_000_000

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's stamps are Linux's")


@dataclass
class Time:
    """Monotonic time and a wall clock that is ahead of it, both set by hand."""

    mono_ns: int = 5 * S
    ahead_ns: int = 1_700_000_000 * S

    def stamp(self) -> int:
        return self.mono_ns + self.ahead_ns


@dataclass
class Mono:
    time: Time

    def now_ns(self) -> int:
        return self.time.mono_ns


@dataclass
class Wall:
    time: Time

    def now_ns(self) -> int:
        return self.time.stamp()


@dataclass
class Socket:
    """Hands out segments with the stamps that a kernel would have given them."""

    waiting: list[tuple[bytes, int | None]] = field(default_factory=list)

    def recvmsg(self, _size: int, _control: int):
        data, stamp_ns = self.waiting.pop(0)
        control = []
        if stamp_ns is not None:
            spec = TIMESPEC.pack(stamp_ns // S, stamp_ns % S)
            control = [(socket.SOL_SOCKET, SO_TIMESTAMPNS, spec)]
        return data, control, 0, None


def kernel(time: Time) -> KernelReceiver:
    return KernelReceiver(Mono(time), Wall(time))


def test_a_late_read_does_not_move_the_stamp():
    time, sock = Time(), Socket()
    receiver = kernel(time)
    arrived_ns = time.mono_ns + 3 * MS
    time.mono_ns = arrived_ns
    sock.waiting.append((b"text", time.stamp()))
    time.mono_ns += 40 * MS
    assert receiver.receive(sock) == (b"text", arrived_ns, "kernel")


@pytest.mark.parametrize("step_ns", [-3600 * S, -2 * S, -5 * MS, 5 * MS, 2 * S, 3600 * S])
@pytest.mark.parametrize("late_ns", [0, 1 * MS])
def test_a_step_of_the_wall_clock_before_the_arrival_changes_nothing(step_ns: int, late_ns: int):
    time, sock = Time(), Socket()
    receiver = kernel(time)
    time.mono_ns += 10 * MS
    time.ahead_ns += step_ns
    time.mono_ns += 10 * MS
    arrived_ns = time.mono_ns
    sock.waiting.append((b"text", time.stamp()))
    time.mono_ns += late_ns
    assert receiver.receive(sock)[1] == arrived_ns


@pytest.mark.parametrize("step_ns", [-3600 * S, -2 * S, -5 * MS, 5 * MS, 2 * S, 3600 * S])
def test_a_step_of_the_wall_clock_between_arrival_and_read_changes_nothing(step_ns: int):
    time, sock = Time(), Socket()
    receiver = kernel(time)
    time.mono_ns += 10 * MS
    arrived_ns = time.mono_ns
    sock.waiting.append((b"text", time.stamp()))
    time.ahead_ns += step_ns
    time.mono_ns += 1 * MS
    assert receiver.receive(sock)[1] == arrived_ns


def test_slewing_is_no_step():
    time, sock = Time(), Socket()
    receiver = kernel(time)
    for _ in range(100):
        time.mono_ns += 100 * MS
        time.ahead_ns += 50_000  # 500 ppm
        sock.waiting.append((b"x", time.stamp()))
        assert receiver.receive(sock)[1] == time.mono_ns


def test_a_stamp_is_never_in_the_future_and_its_lack_is_said():
    time, sock = Time(), Socket()
    receiver = kernel(time)
    sock.waiting.append((b"x", time.stamp() + 5 * MS))
    assert receiver.receive(sock)[1] == time.mono_ns
    sock.waiting.append((b"x", None))
    assert receiver.receive(sock) == (b"x", time.mono_ns, "user")


def test_other_control_messages_are_passed_over():
    assert stamp_of([(socket.SOL_SOCKET, 1, b"\0" * 16)]) is None
    assert stamp_of([(socket.SOL_SOCKET, SO_TIMESTAMPNS, b"\0" * 4)]) is None
    assert stamp_of([]) is None


def test_our_own_stamps_can_be_asked_for():
    assert isinstance(best_receiver(MonotonicClock(), "user"), UserReceiver)


@linux_only
def test_a_real_kernel_stamps_a_real_socket():
    receiver = best_receiver(MonotonicClock())
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        receiver.prepare(client)
        client.connect(listener.getsockname())
        peer, _ = listener.accept()
        with peer:
            clock = MonotonicClock()
            stamped = []
            for _ in range(50):
                before_ns = clock.now_ns()
                peer.sendall(b"text")
                data, at_ns, by = receiver.receive(client)
                assert data == b"text"
                assert before_ns - 50_000 <= at_ns <= clock.now_ns()
                stamped.append(by)
    # The kernel may begin to stamp a moment after it was asked to.
    assert stamped[-1] == "kernel"
