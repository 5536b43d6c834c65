"""The pace of decode where nothing narrower is shown, and answers that are just long."""

from __future__ import annotations

from twospeed.findings.budget import largest_wait_part
from twospeed.findings.comparison import compare
from twospeed.findings.depth import depth_share
from twospeed.findings.finding import Cause, Certainty, Evidence, Finding
from twospeed.findings.judgement import answers_long
from twospeed.findings.machine_share import share_evidence
from twospeed.findings.observed import Observed
from twospeed.findings.signs import drafting, falls
from twospeed.findings.slowness import decode_is_slow

ORDER = 70


def find(observed: Observed) -> list[Finding]:
    """Bandwidth, or less than normal; a long answer where the speed is fine."""
    slower = _slower_than_itself(observed) or _without_graph(observed)
    if slower:
        return slower
    if decode_is_slow(observed) and observed.stream.verdict == "slow":
        return _pace(observed)
    return _long_reasoning(observed) or _long_answer(observed)


def _pace(observed: Observed) -> list[Finding]:
    """What the tokens would cost even at depth 0."""
    decode_s, limits = observed.decode_s, observed.limits
    if decode_s is None:
        return []
    base_s = decode_s.likely * (1.0 - depth_share(observed))
    cause: Cause = "decode.bandwidth_bound"
    certainty: Certainty = "possible"
    costs_s = base_s
    if limits.decode_normal is not None and limits.decode_of_limit_frac is not None:
        certainty = "inferred"
        reached = limits.decode_of_limit_frac.value / limits.decode_normal.low
        if reached < 1.0:
            cause, costs_s = "decode.below_limit", base_s * (1.0 - reached)
    return [_finding(cause, certainty, costs_s, _pace_evidence(observed))]


def _finding(
    cause: Cause, certainty: Certainty, costs_s: float | None, evidence: tuple[Evidence, ...]
) -> Finding:
    return Finding(
        cause=cause, phase="decode", certainty=certainty, costs_s=costs_s, evidence=evidence
    )


def _pace_evidence(observed: Observed) -> tuple[Evidence, ...]:
    limits, drafts = observed.limits, drafting(observed.run.records)
    evidence = [
        Evidence(what="decode speed", value=observed.stream.tps, unit="tok/s", origin="fit"),
        *share_evidence("decode", limits.decode_of_limit_frac, limits.decode_normal),
    ]
    if drafts is not None:
        what = "share of the drafted tokens accepted"
        evidence.append(Evidence(what=what, value=drafts.share, origin="server"))
    return tuple(evidence)


def _slower_than_itself(observed: Observed) -> list[Finding]:
    """The same request ran much faster another time."""
    compared = compare(observed.run.records)
    if compared is None or compared.phase != "decode" or not decode_is_slow(observed):
        return []
    what = "decode of the same request was faster by"
    ratio = Evidence(what=what, value=compared.ratio, unit="times", origin="server")
    return [_finding("decode.below_limit", "inferred", compared.seconds, (ratio,))]


def _without_graph(observed: Observed) -> list[Finding]:
    """Steps that are not replayed as a graph pay for each launch."""
    if observed.run.facts.cuda_graph is not False or not decode_is_slow(observed):
        return []
    graph = Evidence(what="decode steps replayed as a graph", value=False, origin="server")
    return [_finding("decode.below_limit", "possible", None, (graph,))]


def _long_reasoning(observed: Observed) -> list[Finding]:
    budget = observed.budget
    if observed.wait.verdict != "slow" or largest_wait_part(budget) != "reasoning_s":
        return []
    share = observed.reasoning.share
    evidence = (
        Evidence(what="share of the output that is reasoning", value=share, origin="client"),
        Evidence(what="decode speed", value=observed.stream.tps, unit="tok/s", origin="fit"),
    )
    return [_finding("decode.output_long", "measured", budget.reasoning_s, evidence)]


def _long_answer(observed: Observed) -> list[Finding]:
    """An answer that takes long because it is long."""
    run, decode_s = observed.run, observed.decode_s
    if observed.slow_phase != "decode" or decode_s is None or not answers_long(run, observed):
        return []
    if falls(run.records) is not None:
        return []  # its speed is not fine all along
    evidence = (
        Evidence(what="output", value=run.workload.output_tokens, unit="tok", origin="assumed"),
        Evidence(what="decode speed", value=observed.stream.tps, unit="tok/s", origin="fit"),
    )
    return [_finding("decode.output_long", "inferred", decode_s.likely, evidence)]
