"""What a request will cost in seconds, judged by the requests before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from twospeed.fits.decode import DecodeFit, fit_decode
from twospeed.fits.observations import decode_points, prefill_points, request_speeds
from twospeed.fits.prefill import PrefillFit, fit_prefill
from twospeed.records.request_record import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rates:
    """Both curves where they can be fitted, and rough rates for as long as they cannot.

    A rough rate is the best that one request showed: the first ones are slowed by loading and by
    whatever else happens once, which is not what the next one will cost.
    """

    prefill: PrefillFit | None
    decode: DecodeFit | None
    rough_prefill_per_token_s: float | None
    rough_decode_per_token_s: float | None
    extra_s: float
    """Seconds of a request that belong to neither phase: network, tokenizer, connection."""

    def prefill_s(self, prompt_tokens: int) -> float:
        """Seconds for an unseen prompt; 0 as long as nothing is known."""
        if self.prefill is not None:
            return self.prefill.seconds(prompt_tokens).likely
        return prompt_tokens * (self.rough_prefill_per_token_s or 0.0)

    def per_output_token_s(self, depth_tokens: int) -> float | None:
        """Seconds for one answer token; None as long as nothing is known."""
        if self.decode is not None:
            return self.decode.per_token(depth_tokens).likely
        return self.rough_decode_per_token_s

    def cost_s(self, prompt_tokens: int, output_tokens: int) -> float:
        """Seconds for a whole request."""
        answer_s = output_tokens * (self.per_output_token_s(prompt_tokens) or 0.0)
        return self.extra_s + self.prefill_s(prompt_tokens) + answer_s


def rates_of(
    records: Sequence[RequestRecord], *, round_trip_s: float | None, ignore_timings: bool
) -> Rates:
    """The rates that the records so far show, warm-up included as long as nothing else is known."""
    shown = [
        (record, request_speeds(record, round_trip_s=round_trip_s, ignore_timings=ignore_timings))
        for record in records
        if record.error is None and record.step != "bare"
    ]
    decodes = [1 / one.decode_tps for _, one in shown if one.decode_tps]
    prefills = [
        1 / one.prefill_tps if one.prefill_tps else _whole_per_token_s(record)
        for record, one in shown
        if record.step != "reuse"
    ]
    extras = [
        one.total_s - (one.load_s or 0.0) - one.prefill_s - one.decode_s
        for record, one in shown
        if record.step != "warmup" and one.total_s and one.prefill_s and one.decode_s
    ]
    return Rates(
        prefill=fit_prefill(
            prefill_points(records, round_trip_s=round_trip_s, ignore_timings=ignore_timings)
        ),
        decode=fit_decode(decode_points(records, ignore_timings=ignore_timings)),
        rough_prefill_per_token_s=min((rate for rate in prefills if rate), default=None),
        rough_decode_per_token_s=min(decodes, default=None),
        extra_s=max(median(extras), 0.0) if extras else 0.0,
    )


def spent_s(record: RequestRecord) -> float:
    """Seconds that a request took as a whole, by our clock or else the server's, or 0."""
    total_s = record.server.total_s if record.server else None
    return record.client.end_s or total_s or 0.0


def _whole_per_token_s(record: RequestRecord) -> float | None:
    """All of a request's time for its prompt: too much, but an answer where no phase shows."""
    prompt = record.counts.prompt_tokens or (record.probe.prompt_tokens if record.probe else None)
    seconds = record.client.ttft_s or spent_s(record)
    return seconds / prompt if prompt and seconds else None
