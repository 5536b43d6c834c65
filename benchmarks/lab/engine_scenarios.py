"""Faults put into the real engine, diagnosed as a live server."""

from __future__ import annotations

from collections.abc import Callable

from faults import hogs, nginx, other_client, squeezed
from scenario import Scenario, engine, simulator
from sliding_window import sliding_window_model
from trials import Seen, diagnosed

SLOW = ("--prompt-tokens", "1000", "--output-tokens", "100", "--wait-goal", "0.5")
SHORT = ("--prompt-tokens", "200", "--output-tokens", "60")
ALL_EDITS = ("--budget", "30")
"""Enough for every case of the reuse experiment."""
SLOWER_THAN_USUAL = ("prefill.compute_low", "decode.below_limit", "prompt.large")
"""What is left to say where only the process would tell why."""


def live(*pairs: str, flags: tuple[str, ...] = SLOW) -> Callable[[int], Seen]:
    """Diagnose an engine that is already running, as somebody else's server."""

    def run(seed: int) -> Seen:
        with engine(*pairs) as running:
            return diagnosed(str(running.url), *flags, seed=seed)

    return run


def embedded(*pairs: str, flags: tuple[str, ...] = SLOW) -> Callable[[int], Seen]:
    """Diagnose the embedded engine with these settings."""
    chosen = [word for pair in pairs for word in ("--engine", pair)]
    return lambda seed: diagnosed("--embedded", *chosen, *flags, seed=seed)


def with_hogs(number: int, *pairs: str) -> Callable[[int], Seen]:
    """Diagnose beside busy programs."""
    inner = live(*pairs)

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


def short_of_memory(seed: int) -> Seen:
    """Diagnose an engine that must read its weights again and again."""
    with squeezed("threads=1") as running:
        flags = ("--prompt-tokens", "100", "--output-tokens", "50")
        return diagnosed(str(running.url), *flags, seed=seed)


def sliding_window(seed: int) -> Seen:
    """Diagnose a model whose state cannot be cut back."""
    with engine("threads=2", model=sliding_window_model()) as running:
        return diagnosed(str(running.url), *SLOW, *ALL_EDITS, seed=seed)


def behind_nginx(seed: int) -> Seen:
    """Diagnose a fast machine behind a proxy that buffers."""
    speeds = ("--prefill-tps", "3000", "--decode-tps", "60", "--speak", "llama-server")
    with simulator("--seed", str(seed), *speeds) as server, nginx(server) as url:
        compressed = ("--header", "Accept-Encoding: gzip")  # as every browser asks
        return diagnosed(url, "--no-probe", *compressed, seed=seed)


def engine_scenarios() -> tuple[Scenario, ...]:
    """The rows whose server is a real llama.cpp (or whose proxy is a real nginx)."""
    two = "threads=2"
    deep = ("--prompt-tokens", "3000", "--output-tokens", "200", "--wait-goal", "120")
    large, off, evicted = ("prompt.large",), ("prompt_cache.disabled",), ("prompt_cache.evicted",)
    batch, rewind = ("prefill.batch_too_small",), ("prompt_cache.cannot_rewind",)
    queue, depth, busy = ("server.queue",), ("decode.depth",), ("host.contention",)
    return (
        Scenario("prompt of 1,000 tokens, one thread", large, embedded("threads=1"), hidden=large),
        Scenario("batch of 8", batch, live(two, "batch-size=8", "ubatch-size=8"), hidden=batch),
        Scenario("batch of 2", batch, live(two, "batch-size=2", "ubatch-size=2"), hidden=batch),
        Scenario("reuse off", off, live(two, "cache-prompt=off"), hidden=off),
        Scenario("sliding window, an edit in the middle", rewind, sliding_window, hidden=rewind),
        Scenario(
            "another conversation in the only slot",
            evicted,
            live(two, "parallel=1", "cache-ram=0", flags=(*SLOW, *ALL_EDITS)),
            hidden=evicted,
        ),
        Scenario(
            "eight threads on two cores",
            ("host.threads",),
            live("threads=8"),
            hidden=SLOWER_THAN_USUAL,
        ),
        Scenario(
            "5,000 probabilities with each token",
            ("decode.sampling",),
            live(two, flags=(*SHORT, "--stream-goal", "150", "--request", "n_probs=5000")),
            hidden=("decode.sampling",),
        ),
        Scenario("two busy programs", busy, with_hogs(2, two), hidden=busy),
        Scenario(
            "weights squeezed out of memory",
            ("placement.memory_spill",),
            short_of_memory,
            hidden=SLOWER_THAN_USUAL,
        ),
        Scenario(
            "depth of 3,000 tokens",
            depth,
            embedded("threads=1", flags=(*deep, "--stream-goal", "60")),
            hidden=depth,
        ),
        Scenario(
            "slot held by another client",
            queue,
            beside_a_client("parallel=1", prompt_tokens=60, answer_tokens=60),
            hidden=queue,
        ),
        Scenario("a real nginx that buffers", ("network.buffered_stream",), behind_nginx),
        Scenario("healthy: short prompt, two threads", (), embedded(two, flags=SHORT), seeds=20),
    )
