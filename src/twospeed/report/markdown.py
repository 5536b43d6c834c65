"""The report for a forum post or an issue: the verdict, one short table, details folded away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twospeed.cures.cure import Cure
from twospeed.findings.budget import WAIT_PARTS, Verdict
from twospeed.findings.finding import Evidence
from twospeed.report import words
from twospeed.report.document import Report
from twospeed.report.numbers import (
    UNKNOWN,
    goal,
    percent,
    rate,
    rate_with_unit,
    seconds,
    seconds_range,
    tokens,
)
from twospeed.report.plain import plain_markdown as safe
from twospeed.report.what_if_text import elsewhere_lines, shape_cells, table_head, table_row

SHORTEST_S = 0.001
MOST_GAPS = 20
"""Shorter parts of a request are not worth a word."""


def render_markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown, ending with a newline."""
    blocks = [
        f"**{safe(report.verdict, longest=400)}**",
        *_warnings(report),
        _gauges(report),
        _request(report),
        *_findings(report),
        *_cures(report),
        *_wont_help(report),
        *_what_if(report),
        *_elsewhere(report),
        _details(report),
        _footer(report),
    ]
    return "\n\n".join(blocks) + "\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _warnings(report: Report) -> Iterator[str]:
    conditions = report.conditions
    said = "; ".join(safe(warning).rstrip(".") for warning in conditions.warnings)
    if not conditions.trusted:
        yield f"> **{words.UNTRUSTED}** {said or words.BUSY}."
    elif said:
        yield f"> Note: {said}."


def _gauges(report: Report) -> str:
    wait, stream, limits = report.wait, report.stream, report.limits
    prefill = words.machine_word(limits.prefill_of_limit_frac, limits.prefill_normal)
    decode = words.machine_word(limits.decode_of_limit_frac, limits.decode_normal)
    return _table(
        ("", "measured", "goal", "", "for this machine"),
        (
            (
                "the wait",
                seconds(wait.seconds),
                f"{goal(wait.goal_s)} s",
                _judged(wait.verdict, near=wait.near_goal),
                prefill,
            ),
            (
                "the stream",
                rate_with_unit(stream.tps, beside=stream.goal_tps),
                f"{goal(stream.goal_tps)} tok/s",
                _judged(stream.verdict, near=stream.near_goal),
                decode,
            ),
        ),
    )


def _judged(verdict: Verdict, *, near: bool) -> str:
    word = words.verdict_word(verdict)
    return word + words.NEAR_GOAL if near else word


def _request(report: Report) -> str:
    work, budget, balance = report.workload, report.time_budget, report.balance
    parts = [
        f"{words.PART_TEXT[part]} {seconds(amount)}"
        for part in (*WAIT_PARTS, "answer_s")
        if abs(amount := getattr(budget, part) or 0.0) >= SHORTEST_S
    ]
    said = (
        f"One request of {tokens(work.prompt_tokens)} tokens in and "
        f"{tokens(work.output_tokens)} out ({words.WORKLOAD_TEXT[work.origin]}): "
        f"{words.total_text(budget)}"
    )
    if parts:
        said += f" = {' + '.join(parts)}"
    if balance.prefill_frac is not None:
        said += (
            f". Prefill {percent(balance.prefill_frac)}, decode {percent(balance.decode_frac)}; "
            f"equal at {rate(balance.equal_prompt_per_output_token)} tokens in per token out"
        )
    return f"{said}."


def _findings(report: Report) -> Iterator[str]:
    if report.findings:
        lines = ["**Why**"]
        for finding in report.findings:
            costs = f", {seconds(finding.costs_s)}" if finding.costs_s is not None else ""
            text = words.CAUSE_TEXT[finding.cause]
            lines.append(f"- `{finding.cause}` ({finding.certainty}{costs}): {text}")
        yield "\n".join(lines)


def _cures(report: Report) -> Iterator[str]:
    if report.cures:
        rows = [
            (
                cure.cure,
                f"{seconds(cure.saves_s.likely)} ({seconds_range(cure.saves_s)})",
                "; ".join([*map(safe, cure.how), *_held(report, cure)]),
            )
            for cure in report.cures
        ]
        yield _table(("what would help", "saves", "how"), rows)


