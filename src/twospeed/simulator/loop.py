"""Sockets and deadlines of the simulator: one thread, no framework, no allocation it can avoid.

Every write is framed (and encrypted) when the one before has gone out. At its time only the clock
is read and the bytes are handed over; all writes that are due go out before anything else is done.
"""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns

from twospeed.simulator.arrival import Arrival, stamp_arrivals
from twospeed.simulator.connection import Cipher, Connection
from twospeed.simulator.exchange import Reply, Request, Write
from twospeed.simulator.framing import reply_bytes
from twospeed.simulator.pacing import Pacer
from twospeed.simulator.request_reader import BadRequestError
from twospeed.simulator.simulation import Simulation, Stream
from twospeed.simulator.telling import Telling, told_truth
from twospeed.simulator.truth import BEHIND_NS, Ended, RequestTruth, refused_truth, truth_of
from twospeed.simulator.waiting import Waiter

BACKLOG = 1024
IDLE_S = 0.5
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Loop:
    """Serves one simulation.

    Args:
        simulation: what is served.
        listener: bound and listening.
        new_cipher: makes the TLS of each connection; None for plain.
        on_truth: told of each request that has ended.
        max_requests: ends after so many requests for text; None for never.
        duration_s: ends after so many seconds; None for never.

    Attributes:
        late_writes: writes of text that were later than planned by more than a millisecond.
        worst_late_ns: the largest delay.
    """

    def __init__(
        self,
        simulation: Simulation,
        listener: socket.socket,
        *,
        new_cipher: Callable[[], Cipher] | None = None,
        on_truth: Callable[[RequestTruth], None] | None = None,
        max_requests: int | None = None,
        duration_s: float | None = None,
    ) -> None:
        self.simulation = simulation
        self.late_writes = 0
        self.worst_late_ns = 0
        self.ended_requests = 0
        self._listener = listener
        self._new_cipher = new_cipher
        self._on_truth = on_truth
        self._max_requests = max_requests
        self._end_ns = None if duration_s is None else monotonic_ns() + round(1e9 * duration_s)
        self._waiter = Waiter()
        self._waker, self._wake = socket.socketpair()
        self._pacer = Pacer(
            simulation.settings.machine.token_s(0), send=self._send, follow=self._after_write
        )
        self._connections: set[Connection] = set()
        self._tellings: dict[int, Telling] = {}
        """By the number of their job."""
        self._collected_requests = 0
        self._stopped = False

    def stop(self) -> None:
        """End soon; may be called from another thread or from a signal handler."""
        self._stopped = True
        with suppress(OSError):  # it has ended already
            self._wake.send(b".")

    def run(self) -> None:
        """Serve until stopped."""
        stamp_arrivals(self._listener)
        self._waiter.watch(self._listener, self._accept)
        self._waiter.watch(self._waker, lambda: None)
        try:
            while True:
                self._pacer.fire()
                if self._is_over():
                    return
                deadline_ns = self._pacer.deadline_ns()
                ready = self._waiter.wait(deadline_ns, self._longest_s())
                if not ready and deadline_ns is None:
                    self._rest()
                for owner, reads, writes in ready:
                    self._serve(owner, reads=reads, writes=writes)
                    # A deadline may have come while a long prompt was read.
                    self._pacer.fire()
        finally:
            self.shut()

    def _rest(self) -> None:
        """Collect garbage while nothing happens, where it is not collected by itself."""
        if self.ended_requests > self._collected_requests and not gc.isenabled():
            self._collected_requests = self.ended_requests
            gc.collect()

    def _longest_s(self) -> float:
        """How long to wait when nothing happens."""
        if self._end_ns is None:
            return IDLE_S
        return min(IDLE_S, max(self._end_ns - monotonic_ns(), 0) / 1e9)

    def _is_over(self) -> bool:
        if self._stopped or (self._end_ns is not None and monotonic_ns() >= self._end_ns):
            return True
        enough = self._max_requests is not None and self.ended_requests >= self._max_requests
        return enough and not any(connection.unsent for connection in self._connections)

    def _send(self, telling: Telling) -> None:
        try:
            telling.connection.send(telling.wire)
        except OSError:
            self._drop(telling.connection)

    def _after_write(self, telling: Telling) -> None:
        write = telling.pending
        if write is None:
            return
        self._note(telling, write, telling.actual_ns, len(telling.wire))
        self._watch_unsent(telling.connection)
        if write.reset:
            telling.connection.reset()
            self._finish(telling, "reset", write.at_ns)
        elif write.end:
            self._finish(telling, "complete", write.at_ns)
        else:
            self._prepare(telling)

    def _note(self, telling: Telling, write: Write, actual_ns: int, size: int) -> None:
        if write.tokens:
            late_ns = actual_ns - write.at_ns
            self.late_writes += late_ns > BEHIND_NS
            self.worst_late_ns = max(self.worst_late_ns, late_ns)
        if self._on_truth is not None:
            telling.truth.append(truth_of(write, actual_ns, size))

    def _prepare(self, telling: Telling) -> None:
        """Make the next write ready for its time."""
        if telling.writes is None:
            return
        write = next(telling.writes)
        framed = b"" if write.reset else telling.stream.framer.frame(write)
        telling.pending = write
        telling.wire = telling.connection.encrypted(framed)
        self._pacer.add(write.at_ns, telling)

    def _serve(self, owner: object, *, reads: bool, writes: bool) -> None:
        if not isinstance(owner, Connection):
            if callable(owner):
                owner()
            return
        if owner not in self._connections:
            return  # dropped a moment ago
        try:
            if writes:
                owner.flush()
                self._watch_unsent(owner)
            if reads and owner in self._connections:
                self._read(owner)
        except OSError:
            self._drop(owner)

    def _accept(self) -> None:
        """Take every connection that waits."""
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:  # none is left, one was gone already, or no descriptor is free
                return
            sock.setblocking(False)  # noqa: FBT003
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, self._new_cipher() if self._new_cipher else None)
            self._connections.add(connection)
            self._waiter.watch(sock, connection)

    def _read(self, connection: Connection) -> None:
        try:
            arrival = connection.read()
        except BlockingIOError:
            return
        if arrival is None:
            self._drop(connection)
            return
        connection.reader.feed(arrival.data)
        connection.latest = arrival
        self._take_requests(connection)

    def _take_requests(self, connection: Connection) -> None:
        """Handle the requests that are complete, one after the other."""
        arrival = connection.latest
        while arrival and connection.telling is None and not connection.closing:
            try:
                request = connection.reader.next_request()
            except BadRequestError as error:
                refusal = self.simulation.dialect.refusal(error.status, str(error))
                request = Request(method="GET", path="/", headers={"connection": "close"})
                self._reply(connection, request, refusal)
                return
            if request is None:
                if connection.reader.wants_continue:
                    connection.reader.wants_continue = False
                    connection.send(connection.encrypted(CONTINUE))
                return
            handled = self.simulation.handle(request, arrival.best_ns, monotonic_ns())
            if isinstance(handled, Reply):
                self._reply(connection, request, handled, arrival)
            else:
                self._begin(connection, arrival, handled)

    def _reply(
        self,
        connection: Connection,
        request: Request,
        reply: Reply,
        arrival: Arrival | None = None,
    ) -> None:
        head = self.simulation.head(request, reply.status, reply.content_type, *reply.headers)
        wire = connection.encrypted(reply_bytes(head, reply))
        now_ns = monotonic_ns()
        connection.send(wire)
        connection.closing = self.simulation.closes_after(request, reply)
        if arrival is not None and self.simulation.is_for_text(request):
            self.ended_requests += 1
            if self._on_truth is not None:
                self._on_truth(
                    refused_truth(
                        number=self.simulation.requests,
                        dialect=self.simulation.dialect.name,
                        path=request.path,
                        status=reply.status,
                        arrival=arrival,
                        now_ns=now_ns,
                    )
                )
        self._watch_unsent(connection)

    def _begin(self, connection: Connection, arrival: Arrival, stream: Stream) -> None:
        telling = Telling(connection, stream, arrival)
        connection.telling = telling
        self._tellings[stream.job.number] = telling
        first = self.simulation.greeting(stream, monotonic_ns())
        if first is not None:
            wire = connection.encrypted(stream.framer.frame(first))
            actual_ns = monotonic_ns()
            connection.send(wire)
            self._note(telling, first, actual_ns, len(wire))
            self._watch_unsent(connection)
        self._start_jobs()

    def _start_jobs(self) -> None:
        """Begin the answers that have got a slot."""
        while (job := self.simulation.bench.start_next()) is not None:
            telling = self._tellings[job.number]
            telling.writes = self.simulation.writes(telling.stream)
            self._prepare(telling)

    def _finish(self, telling: Telling, ended: Ended, at_ns: int) -> None:
        """End an answer, complete or not, and give its slot to the next one."""
        telling.over = True
        connection, job = telling.connection, telling.stream.job
        connection.telling = None
        del self._tellings[job.number]
        self.simulation.bench.leave(job, at_ns)
        self.ended_requests += 1
        self._start_jobs()
        self._report(telling, ended)
        if ended == "complete" and not telling.stream.closes:
            if connection in self._connections:
                self._take_requests(connection)
            return
        connection.closing = True
        self._watch_unsent(connection)

    def _report(self, telling: Telling, ended: Ended) -> None:
        if self._on_truth is not None:
            self._on_truth(told_truth(telling, self.simulation.dialect.name, ended, monotonic_ns()))

    def _watch_unsent(self, connection: Connection) -> None:
        """Wait until the kernel takes more, or close what is done with."""
        if connection not in self._connections:
            return
        blocked = bool(connection.unsent)
        if connection.closing and not blocked:
            self._drop(connection)
        elif blocked != connection.blocked:
            connection.blocked = blocked
            self._waiter.watch_writing(connection.sock, connection, on=blocked)

    def _drop(self, connection: Connection) -> None:
        """Close a connection; an answer that is being told there ends."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._waiter.forget(connection.sock)
        connection.sock.close()
        if connection.telling is not None:
            self._finish(connection.telling, "client closed", monotonic_ns())

    def shut(self) -> None:
        """Close everything; answers that are being told end here."""
        self._pacer.settle()
        for telling in list(self._tellings.values()):
            telling.over = True
            self._report(telling, "stopped")
        for connection in self._connections:
            connection.sock.close()
        for sock in (self._listener, self._waker, self._wake):
            sock.close()
        self._waiter.close()
