"""Numbers that are not what they say: clocks that disagree, speeds of next to nothing."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.fits.phases import prompt_parts, server_decode
from twospeed.records.request_record import RequestRecord

ORDER = 0

FEWEST_TOKENS = 2
"""Fewer tokens in a phase are no speed: the time is that of starting."""


def find(observed: Observed) -> list[Finding]:
    """A disagreement of more than 10 % in either phase, or nothing to measure a speed by."""
    return _clocks(observed) or _next_to_nothing(observed)


def _clocks(observed: Observed) -> list[Finding]:
    clocks = observed.clocks
    if clocks is None:
        return []
    return [
        Finding(
            cause="measurement.artifact",
            phase=clocks.phase,
            certainty="measured",
            costs_s=None,
            evidence=(
                Evidence(
                    what=f"{clocks.phase} by our clock / by the server's",
                    value=clocks.ratio,
                    origin="client",
                ),
            ),
        )
    ]


def _next_to_nothing(observed: Observed) -> list[Finding]:
    """Nearly all of every prompt came from the cache, and one token was written."""
    records = [r for r in observed.run.records if r.step == "user" and r.error is None]
    if not records or not all(_is_nothing(record) for record in records):
        return []
    return [
        Finding(
            cause="measurement.artifact",
            phase="unknown",
            certainty="inferred",
            costs_s=None,
            evidence=(
                Evidence(
                    what="most tokens of a prompt that were read",
                    value=1,
                    unit="tok",
                    origin="server",
                ),
                Evidence(what="most tokens of an answer", value=1, unit="tok", origin="server"),
            ),
        )
    ]


def _is_nothing(record: RequestRecord) -> bool:
    """The first token of an answer comes out of prefill: a second one, untimed, is no decode."""
    parts, output = prompt_parts(record), record.counts.output_tokens
    if parts is None or output is None:
        return False
    steps = decode.steps if (decode := server_decode(record)) else 0
    return parts[0] < FEWEST_TOKENS and output <= FEWEST_TOKENS and steps < FEWEST_TOKENS