def _held(report: Report, cure: Cure) -> list[str]:
    return [words.held_here(one) for one in report.track_record if one.cure == cure.cure]


def _wont_help(report: Report) -> Iterator[str]:
    if report.wont_help:
        rows = [
            (wont.cure, seconds(max(wont.saves_s.likely, 0.0)), safe(wont.why))
            for wont in report.wont_help
        ]
        yield _table(("what would not", "saves", "why"), rows)


def _what_if(report: Report) -> Iterator[str]:
    if report.what_if:
        yield _table(
            table_head(), ([safe(cell) for cell in table_row(row)] for row in report.what_if)
        )


def _elsewhere(report: Report) -> Iterator[str]:
    if report.elsewhere is not None:
        yield "\n".join(f"- {said}" for said in elsewhere_lines(report.elsewhere))
        head = ("tokens in", "out", "here", "there", "faster")
        yield _table(head, (shape_cells(shape) for shape in report.elsewhere.shapes))


def _details(report: Report) -> str:
    lines = ["<details><summary>Details</summary>", ""]
    lines += [*_prefill_lines(report), *_decode_lines(report)]
    cache = report.prompt_cache
    known = f" ({cache.how_known})" if cache.how_known else ""
    lines.append(f"- prompt reuse: {cache.reused}{known}")
    for finding in report.findings:
        lines += [f"- {finding.cause}: {_evidence(fact)}" for fact in finding.evidence]
    gaps = report.unknown[:MOST_GAPS]
    lines += [f"- not seen: {safe(gap.what)}; needs {safe(gap.needs)}" for gap in gaps]
    if len(report.unknown) > MOST_GAPS:
        lines.append(f"- not seen: {len(report.unknown) - MOST_GAPS} more, see --json")
    facts = [f"{name} {safe(str(fact))}" for name, fact in report.facts.items() if fact is not None]
    if facts:
        lines.append(f"- the runtime says: {', '.join(facts)}")
    return "\n".join([*lines, "", "</details>"])


def _prefill_lines(report: Report) -> Iterator[str]:
    part = report.prefill
    if part.tps is not None:
        yield (
            f"- prefill {rate(part.tps)} tok/s ({rate(part.tps_low)} to {rate(part.tps_high)}, "
            f"{part.origin})"
        )
    if part.points:
        seen = ", ".join(f"{tokens(p.prompt_tokens)} tok {seconds(p.s)}" for p in part.points[:8])
        yield f"- prefill seen: {seen}"


def _decode_lines(report: Report) -> Iterator[str]:
    part = report.decode
    if part.tps is not None:
        yield (
            f"- decode {rate(part.tps)} tok/s ({rate(part.tps_low)} to {rate(part.tps_high)}, "
            f"{part.origin})"
        )
    if part.points:
        seen = ", ".join(
            f"depth {tokens(p.depth_tokens)} {rate(1.0 / p.per_token_s)} tok/s"
            for p in part.points[:8]
            if p.per_token_s > 0
        )
        yield f"- decode seen: {seen}"


def _evidence(fact: Evidence) -> str:
    value = fact.value
    if value is None:
        said = UNKNOWN
    elif isinstance(value, bool):
        said = "yes" if value else "no"
    elif isinstance(value, str):
        said = safe(value)
    elif fact.unit == "s":
        return f"{safe(fact.what)} {seconds(value)} ({fact.origin})"
    else:
        said = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    unit = f" {safe(fact.unit)}" if fact.unit else ""
    return f"{safe(fact.what)} {said}{unit} ({fact.origin})"


def _footer(report: Report) -> str:
    source = report.source
    named = [source.model, source.runtime, source.runtime_version, source.where]
    said = " · ".join(safe(part) for part in named if part)
    made = safe(report.made_at)
    return f"<sub>{said} · {made} · twospeed {safe(report.twospeed_version)}</sub>"
