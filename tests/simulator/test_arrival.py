from __future__ import annotations

import socket
import struct
import sys
import time

import pytest

from twospeed.simulator import arrival
from twospeed.simulator.arrival import kernel_stamp, plausible, receive, stamp_arrivals

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what arrives")


def test_a_stamp_is_read_from_its_control_message():
    data = struct.pack("@ll", 1_796_000_000, 123_456_789)
    message = (socket.SOL_SOCKET, arrival.SO_TIMESTAMPNS, data)
    assert kernel_stamp([(0, 0, b"x" * 16), message]) == 1_796_000_000_123_456_789


def test_other_and_short_messages_are_no_stamp():
    assert kernel_stamp([]) is None
    assert kernel_stamp([(socket.SOL_SOCKET, arrival.SO_TIMESTAMPNS, b"short")]) is None
    assert kernel_stamp([(socket.SOL_SOCKET, 1, b"x" * 16)]) is None


def test_impossible_stamps_are_discarded():
    now = 50_000_000_000
    assert plausible(now - 1, now) == now - 1
    assert plausible(now + 1, now) is None  # the wall clock was set back in between
    assert plausible(now - 11_000_000_000, now) is None  # or far ahead


def pair() -> tuple[socket.socket, socket.socket, bool]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stamped = stamp_arrivals(listener)
        client = socket.create_connection(listener.getsockname())
        served, _ = listener.accept()
    served.settimeout(5)
    return client, served, stamped


@linux
def test_the_kernel_stamps_the_arrival_not_the_read():
    client, served, stamped = pair()
    assert stamped
    with client, served:
        sent_ns = time.monotonic_ns()
        client.sendall(b"hello")
        until_ns = sent_ns + 30_000_000
        while time.monotonic_ns() < until_ns:
            pass  # the bytes lie in the kernel meanwhile
        found = receive(served)
    assert found.data == b"hello"
    assert found.kernel_ns is not None
    assert sent_ns <= found.kernel_ns < until_ns
    assert found.read_ns >= until_ns
    assert found.best_ns == found.kernel_ns


def test_the_offset_leads_to_the_wall_clock():
    client, served, _ = pair()
    with client, served:
        client.sendall(b"x")
        found = receive(served)
    wall_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
    assert 0 <= wall_ns - (found.read_ns + found.offset_ns) < 5_000_000_000


def test_without_a_stamp_our_own_clock_counts():
    client, served, _ = pair()
    with client, served:
        client.close()
        found = receive(served)
    assert found.data == b""
    assert found.kernel_ns is None
    assert found.best_ns == found.read_ns
