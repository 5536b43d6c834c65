"""The order of work around deadlines: send what is due, prepare the next writes in between."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from time import monotonic_ns

from twospeed.simulator.telling import Telling

PREPARE_NS = 50_000
"""Enough to prepare one write."""
DENSE_NS = 40_000
TOGETHER_NS = 100_000
"""How long the first of several writes that are due within DENSE_NS waits for the others. Sent one
by one they take longer than that: each would wake a reader who has just fallen asleep."""
LONGEST_FIRE_NS = 5_000_000
"""After so much of it, sockets are looked at, however much is due."""
LONGEST_UNPREPARED_NS = 20_000_000


class Pacer:
    """Answers with a write to come.

    Args:
        step_s: shortest time between two writes of one answer.
        send: hands a pending write over.
        follow: prepares what comes after it.
        now_ns: the clock.
    """

    def __init__(
        self,
        step_s: float,
        *,
        send: Callable[[Telling], None],
        follow: Callable[[Telling], None],
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        self._send = send
        self._follow = follow
        self._now_ns = now_ns
        # Half a step: an answer that has waited so long for its next write to be prepared is
        # served before the deadlines of others, or it would miss its own.
        self._overdue_ns = min(round(1e9 * step_s / 2), LONGEST_UNPREPARED_NS)
        self._heap: list[tuple[int, int, Telling]] = []
        self._sent: deque[Telling] = deque()
        """Their write has gone out and the next one is not prepared."""
        self._number = 0

    def add(self, at_ns: int, telling: Telling) -> None:
        """Take up a write that is prepared."""
        self._number += 1
        heapq.heappush(self._heap, (at_ns, self._number, telling))

    def deadline_ns(self) -> int | None:
        """When to act next; writes that are due at nearly one moment go together."""
        heap, now_ns = self._heap, self._now_ns()
        if self._sent and (not heap or heap[0][0] - now_ns >= PREPARE_NS):
            return now_ns
        if not heap:
            return None
        # The two entries below the first of a heap being near is enough to know three of them.
        soon_ns = heap[0][0] + DENSE_NS
        dense = len(heap) > 2 and heap[1][0] < soon_ns and heap[2][0] < soon_ns
        return heap[0][0] + (TOGETHER_NS if dense else 0)

    def fire(self) -> None:
        """Send every write that is due, and use the time between to prepare the next ones.

        Nothing is prepared while a deadline is so near that it would be missed (of many streams in
        step, each would push the ones after it back), unless some answer has waited too long.
        """
        heap, sent = self._heap, self._sent
        now_ns = self._now_ns()
        stop_ns = now_ns + LONGEST_FIRE_NS
        while now_ns < stop_ns:
            left_ns = heap[0][0] - now_ns if heap else PREPARE_NS
            overdue = bool(sent) and now_ns - sent[0].actual_ns > self._overdue_ns
            if left_ns <= 0 and not overdue:
                telling = heapq.heappop(heap)[2]
                if not telling.over:
                    sent.append(telling)
                    telling.actual_ns = self._now_ns()
                    self._send(telling)
            elif sent and (overdue or left_ns >= PREPARE_NS):
                self._follow_one()
            else:
                return  # nothing to do before the next deadline
            now_ns = self._now_ns()

    def settle(self) -> None:
        """See to every write that has gone out, whatever the time."""
        while self._sent:
            self._follow_one()

    def _follow_one(self) -> None:
        telling = self._sent.popleft()
        if not telling.over:
            self._follow(telling)
