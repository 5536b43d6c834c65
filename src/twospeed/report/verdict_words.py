"""How a comparison is said."""

from __future__ import annotations

from twospeed.cures.trial_result import LengthResult
from twospeed.fits.paired import FEWEST_PAIRS, Comparison, Phase, Why
from twospeed.report.numbers import seconds, seconds_range, tokens
from twospeed.report.verdict import PhaseParts, PredictionPart, Verdict

THING: dict[Phase, str] = {
    "prefill": "the wait",
    "decode": "the stream",
    "workload": "the whole request",
}
TIMES = "\N{MULTIPLICATION SIGN}"
SURE = "95 % sure it is "

WHY: dict[Why, str] = {
    "too_few": "only {pairs} pairs, and {fewest} are needed",
    "too_noisy": "the pairs scatter too much",
    "changed_midway": "the difference turned round during the run",
    "disturbed": "other programs were at work",
    "not_measured": "it was not measured in both",
    "sessions": "two separate runs may differ so much by the machine's mood alone",
    "alone": "only this prompt length shows it",
}

INTERRUPTED = "stopped early: only the pairs until then"
ERRORS = "ended early: {message}"
DISTURBED = "other programs were at work during {some} of {all} pairs"
BUSY = "other programs were at work during {some} of {all} requests"
WILD = "pairs that lie far off the rest: {count}; they count by their rank only"
DRIFT = "both arms became {percent} {way} during the run, which pairs cancel"
ONE_START = (
    "true of these servers as they ran: the same settings, started twice, can differ by a few per "
    "cent"
)
OUTPUT = "the second arm's answers are {ratio} times as long: compare per token, not per request"
PROMPT = "the same prompts are {ratio} times as many tokens in the second arm"
OTHER_RUNTIME = "the arms are different runtimes: both phases are from our own clock"
SHORTENED = "measured with {tokens} tokens in, for time; the request of {wanted} is extrapolated"
SESSIONS = (
    "not interleaved: 5 % and the drift of the new run were added to both ends of each interval"
)
LOAD_DIFFERS = "other programs used {first} of the processors then and {second} now"


def sentence(phases: PhaseParts) -> str:
    """The answer in one sentence: what is shown first, the whole request last."""
    parts: list[tuple[Phase, Comparison]] = [
        ("decode", phases.decode),
        ("prefill", phases.prefill),
    ]
    parts.sort(key=lambda part: _rank(part[1]))
    parts.append(("workload", phases.workload))
    clauses, sure = [], SURE
    for phase, found in parts:
        clauses.append(clause(phase, found, sure=sure))
        sure = "" if found.verdict in ("faster", "slower") else sure
    text = "; ".join(clauses)
    return text[0].upper() + text[1:] + "."


def clause(phase: Phase, found: Comparison, *, sure: str = "") -> str:
    """One phase: verdict, factor and interval, or within what nothing changed."""
    thing = THING[phase]
    if found.verdict in ("faster", "slower") and found.low and found.high and found.ratio:
        low, likely, high = found.low, found.ratio, found.high
        if found.verdict == "faster":
            low, likely, high = 1 / high, 1 / likely, 1 / low
        spread = f"between {times(low)} and {times(high)}"
        return f"{thing} is {times(likely)} {found.verdict}, {sure}{spread}"
    if found.verdict == "no difference shown":
        return f"{thing} did not change: within {within(found)}"
    return f"cannot tell about {thing}: {why(found)}"


def why(found: Comparison) -> str:
    """Why nothing can be told."""
    return WHY[found.why or "not_measured"].format(pairs=found.pairs, fewest=FEWEST_PAIRS)


def within(found: Comparison) -> str:
    """The largest change that the interval still holds: `3 %`."""
    if not found.low or not found.high:
        return "?"
    share = max(found.high - 1.0, 1.0 / found.low - 1.0)
    return percent(share)


def percent(share: float) -> str:
    """`3 %`, `0.4 %`."""
    size = abs(share) * 100
    return f"{size:.0f} %" if size >= 0.95 else f"{size:.1g} %" if size >= 0.05 else "0.1 %"


def times(ratio: float) -> str:
    """A factor with its sign, two decimals up to ten."""
    return f"{ratio:.2f}{TIMES}" if ratio < 9.995 else f"{ratio:,.0f}{TIMES}"


def ratio_range(found: Comparison) -> str:
    """Ratio and interval as a table shows them."""
    if found.ratio is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.ratio:.3f}"
    return f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})"


def detectable(found: Comparison) -> str:
    """What could have been seen, for a phase that shows no difference."""
    if found.verdict != "no difference shown" or found.minimum_detectable is None:
        return ""
    return f"a change of {percent(found.minimum_detectable)} would have shown"


def length_line(length: LengthResult, main: PhaseParts, main_tokens: int | None) -> str | None:
    """What a shorter prompt shows beside the verdict; None where it adds nothing."""
    if main.prefill.verdict not in ("faster", "slower"):
        return None
    here = f"with {tokens(length.prompt_tokens)} tokens in, {clause('prefill', length.prefill)}"
    if length.prefill.verdict == "no difference shown":
        return f"{here}; it is {main.prefill.verdict} at {tokens(main_tokens)} only"
    return here


def prediction_lines(prediction: PredictionPart) -> list[str]:
    """What was predicted, and whether it held."""
    likely, spread = seconds(prediction.saves_s.likely), seconds_range(prediction.saves_s)
    advised = "" if prediction.listed == "cures" else " and advised against it"
    first = f"the diagnosis said '{prediction.cure}' saves {likely} ({spread}){advised}"
    if prediction.measured_s is None:
        return [first, "what it saves cannot be told"]
    saved = f"{seconds(prediction.measured_s.likely)} ({seconds_range(prediction.measured_s)})"
    ends = {
        "yes": "the prediction held",
        "no": "the prediction did not hold",
        "cannot tell": "whether the prediction held cannot be told",
    }
    return [first, f"measured: {saved}: {ends[prediction.held]}"]


def need_line(verdict: Verdict) -> str | None:
    """How long it would take to know more; None where nothing is open."""
    if verdict.seconds_needed is None or verdict.method != "pairs":
        return None
    return f"--budget {verdict.seconds_needed:.0f} would tell what is still open, within 3 %"


def _rank(found: Comparison) -> int:
    order = ("faster", "slower", "no difference shown", "cannot tell")
    return order.index(found.verdict)
