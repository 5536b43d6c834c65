"""The plan of one answer: which bytes are due when. Pure; nothing here waits or writes.

The plan is made one write at a time, each when the one before has gone out, because what other
streams do meanwhile may slow a shared batch down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from twospeed.simulator.dialect import BATCH_TOKENS, HeadAt, Piece, Voice
from twospeed.simulator.exchange import Write
from twospeed.simulator.job import Job
from twospeed.simulator.machine import Machine

LEAD_NS = 300_000
"""The last progress of a prompt comes so long before the first token, as seen of llama-server."""

Decoding = Callable[[int], int]
"""Streams that decode at a moment, the asking one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What holds for every answer of a server."""

    machine: Machine
    tokens_per_chunk: int = 1
    seed: int = 0
    """Of the jitter."""
    head_at: HeadAt = "arrival"
    decoding: Decoding = lambda _at_ns: 1


def greeting(job: Job, voice: Voice, now_ns: int) -> Write:
    """What is sent as soon as a request has come, where the head does not wait."""
    early = "early-role" in job.faults
    return Write(now_ns, "head", voice.role() if early else voice.greeting())


def greets_at_once(job: Job, head_at: HeadAt) -> bool:
    """Whether something is sent before there is a slot."""
    early = head_at == "arrival" or "early-role" in job.faults
    return early and job.asked.stream and "buffered" not in job.faults


def answer(job: Job, voice: Voice, how: Conduct) -> Iterator[Write]:
    """Every write of an answer whose prefill is planned, in order of time.

    Args:
        job: has its slot and the stamps of its prefill.
        voice: how it is told.
        how: what holds for every answer of the server.
    """
    pieces = _pieces(job, how)
    if not job.asked.stream:
        for piece in pieces:
            _said(job, piece)
        yield Write(
            job.latest_token_ns, "whole", [voice.whole()], tokens=job.output_tokens, end=True
        )
        return
    if "buffered" in job.faults or how.head_at == "slot":
        held = voice.greeting() if "buffered" in job.faults else []
        yield Write(job.slot_ns, "head", held)
    yield from _opening(job, voice, how.machine)
    for piece in pieces:
        kind = "reasoning" if piece.reasoning else "text"
        yield Write(piece.at_ns, kind, voice.text(piece), tokens=len(piece.tokens))
        _said(job, piece)
    yield Write(job.latest_token_ns, "finish", voice.finish(), end=True)


def _opening(job: Job, voice: Voice, machine: Machine) -> Iterator[Write]:
    """What is told before the first token."""
    start_ns = job.started_ns
    if job.load_ns:
        yield from _told(job.slot_ns, "progress", voice.load_started())
        yield from _told(start_ns, "progress", voice.load_ended())
    yield from _told(start_ns, "progress", voice.prefill_started())
    if "role-only-first" in job.faults:
        yield Write(start_ns, "role", voice.role())
    shown = "progress" in job.faults
    step = max(job.fresh_tokens // 10, 1) if shown else BATCH_TOKENS
    for fresh in [*range(step, job.fresh_tokens, step), job.fresh_tokens]:
        at_ns = start_ns + round(1e9 * machine.prefill_s(fresh, job.cached_tokens))
        done = job.cached_tokens + fresh
        told = voice.empty(done, at_ns) if shown else voice.progress(done, at_ns)
        ahead_ns = LEAD_NS if fresh == job.fresh_tokens and at_ns - start_ns > 2 * LEAD_NS else 0
        yield from _told(at_ns - ahead_ns, "progress", told)


def _told(at_ns: int, kind: str, chunks: list[bytes]) -> Iterator[Write]:
    if chunks:
        yield Write(at_ns, kind, chunks)


def _said(job: Job, piece: Piece) -> None:
    """Note that a piece has gone out."""
    job.done_tokens = piece.done_tokens
    job.last_token_ns = piece.at_ns


def _pieces(job: Job, how: Conduct) -> Iterator[Piece]:
    """The text in events: the first token alone and at once, then as the pace has it."""
    said = job.reasoning + job.answer
    told = 0
    for made, at_ns in _steps(job, how):
        if told and made - told < how.tokens_per_chunk and made < len(said):
            continue
        for start, end in _around(told, made, len(job.reasoning)):
            yield Piece(
                text="".join(said[start:end]),
                tokens=tuple(said[start:end]),
                reasoning=end <= len(job.reasoning),
                at_ns=at_ns,
                done_tokens=end,
                first=start == 0,
                last=end == len(said),
            )
        told = made


def _around(start: int, end: int, border: int) -> list[tuple[int, int]]:
    """The range, cut where reasoning ends and the answer begins."""
    return [(start, border), (border, end)] if start < border < end else [(start, end)]


def _steps(job: Job, how: Conduct) -> Iterator[tuple[int, int]]:
    """Tokens made so far and the moment, after prefill and after each decode step."""
    machine, first_ns = how.machine, job.first_token_ns
    made, spent_s, at_ns = 1, 0.0, first_ns
    draws = Random(f"{how.seed}/{job.number}") if machine.jitter_frac else None  # noqa: S311
    bursts = machine.bursts()
    yield made, at_ns
    while made < job.output_tokens:
        step_s = machine.token_s(job.prompt_tokens + made - 1, max(how.decoding(at_ns), 1))
        step_s *= machine.tokens_per_step
        if draws is not None:
            step_s *= 1 + machine.jitter_frac * draws.uniform(-1, 1)
        burst = min(next(bursts), job.output_tokens - made)
        job.drafted_tokens += machine.draft_tokens
        job.accepted_tokens += burst - 1
        made += burst
        spent_s += step_s
        at_ns = first_ns + round(1e9 * spent_s)
        yield made, at_ns
