"""Who may run: the queue before the slots, and the loading of the model. Pure; times are given."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from twospeed.simulator.cache import PromptCache
from twospeed.simulator.job import Job
from twospeed.simulator.machine import Machine
from twospeed.simulator.tokens import ids_of


@dataclass(slots=True)
class Totals:
    """What a server counts since its start."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefill_ns: int = 0
    decode_ns: int = 0
    queue_ns: int = 0
    longest_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0


class Bench:
    """One model on one machine.

    Args:
        machine: its speeds.
        cache: its slots.
        load_s: seconds to load the model, paid by the first request.
        unload_after_s: seconds without a request after which it is unloaded; None for never.
    """

    def __init__(
        self,
        machine: Machine,
        cache: PromptCache,
        *,
        load_s: float = 0.0,
        unload_after_s: float | None = None,
    ) -> None:
        self.machine = machine
        self.cache = cache
        self.totals = Totals()
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self._load_ns = round(load_s * 1e9)
        self._unload_after_ns = None if unload_after_s is None else round(unload_after_s * 1e9)
        self._loaded_ns: int | None = None
        self._config = ""
        self._idle_since_ns = 0

    def is_loaded(self, at_ns: int) -> bool:
        """Whether the model is in memory."""
        if self._loaded_ns is None or at_ns < self._loaded_ns:
            return False
        return bool(self.running) or not self._was_unloaded(at_ns)

    def decoding(self, at_ns: int) -> int:
        """Streams that are past their prefill at a moment."""
        return sum(
            job.prefill_end_ns is not None and job.prefill_end_ns <= at_ns for job in self.running
        )

    def arrive(self, job: Job) -> None:
        """Let a request join the queue."""
        self.waiting.append(job)

    def start_next(self) -> Job | None:
        """The next request that gets a slot, with the plan of its prefill; None while none does.

        Its stamps are those of the plan, not of this call: a slot that became free a moment ago
        is taken from that moment on.
        """
        if not self.waiting or len(self.running) >= len(self.cache.slots):
            return None
        job = self.waiting.popleft()
        asked = job.asked
        job.slot, cached = self.cache.take(asked.prompt, asked.salt, reuse=asked.reuse)
        job.queue_end_ns = max(job.arrival_ns, job.slot.free_ns)
        job.prefill_start_ns = self._loaded_by(job.queue_end_ns, asked.config)
        job.cached_tokens = cached if self._loaded_ns != job.prefill_start_ns else 0
        prefill_s = self.machine.prefill_s(job.fresh_tokens, job.cached_tokens)
        job.prefill_end_ns = job.prefill_start_ns + round(prefill_s * 1e9)
        self.running.append(job)
        return job

    def leave(self, job: Job, at_ns: int) -> None:
        """End a request, complete or not, and free its slot.

        Args:
            job: the request.
            at_ns: end of its work.
        """
        if job.slot is None:
            self.waiting.remove(job)
            return
        self.running.remove(job)
        # The last token was never evaluated, so its state is not in the cache.
        said = (job.reasoning + job.answer)[: max(job.done_tokens - 1, 0)]
        self.cache.give_back(job.slot, job.asked.prompt + ids_of(said), at_ns)
        self._idle_since_ns = max(self._idle_since_ns, at_ns)
        self._count(job)

    def _loaded_by(self, at_ns: int, config: str) -> int:
        """When the model is ready for a request that has its slot; starts to load it if needed."""
        idle = not self.running and self._was_unloaded(at_ns)
        if self._loaded_ns is None or idle or config != self._config:
            if self._loaded_ns is not None:
                self.cache.clear()
            self._loaded_ns = at_ns + self._load_ns
            self._config = config
        return max(at_ns, self._loaded_ns)

    def _was_unloaded(self, at_ns: int) -> bool:
        after = self._unload_after_ns
        return after is not None and at_ns - self._idle_since_ns > after

    def _count(self, job: Job) -> None:
        totals = self.totals
        totals.requests += 1
        totals.prompt_tokens += job.prompt_tokens
        totals.cached_tokens += job.cached_tokens
        totals.output_tokens += job.done_tokens
        totals.prefill_ns += job.prefill_ns
        totals.decode_ns += job.decode_ns
        totals.queue_ns += job.queue_ns
        totals.longest_tokens = max(totals.longest_tokens, job.prompt_tokens + job.done_tokens)
        totals.drafted_tokens += job.drafted_tokens
        totals.accepted_tokens += job.accepted_tokens
