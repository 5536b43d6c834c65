"""Requests as a load generator saw them: arrivals on its own clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from twospeed.records.request_record import (
    ClientTimes,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.runtimes.fields import LONGEST_S, counted_tokens, number
from twospeed.runtimes.usage import part_of

TOGETHER_S = 2e-4
"""Tokens closer than this came in one read: none is decoded so fast."""
MOST_ARRIVALS = 2**17


def client_request(
    *,
    prompt_tokens: object = None,
    cached_prompt_tokens: object = None,
    output_tokens: object = None,
    ttft_s: object = None,
    gaps_s: object = None,
    end_s: object = None,
    last_s: object = None,
    connect_s: float | None = None,
    server: ServerTimes | None = None,
    other_requests: int | None = None,
    line: int | None = None,
) -> RequestRecord | None:
    """The record of a request that was seen from outside; None when it tells no time.

    Args:
        prompt_tokens: whole prompt, as any value found in a file.
        cached_prompt_tokens: part of it that was reused.
        output_tokens: generated tokens.
        ttft_s: first text after the request was sent.
        gaps_s: list of seconds between texts; anything else is unknown.
        end_s: end of the response after the request was sent.
        last_s: last text, for a tool that keeps no gaps.
        connect_s: opening the connection.
        server: what the server said, where the tool kept it.
        other_requests: most others at the same time.
        line: first line in the text.
    """
    prompt, output = _tokens(prompt_tokens), _tokens(output_tokens)
    ttft, end = _seconds(ttft_s), _seconds(end_s)
    if ttft is None and end is None and server is None:
        return None
    arrivals = _arrivals(ttft, _gaps(gaps_s, ttft, _seconds(last_s)), output)
    return RequestRecord(
        number=0,
        counts=TokenCounts(
            prompt_tokens=prompt,
            cached_prompt_tokens=part_of(_tokens(cached_prompt_tokens), prompt),
            output_tokens=output,
        ),
        client=ClientTimes(
            connect_s=connect_s,
            ttft_s=ttft,
            ttft_is_upper_bound=True,  # it holds waiting and network: no prefill time
            last_text_s=arrivals[-1].at_s if arrivals else None,
            end_s=end,
        ),
        server=server,
        arrivals=arrivals,
        other_requests=other_requests,
        line=line,
    )


def most_others(spans: Sequence[tuple[float, float]]) -> list[int]:
    """For each (start, end) how many others ran at its start or at its end, the larger one."""
    starts, ends = sorted(start for start, _ in spans), sorted(end for _, end in spans)
    return [
        max(
            bisect_right(starts, start) - bisect_right(ends, start),
            bisect_left(starts, end) - bisect_left(ends, end),
        )
        - 1
        for start, end in spans
    ]


def _tokens(value: object) -> int | None:
    return counted_tokens({"": value}, "")


def _seconds(value: object) -> float | None:
    found = number({"": value}, "")
    return found if found is not None and 0 < found <= LONGEST_S else None


def _gaps(gaps: object, ttft: float | None, last: float | None) -> list[float]:
    """Seconds between texts; one gap to the last text where only that is known."""
    if isinstance(gaps, list) and len(gaps) < MOST_ARRIVALS:
        found = [number({"": gap}, "") for gap in gaps]
        kept = [gap for gap in found if gap is not None]
        if len(kept) == len(found) and sum(kept) <= LONGEST_S:
            return kept
        return []
    return [last - ttft] if ttft is not None and last is not None and last > ttft else []


def _arrivals(ttft: float | None, gaps: list[float], output: int | None) -> tuple[TextArrival, ...]:
    """One event per text; each ends one token more where there are as many as tokens."""
    if ttft is None or not gaps:
        return ()
    each = output == len(gaps) + 1
    ends = len(gaps) == 1 and output is not None
    return tuple(
        TextArrival(
            at_s=at,
            kind="answer",
            chars=1,
            coalesced=index > 0 and gaps[index - 1] < TOGETHER_S,
            output_tokens=index + 1 if each else (1, output)[index] if ends else None,
        )
        for index, at in enumerate(accumulate(gaps, initial=ttft))
    )
