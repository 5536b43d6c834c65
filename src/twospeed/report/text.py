"""The report for a terminal: the answer first, at most one screen (40 lines of 80 columns)."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from twospeed.cures.cure import Cure
from twospeed.findings.budget import WAIT_PARTS, Verdict
from twospeed.records.ledger import TrackRecord
from twospeed.report import words
from twospeed.report.bars import GOAL_MARK, Slice, bar, in_ascii, sparkline
from twospeed.report.document import Report
from twospeed.report.numbers import (
    goal,
    percent,
    rate,
    rate_with_unit,
    seconds,
    seconds_range,
    tokens,
)
from twospeed.report.plain import plain
from twospeed.report.what_if_text import (
    LONGEST_CHANGE,
    WAIT_WIDTH,
    elsewhere_lines,
    table_head,
    text_rows,
)

NARROWEST = 60
MOST_LINES = 40
MARGIN = "  "
MOST_CURES = 3
MOST_WONT_HELP = 3
MOST_NOT_SEEN = 2
MOST_WHAT_IF = 6
ELSEWHERE_LINES = 4
SOURCE_WIDTH = 63
"""Columns beside the word Source; a longer source takes two lines."""
CURVE_CELLS = 14
CURVE_START = 17
FAR_BEYOND = 4.0
"""A bend further out than this many times the measured range is not worth a word."""
VISIBLE_FRAC = 0.01
"""Parts of the wait below this share are left out of the legend."""

_PARTS: dict[str, tuple[str, str]] = {
    "load_s": ("▒", "magenta"),
    "queue_s": ("░", "yellow"),
    "network_s": ("╌", "blue"),
    "prefill_s": ("█", "cyan"),
    "reasoning_s": ("▓", "green"),
    "unexplained_s": ("?", "dim"),
}
_VERDICT_STYLE: dict[Verdict, str] = {"slow": "bold red", "fine": "green", "unknown": "yellow"}


def render_text(report: Report, *, width: int = 80, colour: bool, ascii_only: bool = False) -> str:
    """The report as terminal text, ending with a newline.

    Args:
        report: the document.
        width: columns; nothing is longer. At least 60.
        colour: with ANSI colours.
        ascii_only: for output encodings other than UTF-8.
    """
    width = max(width, NARROWEST)
    blocks = _blocks(report, width, hint=True)
    if sum(1 + len(block) for block in blocks) > MOST_LINES:
        blocks = _blocks(report, width, hint=False)
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for line in _spaced(blocks):
        line.truncate(width, overflow="ellipsis")
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    text = out.getvalue()
    return in_ascii(text) if ascii_only else text


def _blocks(report: Report, width: int, *, hint: bool) -> list[list[Text]]:
    """The parts of the report that have something to say; `hint` says where to read more."""
    blocks = [
        _warnings(report, width),
        _verdict(report, width),
        _wait(report, width),
        _stream(report, width),
        [*_request(report), *_curves(report)],
        [*_findings(report), *(_more(report) if hint else [])],
        _what_if(report),
        _elsewhere(report),
        [*_cures(report), *_wont_help(report)],
        [*_not_seen(report), *_source(report)],
    ]
    return [block for block in blocks if block]


def _spaced(blocks: Sequence[Sequence[Text]]) -> list[Text]:
    """The blocks with an empty line before each, as far as the screen has room for it."""
    room = MOST_LINES - sum(len(block) for block in blocks)
    lines: list[Text] = []
    for index, block in enumerate(blocks):
        lines += [Text(), *block] if index < room else block
    return lines


def _line(*parts: str | tuple[str, str] | Text) -> Text:
    return Text.assemble(MARGIN, *parts)


def _apart(left: Text, right: str, width: int) -> Text:
    """Left text, and right text at the right edge where there is room."""
    gap = width - left.cell_len - cell_len(right) - len(MARGIN)
    return Text.assemble(left, " " * max(gap, 2), (right, "dim"))


def _wrapped(text: Text, width: int, most: int) -> list[Text]:
    lines = text.wrap(Console(width=width), width - 2 * len(MARGIN))
    kept = list(lines)[:most]
    return [Text.assemble(MARGIN, line) for line in kept]


def _warnings(report: Report, width: int) -> list[Text]:
    conditions = report.conditions
    if conditions.trusted and not conditions.warnings:
        return []
    said = "; ".join(plain(warning).rstrip(".") for warning in conditions.warnings)
    if conditions.trusted:
        return _wrapped(Text(f"Note: {said}.", style="yellow"), width, 2)
    reason = said or words.BUSY
    return _wrapped(Text(f"{words.UNTRUSTED} {reason}.", style="bold red"), width, 4)


def _verdict(report: Report, width: int) -> list[Text]:
    return _wrapped(Text(plain(report.verdict, longest=400), style="bold"), width, 3)


def _wait(report: Report, width: int) -> list[Text]:
    wait = report.wait
    for_machine = words.machine_word(
        report.limits.prefill_of_limit_frac, report.limits.prefill_normal
    )
    head = _gauge_head("THE WAIT", seconds(wait.seconds), wait.verdict, near=wait.near_goal)
    lines = [_apart(head, f"for this machine: {for_machine}", width)]
    if wait.seconds is None:
        return lines
    parts = [(part, getattr(report.time_budget, part) or 0.0) for part in WAIT_PARTS]
    slices = [Slice(amount, *_PARTS[part]) for part, amount in parts]
    lines.append(_line(bar(slices, goal=wait.goal_s, width=width - 2 * len(MARGIN))))
    legend = Text(MARGIN)
    for part, amount in parts:
        if amount > VISIBLE_FRAC * wait.seconds:
            glyph, style = _PARTS[part]
            legend.append(glyph, style=style)
            legend.append(f" {words.PART_TEXT[part]} {seconds(amount)}   ")
    legend.append(f"{GOAL_MARK} goal {goal(wait.goal_s)} s")
    return [*lines, legend]


def _stream(report: Report, width: int) -> list[Text]:
    stream, work = report.stream, report.workload
    for_machine = words.machine_word(
        report.limits.decode_of_limit_frac, report.limits.decode_normal
    )
    shown = rate_with_unit(stream.tps, beside=stream.goal_tps)
    head = _gauge_head("THE STREAM", shown, stream.verdict, near=stream.near_goal)
    lines = [_apart(head, f"for this machine: {for_machine}", width)]
    if stream.tps is None:
        return lines
    slices = [Slice(stream.tps, "█", "cyan")]
    lines.append(_line(bar(slices, goal=stream.goal_tps, width=width - 2 * len(MARGIN))))
    depth = tokens(work.prompt_tokens + work.output_tokens / 2)
    legend = _line(("█", "cyan"), f" at a depth of {depth} tokens   ")
    legend.append(f"{GOAL_MARK} goal {goal(stream.goal_tps)} tok/s")
    return [*lines, legend]


def _gauge_head(name: str, value: str, verdict: Verdict, *, near: bool) -> Text:
    word = words.verdict_word(verdict)
    head = _line((f"{name:<12}", "bold"), (value, "bold"), "  ", (word, _VERDICT_STYLE[verdict]))
    if near:
        head.append(words.NEAR_GOAL)
    return head


def _request(report: Report) -> list[Text]:
    work, balance = report.workload, report.balance
    shape = f"{tokens(work.prompt_tokens)} tokens in"
    if work.cached_prompt_tokens:
        shape += f" ({tokens(work.cached_prompt_tokens)} cached)"
    lines = [
        _line(
            ("One request  ", "bold"),
            f"{shape}, {tokens(work.output_tokens)} out ({words.WORKLOAD_TEXT[work.origin]}): ",
            words.total_text(report.time_budget),
        )
    ]
    if balance.prefill_frac is not None and balance.equal_prompt_per_output_token is not None:
        equal = rate(balance.equal_prompt_per_output_token)
        lines.append(
            _line(
                ("Shares       ", "bold"),
                f"prefill {percent(balance.prefill_frac)}, decode {percent(balance.decode_frac)}; ",
                f"equal at {equal} tokens in per token out",
            )
        )
    return lines


def _curves(report: Report) -> list[Text]:
    return [line for line in (_prefill_curve(report), _decode_curve(report)) if line]


def _prefill_curve(report: Report) -> Text | None:
    curve, points = report.prefill.curve, report.prefill.points
    if curve is None or not points:
        return None
    first = min(point.prompt_tokens for point in points)
    last = max(point.prompt_tokens for point in points)

    def at(n: float) -> float:
        return curve.overhead_s + curve.per_token_s * n + curve.per_token2_s * n * n

    heights = [at(n) for n in _steps(first, last)]
    line = _line(
        ("Prefill      ", "bold"),
        f"{f'{tokens(first)} tok {seconds(heights[0])}':<{CURVE_START}}",
        (sparkline(heights), "cyan"),
        f" {tokens(last)} tok {seconds(heights[-1])}",
    )
    if 0 < curve.per_token_s < FAR_BEYOND * last * curve.per_token2_s:
        line.append(f"  bends at {tokens(curve.per_token_s / curve.per_token2_s)}", style="dim")
    return line


def _decode_curve(report: Report) -> Text | None:
    curve, points = report.decode.curve, report.decode.points
    if curve is None or not points or curve.per_depth_token_s is None:
        return None
    first = min(point.depth_tokens for point in points)
    last = max(point.depth_tokens for point in points)
    slope = curve.per_depth_token_s
    per_token_s = [curve.per_token_s + slope * depth for depth in _steps(first, last)]
    if min(per_token_s) <= 0:
        return None
    decode_tps = [1.0 / step_s for step_s in per_token_s]
    line = _line(
        ("Decode       ", "bold"),
        f"{f'depth {tokens(first)} {rate(decode_tps[0])}/s':<{CURVE_START}}",
        (sparkline(decode_tps), "cyan"),
        f" {tokens(last)} {rate(decode_tps[-1])}/s",
    )
    if curve.per_token_s < FAR_BEYOND * last * slope:
        line.append(f"  half speed at {tokens(curve.per_token_s / slope)}", style="dim")
    return line


def _steps(first: float, last: float) -> list[float]:
    return [first + (last - first) * i / (CURVE_CELLS - 1) for i in range(CURVE_CELLS)]


def _findings(report: Report) -> list[Text]:
    lines = []
    for index, finding in enumerate(report.findings):
        costs = seconds(finding.costs_s) if finding.costs_s is not None else ""
        lines.append(
            _line(
                (f"{'' if index else 'Why':<13}", "bold"),
                f"{costs:<7} ",
                words.CAUSE_TEXT[finding.cause],
                (f" ({finding.certainty})", "dim"),
            )
        )
    return lines


def _asked(report: Report) -> bool:
    """Whether there are answers to questions, which then need the room of advice."""
    return bool(report.what_if) or report.elsewhere is not None


def _what_if(report: Report) -> list[Text]:
    if not report.what_if:
        return []
    most = MOST_WHAT_IF - (ELSEWHERE_LINES if report.elsewhere is not None else 0)
    _, wait, stream, total = table_head()
    head = f"{'':<{LONGEST_CHANGE - 5}} {wait:>{WAIT_WIDTH}} {stream:>11}  {total}"
    lines = [_line(("WHAT IF", "bold"), (head, "dim"))]
    lines += [_line(f"  {row}") for row in text_rows(report.what_if, most)]
    if (more := len(report.what_if) - 1 - most) > 0:
        lines.append(_line((f"  and {more} more: --json", "dim")))
    return lines


def _elsewhere(report: Report) -> list[Text]:
    if report.elsewhere is None:
        return []
    return [
        _line((f"{'' if index else 'Elsewhere':<13}", "bold"), plain(said))
        for index, said in enumerate(elsewhere_lines(report.elsewhere))
    ]


def _more(report: Report) -> list[Text]:
    """Where to read about the worst finding."""
    if not report.findings:
        return []
    command = f"twospeed explain {report.findings[0].cause}"
    return [_line(" " * 21, (words.MORE.format(command=command), "dim"))]


def _cures(report: Report) -> list[Text]:
    if not report.cures:
        return []
    lines = [_line(("WHAT WOULD HELP", "bold green"), ("  seconds of this request", "dim"))]
    for index, cure in enumerate(report.cures[:MOST_CURES]):
        lines.append(_saving(cure, report.track_record))
        if index < 2 and cure.how and not _asked(report):
            lines.append(_line("    ", (plain(cure.how[0]), "dim")))
    return lines


def _wont_help(report: Report) -> list[Text]:
    if not report.wont_help or _asked(report):
        return []
    lines = [_line(("WHAT WOULD NOT", "bold"))]
    for wont in report.wont_help[:MOST_WONT_HELP]:
        likely = seconds(max(wont.saves_s.likely, 0.0))
        lines.append(_line(f"  {wont.cure:<23}", f"{likely:>7}  ", (plain(wont.why), "dim")))
    return lines


def _saving(cure: Cure, track_record: Sequence[TrackRecord]) -> Text:
    saves = cure.saves_s
    spread, likely = seconds_range(saves), seconds(saves.likely)
    line = _line("  ", (f"{cure.cure:<23}", "bold"), (f"{likely:>7}", "green"))
    if spread != likely:
        line.append(f"  ({spread})", style="dim")
    if (loss := words.slower_phase(cure.wait_s, cure.answer_s)) is not None:
        line.append(f"  {loss}", style="yellow")
    for one in track_record:
        if one.cure == cure.cure:
            line.append(f"  {words.held_here(one)}", style="dim")
    return line


def _not_seen(report: Report) -> list[Text]:
    """The gaps; with what would close them when they are the answer."""
    blind = report.slow_phase == "unknown"
    lines: list[Text] = []
    for gap in report.unknown[:MOST_NOT_SEEN]:
        lines.append(_line((f"{'' if lines else 'Not seen':<13}", "bold"), plain(gap.what)))
        if blind:
            lines.append(_line(" " * 13, ("needs " + plain(gap.needs), "dim")))
    more = len(report.unknown) - MOST_NOT_SEEN
    if more > 0:
        lines.append(_line(" " * 13, (f"and {more} more: --json", "dim")))
    return lines


def _source(report: Report) -> list[Text]:
    source = report.source
    server = " ".join(plain(word) for word in (source.runtime, source.runtime_version) if word)
    named = (plain(source.model, longest=34), server, plain(source.where, longest=40))
    parts = [part for part in named if part]
    on_first = len(parts) if cell_len(" · ".join(parts)) <= SOURCE_WIDTH else 1
    lines = [_line(("Source       ", "bold"), (" · ".join(parts[:on_first]), "dim"))]
    if rest := parts[on_first:]:
        lines.append(_line(" " * 13, (" · ".join(rest), "dim")))
    return lines
