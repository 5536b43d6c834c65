"""The context that every token looks back at is what slows decode."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.judgement import DEEP_LOSS
from twospeed.findings.observed import Observed
from twospeed.findings.signs import falls
from twospeed.findings.slowness import decode_is_slow
from twospeed.findings.table import deep_loss
from twospeed.fits.decode import DecodeFit

ORDER = 65

MAJOR_SHARE = 0.4
"""From here on depth is named beside the bytes of the weights."""
MEASURED_TO = 0.8
"""The slope is measured, not extrapolated, when the deepest point reaches this much of it."""
DEEP_TOKENS = 16_384
"""Without flash attention a context from here on is most of a token's time.

Source: docs/physics.md: cache reads reach .06 to .24 of the bandwidth without it.
"""


def find(observed: Observed) -> list[Finding]:
    """By the curve, by a table, by the course of one answer, or by what is known of attention."""
    if not decode_is_slow(observed):
        return []
    found = _by_table(observed) or _by_curve(observed) or _by_course(observed)
    found = found or _without_flash_attention(observed)
    return [] if found is None else [found]


def depth_share(observed: Observed) -> float:
    """Share of a token's time that depth causes, in the middle of the workload's answer."""
    fit = observed.decode
    if fit is None or not fit.per_depth_token_s:
        return 0.0
    of_depth = fit.per_depth_token_s * observed.depth_tokens
    return of_depth / (fit.per_token_s + of_depth)


def _by_curve(observed: Observed) -> Finding | None:
    share, fit, decode_s = depth_share(observed), observed.decode, observed.decode_s
    if fit is None or decode_s is None or share < MAJOR_SHARE:
        return None
    reached = fit.deepest_tokens >= MEASURED_TO * observed.depth_tokens
    return Finding(
        cause="decode.depth",
        phase="decode",
        certainty="measured" if reached else "inferred",
        costs_s=decode_s.likely * share,
        evidence=_depth_evidence(observed, fit, share),
    )


def _depth_evidence(observed: Observed, fit: DecodeFit, share: float) -> tuple[Evidence, ...]:
    at_zero = 1.0 / fit.per_token_s if fit.per_token_s > 0 else None
    return (
        Evidence(what="depth", value=observed.depth_tokens, unit="tok", origin="assumed"),
        Evidence(what="share of a token's time", value=share, origin="fit"),
        Evidence(what="decode speed at depth 0", value=at_zero, unit="tok/s", origin="fit"),
    )


def _by_table(observed: Observed) -> Finding | None:
    """Rows of one set-up at growing depth."""
    found, decode_s = deep_loss(observed.run.points), observed.decode_s
    if found is None or found[1] < DEEP_LOSS:
        return None
    deepest, loss = found
    return Finding(
        cause="decode.depth",
        phase="decode",
        certainty="measured",
        costs_s=decode_s.likely * (loss - 1.0) if decode_s is not None else None,
        evidence=(
            Evidence(what="depth", value=deepest, unit="tok", origin="server"),
            Evidence(what="decode is slower there by", value=loss, unit="times", origin="server"),
        ),
    )


def _by_course(observed: Observed) -> Finding | None:
    """One answer that slowed down while it grew: depth, unless the machine slowed down."""
    loss, decode_s = falls(observed.run.records), observed.decode_s
    if loss is None:
        return None
    return Finding(
        cause="decode.depth",
        phase="decode",
        certainty="inferred",
        costs_s=decode_s.likely * (1.0 - 2.0 / (1.0 + loss)) if decode_s is not None else None,
        evidence=(
            Evidence(
                what="end of an answer is slower than its start by",
                value=loss,
                unit="times",
                origin="server",
            ),
        ),
    )


def _without_flash_attention(observed: Observed) -> Finding | None:
    """No second depth shows the slope, and yet a deep context without flash attention has one."""
    fit, facts = observed.decode, observed.run.facts
    sloped = fit is not None and fit.per_depth_token_s is not None
    if facts.flash_attn is not False or sloped or observed.depth_tokens < DEEP_TOKENS:
        return None
    return Finding(
        cause="decode.depth",
        phase=observed.slow_phase,
        certainty="inferred",
        costs_s=None,
        evidence=(
            Evidence(what="depth", value=observed.depth_tokens, unit="tok", origin="assumed"),
            Evidence(what="flash attention", value=False, origin="server"),
        ),
    )
