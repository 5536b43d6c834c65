"""Decode makes the stream slow, or hidden reasoning makes the wait slow."""

from __future__ import annotations

from twospeed.findings.budget import largest_wait_part
from twospeed.findings.finding import Cause, Certainty, Evidence, Finding
from twospeed.findings.machine_share import share_evidence
from twospeed.findings.observed import Observed
from twospeed.findings.placement import gpu_share
from twospeed.fits.decode import DecodeFit

ORDER = 70

MAJOR_SHARE = 0.4
"""From here on depth is named beside the bytes of the weights."""
MEASURED_TO = 0.8
"""The slope is measured, not extrapolated, when the deepest point reaches this much of it."""


def find(observed: Observed) -> list[Finding]:
    """Depth, bandwidth, or less than normal; a long answer where the speed is fine."""
    if observed.stream.verdict == "slow":
        return [*_depth(observed), *_pace(observed)]
    return _long_reasoning(observed)


def depth_share(observed: Observed) -> float:
    """Share of a token's time that depth causes, in the middle of the workload's answer."""
    fit = observed.decode
    if fit is None or not fit.per_depth_token_s:
        return 0.0
    of_depth = fit.per_depth_token_s * observed.depth_tokens
    return of_depth / (fit.per_token_s + of_depth)


def _depth(observed: Observed) -> list[Finding]:
    share, fit, decode_s = depth_share(observed), observed.decode, observed.decode_s
    if fit is None or decode_s is None or share < MAJOR_SHARE:
        return []
    reached = fit.deepest_tokens >= MEASURED_TO * observed.depth_tokens
    return [
        Finding(
            cause="decode.depth",
            phase="decode",
            certainty="measured" if reached else "inferred",
            costs_s=decode_s.likely * share,
            evidence=_depth_evidence(observed, fit, share),
        )
    ]


def _depth_evidence(observed: Observed, fit: DecodeFit, share: float) -> tuple[Evidence, ...]:
    at_zero = 1.0 / fit.per_token_s if fit.per_token_s > 0 else None
    return (
        Evidence(what="depth", value=observed.depth_tokens, unit="tok", origin="assumed"),
        Evidence(what="share of a token's time", value=share, origin="fit"),
        Evidence(what="decode speed at depth 0", value=at_zero, unit="tok/s", origin="fit"),
    )


def _pace(observed: Observed) -> list[Finding]:
    """What the tokens would cost even at depth 0. Nothing when a split placement explains it."""
    decode_s, limits = observed.decode_s, observed.limits
    if decode_s is None or gpu_share(observed.run.facts) is not None:
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
    return [
        Finding(
            cause=cause,
            phase="decode",
            certainty=certainty,
            costs_s=costs_s,
            evidence=_pace_evidence(observed),
        )
    ]


def _pace_evidence(observed: Observed) -> tuple[Evidence, ...]:
    limits = observed.limits
    return (
        Evidence(what="decode speed", value=observed.stream.tps, unit="tok/s", origin="fit"),
        *share_evidence("decode", limits.decode_of_limit_frac, limits.decode_normal),
    )


def _long_reasoning(observed: Observed) -> list[Finding]:
    budget = observed.budget
    if observed.wait.verdict != "slow" or largest_wait_part(budget) != "reasoning_s":
        return []
    share = observed.reasoning.share
    return [
        Finding(
            cause="decode.output_long",
            phase="decode",
            certainty="measured",
            costs_s=budget.reasoning_s,
            evidence=(
                Evidence(
                    what="share of the output that is reasoning", value=share, origin="client"
                ),
                Evidence(
                    what="decode speed", value=observed.stream.tps, unit="tok/s", origin="fit"
                ),
            ),
        )
    ]
