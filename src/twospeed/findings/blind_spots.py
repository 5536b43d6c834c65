"""What could not be seen, and what would show it."""

from __future__ import annotations

from collections.abc import Iterator

from twospeed.findings.observed import Observed
from twospeed.records.run import Blind

NOTABLE_SHARE = 0.1
"""Share of the wait from which time that nothing explains is worth a question."""


def blind_spots(observed: Observed) -> tuple[Blind, ...]:
    """The gaps that the source named, then those of the analysis; each subject once."""
    seen: dict[str, Blind] = {}
    for blind in (*observed.run.unknown, *_gaps(observed)):
        seen.setdefault(blind.what, blind)
    return tuple(seen.values())


def _gaps(observed: Observed) -> Iterator[Blind]:
    run = observed.run
    if observed.prefill_s is None:
        yield Blind(
            what="prefill time of this workload",
            needs="two prompts of different length with token counts",
        )
    if observed.decode_tps is None:
        yield Blind(
            what="decode speed",
            needs="answers of 8 tokens or more with token counts",
        )
    if not observed.reasoning.answer_seen:
        yield Blind(
            what="how long hidden reasoning lasts",
            needs="a longer output: no answer token arrived within the limit",
        )
    if observed.queue.seconds is None:
        yield Blind(what="time in the server's queue", needs="a runtime that reports it")
    if observed.reuse.reused == "unknown":
        yield Blind(what="whether a processed prompt is reused", needs="the same prompt sent twice")
    unexplained_s, wait_s = observed.budget.unexplained_s, observed.wait.seconds
    if unexplained_s and wait_s and unexplained_s > NOTABLE_SHARE * wait_s:
        yield Blind(
            what="what holds the first token back after prefill",
            needs="the same request sent to the server directly, past any proxy",
        )
    yield from _unknown_normal(observed)
    if not run.complete:
        yield Blind(what="the rest of this run", needs="a run that is not interrupted")


def _unknown_normal(observed: Observed) -> Iterator[Blind]:
    limits = observed.limits
    names = [
        name
        for name, normal, share in (
            ("prefill", limits.prefill_normal, limits.prefill_of_limit_frac),
            ("decode", limits.decode_normal, limits.decode_of_limit_frac),
        )
        if normal is None or share is None
    ]
    if names:
        yield Blind(
            what=f"what {' and '.join(names)} normally reach on this machine",
            needs="the model file and a probe on the server's machine",
        )
