"""Faults put into the real engine, diagnosed as a live server."""

from __future__ import annotations

from collections.abc import Callable

from faults import hogs, other_client
from scenario import Scenario, engine
from trials import Seen, diagnosed

SLOW = ("--prompt-tokens", "1000", "--output-tokens", "100", "--wait-goal", "0.5")


def embedded(*pairs: str, flags: tuple[str, ...] = SLOW) -> Callable[[int], Seen]:
    """Diagnose the embedded engine with these settings."""
    chosen = [word for pair in pairs for word in ("--engine", pair)]
    return lambda seed: diagnosed("--embedded", *chosen, *flags, seed=seed)


def hidden(*pairs: str, flags: tuple[str, ...] = SLOW) -> Callable[[int], Seen]:
    """The same engine as a stranger: neither its settings nor its command line are known."""

    def run(seed: int) -> Seen:
        with engine(*pairs) as running:
            return diagnosed(str(running.url), "--no-probe", *flags, seed=seed)

    return run


def with_hogs(number: int, *pairs: str) -> Callable[[int], Seen]:
    """Diagnose beside busy programs."""
    inner = embedded(*pairs)

    def run(seed: int) -> Seen:
        with hogs(number):
            return inner(seed)

    return run


def beside_a_client(*pairs: str, prompt_tokens: int, answer_tokens: int) -> Callable[[int], Seen]:
    """Diagnose an engine that someone else uses as well."""

    def run(seed: int) -> Seen:
        with (
            engine("threads=1", *pairs) as running,
            other_client(
                str(running.url), prompt_tokens=prompt_tokens, answer_tokens=answer_tokens
            ),
        ):
            flags = ("--prompt-tokens", "150", "--output-tokens", "30", "--wait-goal", "0.7")
            return diagnosed(str(running.url), "--no-probe", *flags, seed=seed)

    return run


def engine_scenarios() -> tuple[Scenario, ...]:
    """The rows whose server is a real llama.cpp."""
    two = "threads=2"
    deep = ("--prompt-tokens", "3000", "--output-tokens", "200", "--wait-goal", "30")
    batch = ("prefill.batch_too_small",)
    return (
        Scenario("prompt of 1,000 tokens, one thread", ("prompt.large",), embedded("threads=1")),
        Scenario("batch of 8", batch, embedded(two, "batch-size=8", "ubatch-size=8")),
        Scenario(
            "batch of 8, settings hidden", batch, hidden(two, "batch-size=8", "ubatch-size=8")
        ),
        Scenario("batch of 2", batch, embedded(two, "batch-size=2", "ubatch-size=2")),
        Scenario("reuse off", ("prompt_cache.disabled",), embedded(two, "cache-prompt=off")),
        Scenario("eight threads on two cores", ("host.threads",), embedded("threads=8")),
        Scenario("two busy programs", ("host.contention",), with_hogs(2, two)),
        Scenario(
            "depth of 3,000 tokens",
            ("decode.depth",),
            embedded("threads=1", flags=(*deep, "--stream-goal", "60")),
        ),
        Scenario(
            "slot held by another client",
            ("server.queue",),
            beside_a_client("parallel=1", prompt_tokens=60, answer_tokens=60),
        ),
        Scenario(
            "healthy: short prompt, two threads",
            (),
            embedded(two, flags=("--prompt-tokens", "200", "--output-tokens", "60")),
            seeds=20,
        ),
    )
