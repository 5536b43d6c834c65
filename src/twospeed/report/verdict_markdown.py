"""A comparison for a forum, an issue or the summary of a build."""

from __future__ import annotations

from collections.abc import Iterator

from twospeed.fits.paired import PHASES
from twospeed.report import verdict_words as words
from twospeed.report.numbers import percent, tokens
from twospeed.report.plain import plain_markdown as safe
from twospeed.report.verdict import ArmPart, Verdict


def render_verdict_markdown(verdict: Verdict) -> str:
    """The comparison as Markdown, ending with a newline."""
    return "\n\n".join(_blocks(verdict)) + "\n"


def _blocks(verdict: Verdict) -> Iterator[str]:
    yield f"**{safe(verdict.verdict, longest=500)}**"
    rows = ["| second against first | verdict | ratio of seconds | pairs |", "|---|---|---|---|"]
    for phase in PHASES:
        part = getattr(verdict.phases, phase)
        ratio = words.ratio_range(part)
        rows.append(f"| {words.THING[phase]} | {part.verdict} | {ratio} | {part.pairs} |")
    yield "\n".join(rows)
    notes = list(_notes(verdict))
    if notes:
        yield "\n".join(f"- {safe(note, longest=400)}" for note in notes)
    yield "\n".join(_arms(verdict))


def _notes(verdict: Verdict) -> Iterator[str]:
    if verdict.prediction is not None:
        yield from words.prediction_lines(verdict.prediction)
    for length in verdict.lengths:
        line = words.length_line(length, verdict.phases, verdict.measured_prompt_tokens)
        if line is not None:
            yield line
    for phase in PHASES:
        text = words.detectable(getattr(verdict.phases, phase))
        if text:
            yield f"{words.THING[phase]}: {text}"
    need = words.need_line(verdict)
    if need is not None:
        yield need
    yield from verdict.conditions.warnings


def _arms(verdict: Verdict) -> Iterator[str]:
    work, load = verdict.workload, verdict.conditions.host_load
    yield "<details><summary>Details</summary>"
    yield ""
    yield f"- first: {_arm(verdict.arms[0])}"
    yield f"- second: {_arm(verdict.arms[1])}"
    for one in verdict.changes:
        yield f"- {safe(one.what)}: {safe(one.first or '?')} → {safe(one.second or '?')}"
    yield f"- request: {tokens(work.prompt_tokens)} tokens in, {tokens(work.output_tokens)} out"
    if load is not None:
        yield f"- other programs used {percent(load)} of the processors"
    made = f"{safe(verdict.made_at)} · twospeed {safe(verdict.twospeed_version)}"
    yield f"- {verdict.method}, {verdict.clock or 'no'} clock · {made}"
    yield ""
    yield "</details>"


def _arm(arm: ArmPart) -> str:
    source = arm.source
    parts = (arm.name, source.runtime, source.runtime_version, source.model)
    return " · ".join(safe(part) for part in parts if part)
