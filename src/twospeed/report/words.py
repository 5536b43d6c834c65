"""All wording: causes, cures, verdicts, warnings. The rest of the room only places it."""

from __future__ import annotations

from collections.abc import Sequence

from twospeed.cures.cure import WhyNot
from twospeed.findings.budget import Stream, TimeBudget, Verdict, Wait, largest_wait_part
from twospeed.findings.finding import Cause, Finding, SlowPhase
from twospeed.findings.observed import Observed
from twospeed.findings.registry import disproves
from twospeed.findings.table import models_of, told_model
from twospeed.fits.interval import Interval
from twospeed.limits.normal import NormalRange
from twospeed.records.ledger import TrackRecord
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Quantity, Run, WorkloadFrom
from twospeed.report.numbers import goal, rate_with_unit, seconds, tokens

CAUSE_TEXT: dict[Cause, str] = {
    "prompt_cache.prefix_changed": "early prompt text changes, no reuse is possible",
    "prompt_cache.evicted": "another request replaced the processed prompt",
    "prompt_cache.disabled": "a known prompt is processed again",
    "prompt_cache.cannot_rewind": "the model's state cannot be cut back",
    "prompt_cache.context_overflow": "the full context was cut, the shared part lost",
    "prompt.large": "the prompt is big; no sign of slow reading",
    "prefill.batch_too_small": "the prompt is read in batches that are small",
    "prefill.compute_low": "reading is slower than is usual here",
    "decode.bandwidth_bound": "each token reads all weights: size is the cost",
    "decode.depth": "the long context slows every token",
    "decode.output_long": "the output is long; its speed is fine",
    "decode.sampling": "choosing a token takes longer than computing it",
    "decode.draft_rejected": "most drafted tokens are thrown away",
    "decode.below_limit": "tokens come slower than is usual here",
    "placement.partial_offload": "part of the model lies in system memory",
    "placement.cpu_fallback": "the processor does the graphics card's work",
    "placement.kv_cache_off_gpu": "the context lies in system memory",
    "placement.memory_spill": "graphics memory overflows into slower memory",
    "placement.multi_device": "the cards wait for each other",
    "host.contention": "other programs use the processors",
    "host.threads": "too many threads for this processor",
    "host.throttled": "the hardware runs at reduced clocks",
    "server.queue": "the request waits for a busy slot",
    "server.shared_batch": "other requests share the same batch",
    "model.load": "the model is loaded before the prompt is read",
    "network.latency": "the connection itself is slow",
    "network.buffered_stream": "something on the way holds tokens back",
    "measurement.artifact": "the printed number cannot be what it says",
}

PART_TEXT: dict[str, str] = {
    "load_s": "loading",
    "queue_s": "queue",
    "network_s": "network",
    "prefill_s": "prefill",
    "reasoning_s": "reasoning",
    "unexplained_s": "unexplained",
    "answer_s": "answer",
}

WORKLOAD_TEXT: dict[WorkloadFrom, str] = {
    "default": "the default chat turn",
    "flag": "as you asked",
    "recording": "median of the recording",
    "log": "median of the log",
}

SLOW_THING: dict[SlowPhase, str] = {
    "prefill": "prefill",
    "decode": "decode",
    "both": "both phases",
    "queue": "queueing",
    "load": "loading",
    "network": "the network",
    "none": "nothing",
    "unknown": "an unseen part",
}

UNTRUSTED = "Do not rely on these numbers yet:"
BUSY = "the machine was busy with other work"
NEAR_GOAL = ", near the goal"
CLOCKS_DISAGREE = "the server's clock and ours disagree by more than 10 %"
SEVERAL_MODELS = "rows of {count} models: what is told is of the slowest, {model}"
FAILED = "{failed} of {sent} requests failed, the first one so: {message}"
NO_SPEEDS = "next to nothing was read and written: a speed from it means nothing"
NOISY = "rows of the table scatter by 20 % and more; measure again in peace"
UNSTEADY = "repeats of the same request differed by more than 1.6 times; measure again in peace"
NOTICED_S = 0.05
"""Smaller losses are not worth a word."""
MORE = "more: {command}"
INTERRUPTED = "stopped early: only what was measured until then"


def verdict(observed: Observed) -> str:
    """One sentence: which phase is slow, by how much, and how the other one does."""
    wait, stream, budget = observed.wait, observed.stream, observed.budget
    phase = observed.slow_phase
    prompt = observed.run.workload.prompt_tokens
    if phase == "none":
        return f"Nothing is slow here: {_wait_clause(wait)}, and {_stream_clause(stream)}."
    if phase == "unknown":
        return _unknown_verdict(wait, stream, budget)
    if "slow" not in (wait.verdict, stream.verdict):
        return f"{_LOSES_TIME[phase]} here: {_wait_clause(wait)}, and {_stream_clause(stream)}."
    if phase == "both":
        return (
            f"Both phases are slow: {_blame(wait, budget, prompt)}, and {_stream_clause(stream)}."
        )
    thinks = largest_wait_part(budget) == "reasoning_s"
    if phase == "decode" and not (wait.verdict == "slow" and thinks):
        return f"Decode is what makes this slow: {_stream_clause(stream)}; {_wait_clause(wait)}."
    blame = f"{_blame(wait, budget, prompt)}; {_stream_clause(stream)}"
    return f"{_THING_BLAMED[phase]} is what makes this slow: {blame}."


