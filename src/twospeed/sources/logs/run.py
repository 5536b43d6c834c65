"""A run made of what texts told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from twospeed import __version__
from twospeed.records.run import CHAT_TURN, Blind, Goals, Run, Source
from twospeed.sources.logs.content import Content

_ASK = {
    "ollama": 'curl -s URL/api/chat -d \'{"model": "…", "messages": […]}\' (its answer tells both)',
    "llama-server": "the lines with `eval time`, or the `timings` object of an answer",
    "vllm": "vllm serve --enable-per-request-metrics, or `twospeed diagnose URL`",
}
_ASK_ANY = "twospeed diagnose URL, or a log that tells prompt and answer apart"


def run_of(content: Content, where: Sequence[str], *, goals: Goals, dropped: int = 0) -> Run:
    """The run that the findings read, its workload still the default one.

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
        workload=CHAT_TURN,
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
    if content.too_large:
        yield Blind(
            what="a document of JSON of more than 8 MiB: only lines of logs were looked for",
            needs="a part of it, or the summary that the same tool writes",
        )
    if dropped:
        yield Blind(
            what=f"the first {dropped:,} requests: counted and not kept",
            needs="--since, or a shorter part of the log",
        )
