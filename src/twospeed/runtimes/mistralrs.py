"""mistral.rs.

Usage carries `total_prompt_time_sec` (the execution of the prompt step, without waiting) and
`total_completion_time_sec` (from the end of that step on), both cut to milliseconds.

Source: EricLBuehler/mistral.rs mistralrs-core response.rs, sequence.rs (read, not run).
"""

from __future__ import annotations

from typing import ClassVar

from twospeed.records.request_record import ServerTimes, TokenCounts
from twospeed.runtimes.fields import duration_s, text
from twospeed.runtimes.phases import after_first, phase_times, uncached
from twospeed.runtimes.runtime import (
    Answers,
    Certainty,
    Runtime,
    served_models,
    server_header,
)
from twospeed.wire.reading import StreamReading


class MistralRs(Runtime):
    """mistral.rs server."""

    id: ClassVar[str] = "mistralrs"
    name: ClassVar[str] = "mistral.rs"
    ports: ClassVar[tuple[int, ...]] = (1234,)
    zero_cached_is_known: ClassVar[bool] = False

    def recognise(self, answers: Answers) -> Certainty:
        """By the alias "default" of a local model, and no name of another web server."""
        entries = served_models(answers)
        alias = any(
            text(entry, "id") == "default" and text(entry, "owned_by") == "local"
            for entry in entries
        )
        return 2 if alias and not server_header(answers) else 0

    def server_times(self, reading: StreamReading, counts: TokenCounts) -> ServerTimes | None:
        """By the times in usage, in seconds."""
        return phase_times(
            "usage",
            prefill_s=duration_s(reading.usage, "total_prompt_time_sec"),
            prefill_tokens=uncached(counts),
            decode_s=duration_s(reading.usage, "total_completion_time_sec"),
            decode_steps=after_first(counts.output_tokens),
            total_s=duration_s(reading.usage, "total_time_sec"),
        )