_THING_BLAMED: dict[SlowPhase, str] = {
    "prefill": "Prefill",
    "decode": "Decode",
    "queue": "Queueing",
    "load": "Loading the model",
    "network": "The connection",
}
_LOSES_TIME: dict[SlowPhase, str] = {
    "prefill": "Prefill loses time",
    "decode": "Decode loses time",
    "both": "Both phases lose time",
    "queue": "Requests wait in line",
    "load": "Loading the model takes time",
    "network": "The connection loses time",
}
"""Where no goal is missed, or none could be judged."""


def _blame(wait: Wait, budget: TimeBudget, prompt_tokens: int) -> str:
    part = largest_wait_part(budget)
    doing = {
        "prefill_s": f"reading {tokens(prompt_tokens)} prompt tokens takes",
        "reasoning_s": "hidden reasoning takes",
        "queue_s": "the request waits for a slot for",
        "load_s": "loading takes",
        "network_s": "one round trip takes",
    }.get(part, "something unseen takes")
    of = f"{seconds(getattr(budget, part))} of the {seconds(wait.seconds)} wait"
    return f"{doing} {of}{_near(wait.near_goal, f'{goal(wait.goal_s)} s')}"


def _wait_clause(wait: Wait) -> str:
    if wait.seconds is None:
        return "the wait was not measured"
    limit = f"{goal(wait.goal_s)} s"
    if wait.near_goal:
        return f"the wait is {seconds(wait.seconds)}, near your {limit}"
    side = "within" if wait.verdict == "fine" else "above"
    return f"the wait is {seconds(wait.seconds)}, {side} your {limit}"


def _stream_clause(stream: Stream) -> str:
    if stream.tps is None:
        return "the stream was not measured"
    limit = goal(stream.goal_tps)
    runs = f"the stream runs at {rate_with_unit(stream.tps, beside=stream.goal_tps)}"
    if stream.near_goal:
        return f"{runs}, near your {limit}"
    side = "below" if stream.verdict == "slow" else "above"
    return f"{runs}, {side} your {limit}"


def _near(near: bool, limit: str) -> str:
    return f", near your {limit}" if near else ""


def _unknown_verdict(wait: Wait, stream: Stream, budget: TimeBudget) -> str:
    if wait.verdict == "slow":
        hidden = seconds(getattr(budget, largest_wait_part(budget)))
        return (
            f"The slow phase is not known: {hidden} of the {seconds(wait.seconds)} wait could not "
            f"be seen; {_stream_clause(stream)}."
        )
    if wait.seconds is None and stream.tps is None:
        return "The slow phase is not known: neither the wait nor the stream was measured."
    return f"The slow phase is not known: {_wait_clause(wait)}, and {_stream_clause(stream)}."


def total_text(budget: TimeBudget) -> str:
    """How long the whole request takes; without one of its phases that is only a lower bound."""
    missing = [budget.prefill_s, budget.answer_s].count(None)
    if missing == 2:
        return "time not known"
    total = seconds(budget.total_s)
    return f"more than {total}" if missing else f"{total} in all"


def why_not(why: WhyNot, phase: SlowPhase, total_s: float | None) -> str:
    """Why a change would not pay, in one clause."""
    if why == "after_the_wait":
        return "the slow part comes before the answer"
    if why == "wrong_place":
        if phase == "both":
            return "both phases are slow; this touches neither"
        return f"{SLOW_THING[phase]} is slow; this hardly touches it"
    if why == "too_little":
        return f"too little to notice in {seconds(total_s)}"
    if why == "may_slow_down":
        return "it can also get slower here"
    return "reuse is off: nothing is kept to match"


def slower_phase(wait: Interval, answer: Interval) -> str | None:
    """What a change makes slower while it saves on the whole; None where nothing is."""
    for thing, saved in (("wait", wait), ("stream", answer)):
        if saved.likely < -NOTICED_S:
            return f"slows the {thing} by {seconds(-saved.likely)}"
    return None


def verdict_word(verdict: Verdict) -> str:
    """How a gauge stands against its goal."""
    return "not measured" if verdict == "unknown" else verdict


def machine_word(share: Quantity | None, normal: NormalRange | None) -> str:
    """How a speed stands for this machine: normal, low, high, or not known."""
    if share is None or normal is None:
        return "not known"
    if share.value < normal.low:
        return "low"
    return "normal" if share.value <= normal.high else "unusually high"


def held_here(record: TrackRecord) -> str:
    """How often predictions of a change held on this machine."""
    return f"held {record.held} of {record.checked} times here"


def warnings(observed: Observed, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Ours and the source's, the short ones first: a screen has room for a few lines."""
    ours = [] if observed.run.complete else [INTERRUPTED]
    if disproves(findings):
        ours.append(CLOCKS_DISAGREE if observed.clocks is not None else NO_SPEEDS)
    if observed.unsteady:
        ours.append(UNSTEADY if observed.run.records else NOISY)
    ours += _several_models(observed.run)
    return (*ours, *observed.run.conditions.warnings, *_failures(observed.run.records))


def _several_models(run: Run) -> list[str]:
    """Of a table with several models one is told: say which."""
    models, told = models_of(run.points), told_model(run)
    if told is None or len(models) < 2:
        return []
    return [SEVERAL_MODELS.format(count=len(models), model=told)]


def _failures(records: Sequence[RequestRecord]) -> list[str]:
    failures = [record.error for record in records if record.error is not None]
    if not failures:
        return []
    first = failures[0].message.rstrip(".")
    return [FAILED.format(failed=len(failures), sent=len(records), message=first)]
