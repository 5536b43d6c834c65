"""A run made of what texts told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from statistics import median

from msgspec.structs import replace

from twospeed import __version__
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Blind, Goals, Run, Source, Workload
from twospeed.sources.logs.content import Content

CHAT_TURN = Workload(prompt_tokens=2000, output_tokens=300)
_ASK = {
    "ollama": 'curl -s URL/api/chat -d \'{"model": "…", "messages": […]}\' (its answer tells both)',
    "llama-server": "the lines with `eval time`, or the `timings` object of an answer",
    "vllm": "vllm serve --enable-per-request-metrics, or `twospeed diagnose URL`",
}
_ASK_ANY = "twospeed diagnose URL, or a log that tells prompt and answer apart"


def run_of(content: Content, where: Sequence[str], *, goals: Goals, dropped: int = 0) -> Run:
    """The run that the findings read.

    Args:
        content: what all texts told together.
        where: names of the texts.
        goals: what counts as slow.
        dropped: requests that were not kept.
    """
    records = tuple(replace(one, number=n) for n, one in enumerate(content.records, start=1))
    return Run(
        source=Source(
            kind="log",
            where=", ".join(where),
            runtime=content.runtime,
            runtime_version=content.runtime_version,
            model=content.model,
        ),
        workload=typical(records) or CHAT_TURN,
        goals=goals,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        twospeed_version=__version__,
        facts=content.facts,
        records=records,
        machine=content.machine,
        points=tuple(content.points),
        summary=content.summary,
        unknown=tuple(_blinds(content, dropped)),
    )


def typical(records: Sequence[RequestRecord]) -> Workload | None:
    """The median request; None where no length is told."""
    prompts = [tokens for tokens in map(_prompt_tokens, records) if tokens]
    if not prompts:
        return None
    cached = [one.counts.cached_prompt_tokens for one in records]
    known = [tokens for tokens in cached if tokens is not None]
    outputs = [one.counts.output_tokens for one in records if one.counts.output_tokens]
    prompt = round(median(prompts))
    return Workload(
        prompt_tokens=prompt,
        cached_prompt_tokens=min(round(median(known)), prompt) if known else 0,
        output_tokens=round(median(outputs)) if outputs else CHAT_TURN.output_tokens,
        origin="log",
    )


def _prompt_tokens(record: RequestRecord) -> int | None:
    covered = record.server.prefill_tokens if record.server else None
    return record.counts.prompt_tokens or covered


def _blinds(content: Content, dropped: int) -> Iterable[Blind]:
    if content.end_to_end:
        yield Blind(
            what=f"the phases of {content.end_to_end:,} requests: only their whole time is told",
            needs=_ASK.get(content.runtime or "", _ASK_ANY),
        )
    if content.unread:
        lines = "1 line looks" if content.unread == 1 else f"{content.unread:,} lines look"
        yield Blind(
            what=f"{lines} like timings of a program or version that is not known here",
            needs="a newer twospeed, or a report with those lines",
        )
    if dropped:
        yield Blind(
            what=f"the first {dropped:,} requests: counted and not kept",
            needs="--since, or a shorter part of the log",
        )
