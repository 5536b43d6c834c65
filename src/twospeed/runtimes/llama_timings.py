"""The `timings` object of llama-server, which other runtimes copy.

`prompt_ms` covers the `prompt_n` tokens that were not cached and ends with the first token;
`predicted_ms` runs from the first token to the last, so it covers `predicted_n - 1` steps. Old
builds divide it by `predicted_n` when they print a speed, but their clock starts at the first
token as well; only counts and times are read here, so the age of the build does not matter.

Source: llama.cpp tools/server/server-common.h ("the first token is free") and, for old builds,
examples/server/server.cpp (`t_start_generation` is set when `n_decoded == 1`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from twospeed.records.request_record import ServerSigns, ServerTimes, TokenCounts
from twospeed.runtimes.fields import counted_tokens, duration_s
from twospeed.runtimes.phases import after_first, phase_times
from twospeed.runtimes.usage import part_of
from twospeed.wire.reading import StreamReading


def llama_times(timings: Mapping[str, Any] | None) -> ServerTimes | None:
    """Prefill and decode time by `timings`; a phase of 0 ms was not measured and is unknown."""
    return phase_times(
        "timings",
        prefill_s=duration_s(timings, "prompt_ms", per_second=1e3),
        prefill_tokens=counted_tokens(timings, "prompt_n"),
        decode_s=duration_s(timings, "predicted_ms", per_second=1e3),
        decode_steps=after_first(counted_tokens(timings, "predicted_n")),
    )


def completed_by(counts: TokenCounts, timings: Mapping[str, Any] | None) -> TokenCounts:
    """`counts` with the gaps that `timings` can fill (a stream without usage still has them).

    The whole prompt is `cache_n + prompt_n`; builds without `cache_n` tell only the part that
    was processed, which is no prompt length. Where usage contradicts the sum, the sum is taken:
    `prompt_ms` belongs to it.
    """
    cached, processed = counted_tokens(timings, "cache_n"), counted_tokens(timings, "prompt_n")
    prompt, output = counts.prompt_tokens, counts.output_tokens
    told = cached + processed if cached is not None and processed is not None else None
    if told and told != prompt:
        prompt = told
    elif counts.cached_prompt_tokens is not None:
        cached = counts.cached_prompt_tokens
    return replace(
        counts,
        prompt_tokens=prompt,
        cached_prompt_tokens=part_of(cached, prompt),
        output_tokens=counted_tokens(timings, "predicted_n") if output is None else output,
    )


def llama_signs(reading: StreamReading) -> ServerSigns | None:
    """Steps of prefill and drafted tokens; None where the response shows neither."""
    signs = ServerSigns(
        prefill_step_tokens=largest_step([report.processed for report in reading.progress]),
        drafted_tokens=counted_tokens(reading.timings, "draft_n"),
        accepted_tokens=counted_tokens(reading.timings, "draft_n_accepted"),
    )
    return None if signs == ServerSigns() else signs


def largest_step(done: Sequence[int]) -> int | None:
    """Tokens of the largest step of prefill; None for one alone, which may be the whole prompt.

    llama-server ends steps early where it keeps a checkpoint of a state that cannot be cut back.

    Args:
        done: prompt tokens that were done at each report of progress.
    """
    if len(done) < 3:
        return None
    steps = [after - before for before, after in pairwise(done) if after > before]
    return max(steps) if len(steps) >= 2 else None
