"""One connection of the simulator: its socket, unfinished requests and unsent bytes."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Protocol

from twospeed.simulator.arrival import Arrival, receive
from twospeed.simulator.request_reader import RequestReader

if TYPE_CHECKING:
    from twospeed.simulator.telling import Telling

_LINGER_OFF = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""struct linger {on, 0 seconds}: closing resets the connection."""


class Cipher(Protocol):
    """TLS of one connection."""

    def decrypt(self, data: bytes) -> tuple[bytes, bytes]:
        """What bytes from the wire say, and what has to be sent because of them."""
        ...

    def encrypt(self, data: bytes) -> bytes:
        """Bytes for the wire."""
        ...


class Connection:
    """A client.

    Args:
        sock: accepted and non-blocking.
        cipher: its TLS; None for plain.
    """

    __slots__ = ("_cipher", "blocked", "closing", "latest", "reader", "sock", "telling", "unsent")

    def __init__(self, sock: socket.socket, cipher: Cipher | None) -> None:
        self.sock = sock
        self.reader = RequestReader()
        self.telling: Telling | None = None
        self.unsent = bytearray()
        self.blocked = False
        """The kernel takes no more for now."""
        self.latest: Arrival | None = None
        """What was read last."""
        self.closing = False
        """Closed as soon as everything is sent."""
        self._cipher = cipher

    def read(self) -> Arrival | None:
        """Read once; None when the other side has closed.

        Raises:
            BlockingIOError: nothing is there.
            OSError: the connection or its TLS is broken.
        """
        arrival = receive(self.sock)
        if not arrival.data:
            return None
        if self._cipher is None:
            return arrival
        plain, due = self._cipher.decrypt(arrival.data)
        if due:
            self.send(due)
        return Arrival(plain, arrival.read_ns, arrival.kernel_ns, arrival.offset_ns)

    def encrypted(self, data: bytes) -> bytes:
        """The bytes as they go on the wire; to be sent in the order in which they were made."""
        return self._cipher.encrypt(data) if self._cipher is not None and data else data

    def send(self, wire: bytes) -> None:
        """Send, and keep what the kernel does not take.

        Raises:
            OSError: the connection is broken.
        """
        sent = 0
        if not self.unsent:
            try:
                sent = self.sock.send(wire)
            except BlockingIOError:
                sent = 0
        if sent < len(wire):
            self.unsent += wire[sent:]

    def flush(self) -> None:
        """Send more of what the kernel did not take.

        Raises:
            OSError: the connection is broken.
        """
        try:
            sent = self.sock.send(self.unsent)
        except BlockingIOError:
            return
        del self.unsent[:sent]

    def reset(self) -> None:
        """Break the connection off, unsent bytes and all."""
        self.unsent.clear()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
