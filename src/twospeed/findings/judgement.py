"""Which phase is slower than it could be, whatever the goals say.

The second of the two judgements: a stream of 60 tokens per second is fine, and still what is wrong
when its drafts are thrown away. Only what the records themselves show counts here.
"""

from __future__ import annotations

from statistics import median

from twospeed.findings.bursts import observe_holding
from twospeed.findings.comparison import compare
from twospeed.findings.finding import SlowPhase
from twospeed.findings.offload import gpu_share
from twospeed.findings.phase_times import PhaseTimes
from twospeed.findings.signs import SAMPLING_FRAC, drafting, falls, sampling_frac
from twospeed.findings.table import contrasts, deep_loss
from twospeed.findings.throttling import throttled_graphics
from twospeed.records.run import Run

OWN_SHAPE = ("log", "recording", "flag")
"""Workloads whose proportions are the user's own; those of the default are nobody's."""
CONNECT_FRAC = 0.4
"""Opening the connection from this share of the wait on is worth naming, ..."""
CONNECT_S = 0.1
"""... from this long on, where every request opens its own."""
LONG_ANSWER_S = 30.0
LONG_ANSWER_TOKENS = 1500
"""An answer that takes this long, with so many tokens, is what its user waits for."""
APART = 1.5
DEEP_LOSS = 2.0
"""Decode at the greatest depth of a table is so many times slower from where depth is named."""
NEAR_MISS = 1.5
"""A stream that misses its goal by less is no second slow phase beside ..."""
MOST_OF_IT = 2 / 3
"""... a prefill that takes this part of the seconds."""
NEARLY_ALL = 0.8
"""A prefill that takes this part of a user's own request is the slow phase."""
HALF = 0.5
READS_WELL = 25.0
"""Prefill per token this many times faster than decode is what both normally are to each other."""


def settled(run: Run, times: PhaseTimes, by_goals: SlowPhase) -> SlowPhase:
    """The slow phase: by the goals, and beyond them by what the records show to be wrong."""
    compared = compare(run.records)
    if compared is not None and by_goals in ("none", "prefill", "decode", "both", "unknown"):
        return compared.phase
    if by_goals == "both":
        return _one_of_both(run, times)
    if by_goals in ("none", "unknown"):
        return abnormal_phase(run, times) or by_goals
    return by_goals


def abnormal_phase(run: Run, times: PhaseTimes) -> SlowPhase | None:
    """The phase that something is shown to slow down; None where nothing is."""
    if observe_holding(run) is not None or connects_slowly(run) is not None:
        return "network"
    if throttled_graphics(run.machine) is not None:
        return "both"
    drafts, sampling = drafting(run.records), sampling_frac(run.records)
    if (drafts and drafts.rejected) or (sampling or 0.0) >= SAMPLING_FRAC:
        return "decode"
    if falls(run.records) or run.facts.cuda_graph is False or answers_long(run, times):
        return "decode"
    return _by_table(run)


def answers_long(run: Run, times: PhaseTimes) -> bool:
    """Whether the answer itself is what takes long."""
    seconds = times.decode_s.likely if times.decode_s is not None else 0.0
    return seconds >= LONG_ANSWER_S and run.workload.output_tokens >= LONG_ANSWER_TOKENS


def connects_slowly(run: Run) -> float | None:
    """Seconds of opening a connection, where each request opens one and waits for it."""
    records = [record for record in run.records if record.error is None]
    pairs = [
        (record.client.connect_s, record.client.ttft_s)
        for record in records
        if record.client.connect_s is not None and record.client.ttft_s is not None
    ]
    if len(pairs) < 2 or len(pairs) * 2 < len(records):
        return None
    connect_s = median(one for one, _ in pairs)
    slow = connect_s >= CONNECT_S and connect_s >= CONNECT_FRAC * median(two for _, two in pairs)
    return connect_s if slow else None


def _by_table(run: Run) -> SlowPhase | None:
    deepest = deep_loss(run.points)
    if deepest is not None and deepest[1] >= DEEP_LOSS:
        return "decode"
    for pair in contrasts(run.points)[:1]:
        slow = (pair.ratio("prefill") >= APART, pair.ratio("decode") >= APART)
        if any(slow):
            return "both" if all(slow) else "prefill" if slow[0] else "decode"
    return None


def _one_of_both(run: Run, times: PhaseTimes) -> SlowPhase:
    """Both numbers are bad; often one phase is what is wrong."""
    prefill, decode, goals = times.prefill_s, times.decode_s, run.goals
    if prefill is None or decode is None or times.prefill_tps is None or times.decode_tps is None:
        return "both"
    if run.workload.origin not in OWN_SHAPE:
        return "both"
    share = prefill.likely / (prefill.likely + decode.likely)
    if share >= NEARLY_ALL:
        return "prefill"
    if share >= MOST_OF_IT and times.decode_tps.likely * NEAR_MISS >= goals.stream_tps:
        return "prefill"
    reads_well = times.prefill_tps.likely >= READS_WELL * times.decode_tps.likely
    if gpu_share(run.facts) is not None and reads_well and share <= HALF:
        return "decode"
    return "both"
