"""A comparison for a terminal: the answer first, none of its lines longer than 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import exp, log
from textwrap import wrap

from twospeed.fits.paired import PHASES, Phase
from twospeed.report import verdict_words as words
from twospeed.report.bars import GOAL_MARK, REST, in_ascii
from twospeed.report.numbers import percent, tokens
from twospeed.report.plain import plain
from twospeed.report.verdict import ArmPart, Verdict

WIDTH = 80
CELLS = 49
LABEL = 12
MOST_CHANGES = 6
LEAST_SPAN = log(1.05)
MOST_SPAN = log(8.0)
DOT = "•"
_BOLD, _YELLOW = "1", "33"
_COLOUR = {"faster": "1;32", "slower": "1;31", "no difference shown": "1", "cannot tell": "1;33"}
_TITLE: dict[Phase, str] = {"prefill": "THE WAIT", "decode": "THE STREAM", "workload": "REQUEST"}


def render_verdict(verdict: Verdict, *, colour: bool = False, ascii_only: bool = False) -> str:
    """The comparison as terminal text, ending with a newline.

    Args:
        verdict: the document.
        colour: with ANSI colours.
        ascii_only: for output encodings other than UTF-8.
    """
    blocks = [
        [_styled(line, _BOLD, colour=colour) for line in _wrapped(verdict.verdict)],
        list(_phases(verdict, colour=colour)),
        list(_notes(verdict)),
        [_styled(line, _YELLOW, colour=colour) for line in _warnings(verdict)],
        list(_arms(verdict)),
    ]
    text = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return in_ascii(text.replace(words.TIMES, "x").replace(DOT, "o")) if ascii_only else text


def _phases(verdict: Verdict, *, colour: bool) -> Iterator[str]:
    span = _span(verdict)
    for phase in PHASES:
        part = getattr(verdict.phases, phase)
        shown = _styled(f"{part.verdict:<20}", _COLOUR[part.verdict], colour=colour)
        counted = f"{part.pairs} pairs" if verdict.method == "pairs" else ""
        ratio = words.ratio_range(part)
        yield f"  {_TITLE[phase]:<{LABEL}} {shown} {ratio:<25} {counted}".rstrip()
        if verdict.pairs:
            yield f"  {'':<{LABEL}} {dots(_ratios(verdict, phase), span)}"
    if verdict.pairs:
        yield f"  {'':<{LABEL}} {_axis(span)}"


def dots(ratios: list[float], span: float) -> str:
    """Each pair's ratio on a line around 1; a digit where several share a cell.

    Args:
        ratios: second / first.
        span: log-ratio at both ends; farther ones stand at the end.
    """
    half = CELLS // 2
    places = Counter(half + round(max(-1.0, min(1.0, log(one) / span)) * half) for one in ratios)
    cells = [GOAL_MARK if place == half else REST for place in range(CELLS)]
    for place, count in places.items():
        cells[place] = DOT if count == 1 else str(count) if count < 10 else "#"
    return "".join(cells)


def _axis(span: float) -> str:
    left, right = f"{exp(-span):.2f} faster", f"slower {exp(span):.2f}"
    middle = "1"
    gap = CELLS // 2 - len(left)
    return f"{left}{' ' * gap}{middle}{right:>{CELLS - CELLS // 2 - 1}}"


def _span(verdict: Verdict) -> float:
    seen = [abs(log(one)) for phase in PHASES for one in _ratios(verdict, phase)]
    ordered = sorted(seen)
    # One wild pair does not squeeze all the others together.
    most = ordered[int(0.95 * (len(ordered) - 1))] if ordered else 0.0
    return min(max(1.15 * most, LEAST_SPAN), MOST_SPAN)


def _ratios(verdict: Verdict, phase: Phase) -> list[float]:
    rows = [row for row in verdict.pairs if row.prompt_tokens == verdict.measured_prompt_tokens]
    found = (getattr(row, phase) for row in rows)
    return [ratio for ratio in found if ratio]


def _notes(verdict: Verdict) -> Iterator[str]:
    if verdict.prediction is not None:
        yield from _labelled("Predicted", words.prediction_lines(verdict.prediction))
    for length in verdict.lengths:
        line = words.length_line(length, verdict.phases, verdict.measured_prompt_tokens)
        if line is not None:
            yield from _labelled("Shorter", [line])
    seen = {words.detectable(getattr(verdict.phases, phase)): phase for phase in PHASES}
    said = [f"{words.THING[phase]}: {text}" for text, phase in seen.items() if text]
    yield from _labelled("Smallest", said)
    need = words.need_line(verdict)
    if need is not None:
        yield from _labelled("More time", [need])


def _warnings(verdict: Verdict) -> list[str]:
    said = [plain(warning, longest=300) for warning in verdict.conditions.warnings]
    lines = [line.rstrip(".") + "." for line in said if line]
    return [part for line in lines for part in _wrapped(line[0].upper() + line[1:])]


def _arms(verdict: Verdict) -> Iterator[str]:
    work = verdict.workload
    yield from _labelled("First", [_arm(verdict.arms[0])])
    yield from _labelled("Second", [_arm(verdict.arms[1])])
    differ = [
        f"{plain(one.what)}: {_value(one.first)} → {_value(one.second)}" for one in verdict.changes
    ]
    if len(differ) > MOST_CHANGES:
        differ[MOST_CHANGES:] = [f"and {len(differ) - MOST_CHANGES} more: --json"]
    yield from _labelled("Differ in", differ or ["nothing that can be seen from here"])
    shape = f"{tokens(work.prompt_tokens)} tokens in, {tokens(work.output_tokens)} out"
    load = verdict.conditions.host_load
    busy = "" if load is None else f"; other programs used {percent(load)} of the processors"
    yield from _labelled("Request", [f"{shape}; {verdict.clock or 'no'} clock{busy}"])


def _arm(arm: ArmPart) -> str:
    source = arm.source
    server = " ".join(plain(word) for word in (source.runtime, source.runtime_version) if word)
    parts = (plain(arm.name, longest=120), server, plain(source.model, longest=40))
    return " · ".join(part for part in parts if part)


def _value(value: str | None) -> str:
    return "not told" if value is None else plain(value, longest=60)


def _labelled(label: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield from wrap(
            line,
            WIDTH - 2,
            initial_indent=f"  {label:<{LABEL}} ",
            subsequent_indent=" " * (LABEL + 3),
            break_long_words=True,
        )
        label = ""


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH - 2, initial_indent="  ", subsequent_indent="  ")


def _styled(text: str, style: str, *, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour else text
