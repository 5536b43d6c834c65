"""Faults of simulated machines, and of the way to them."""

from __future__ import annotations

import random
from collections.abc import Callable
from urllib.parse import urlsplit

from faults import Way
from scenario import Scenario, simulator
from trials import Seen, diagnosed


def simulated(*words: str, flags: tuple[str, ...] = ()) -> Callable[[int], Seen]:
    """Diagnose a simulated machine."""

    def run(seed: int) -> Seen:
        with simulator("--seed", str(seed), "--jitter", "0.03", *words) as url:
            return diagnosed(url, "--no-probe", *flags, seed=seed)

    return run


def partly_offloaded(seed: int) -> Seen:
    """An Ollama that tells how much of the model its card holds, at the speed that this allows."""
    draw = random.Random(seed)
    part = draw.uniform(0.3, 0.8)
    speeds = ("--prefill-tps", "500", "--decode-tps", f"{70 / (part + 11 * (1 - part)):.1f}")
    words = ("--speak", "ollama", "--gpu-part", f"{part:.2f}", "--jitter", "0.03")
    with simulator("--seed", str(seed), *speeds, *words) as url:
        shape = ("--prompt-tokens", "600", "--output-tokens", "60")
        return diagnosed(url, "--no-probe", *shape, seed=seed)


def drafts_rejected(seed: int) -> Seen:
    """A draft model whose tokens are thrown away, so that each token costs its time as well."""
    draw = random.Random(seed)
    words = (
        "--prefill-tps", f"{draw.uniform(1500, 4000):.0f}",
        "--decode-tps", f"{draw.uniform(9, 16):.1f}",
        "--draft-tokens", str(draw.randint(4, 12)),
        "--draft-accepted", f"{draw.uniform(0.02, 0.2):.2f}",
        "--speak", "llama-server",
        "--jitter", "0.03",
    )  # fmt: skip
    with simulator("--seed", str(seed), *words) as url:
        return diagnosed(url, "--no-probe", "--prompt-tokens", "600", seed=seed)


def on_the_way(
    *, delay_s: float = 0.0, batch_s: float = 0.0, flags: tuple[str, ...] = ()
) -> Callable[[int], Seen]:
    """Diagnose a fast simulated machine over a bad way."""

    def run(seed: int) -> Seen:
        with simulator(
            "--prefill-tps", "3000", "--decode-tps", "60", "--speak", "llama-server"
        ) as url:
            port = urlsplit(url).port or 0
            with Way(port, delay_s=delay_s, batch_s=batch_s) as way:
                return diagnosed(way.url, "--no-probe", *flags, seed=seed)

    return run


def simulated_scenarios() -> tuple[Scenario, ...]:
    """The rows whose server is the simulator."""
    return (
        Scenario(
            "reuse off, simulated",
            ("prompt_cache.disabled",),
            simulated("--prefill-tps", "300", "--decode-tps", "50", "--cache", "off"),
        ),
        Scenario(
            "evicted after each request, simulated",
            ("prompt_cache.evicted", "prompt_cache.disabled"),
            simulated(
                "--prefill-tps",
                "300",
                "--decode-tps",
                "50",
                "--cache",
                "evict",
                "--speak",
                "llama-server",
            ),
        ),
        Scenario(
            "load of 6 s, simulated",
            ("model.load",),
            simulated(
                "--prefill-tps", "2000", "--decode-tps", "50", "--load-s", "6", "--speak", "ollama"
            ),
        ),
        Scenario(
            "hidden load of 6 s, simulated",
            ("model.load",),
            simulated("--prefill-tps", "2000", "--decode-tps", "50", "--load-s", "6"),
        ),
        Scenario(
            "hidden reasoning, simulated",
            ("decode.output_long",),
            simulated(
                "--prefill-tps",
                "3000",
                "--decode-tps",
                "40",
                "--reasoning-tokens",
                "100",
                flags=("--output-tokens", "300", "--budget", "24"),
            ),
        ),
        Scenario(
            "deep context, simulated",
            ("decode.depth",),
            simulated("--prefill-tps", "4000", "--decode-tps", "40", "--decode-half-depth", "1000"),
        ),
        Scenario(
            "part of the model off the card, simulated",
            ("placement.partial_offload",),
            partly_offloaded,
        ),
        Scenario("drafts rejected, simulated", ("decode.draft_rejected",), drafts_rejected),
        Scenario(
            "half a second each way",
            ("network.latency",),
            on_the_way(delay_s=0.5, flags=("--wait-goal", "1")),
        ),
        Scenario("a proxy that buffers", ("network.buffered_stream",), on_the_way(batch_s=0.5)),
        Scenario(
            "healthy: fast machine, simulated",
            (),
            simulated("--prefill-tps", "2500", "--decode-tps", "45"),
            seeds=10,
        ),
        Scenario(
            "healthy: drafts accepted, simulated",
            (),
            simulated(
                "--prefill-tps",
                "2500",
                "--decode-tps",
                "45",
                "--draft-tokens",
                "3",
                "--speak",
                "llama-server",
            ),
            seeds=5,
        ),
        Scenario(
            "healthy: four tokens an event, simulated",
            (),
            simulated("--prefill-tps", "2500", "--decode-tps", "45", "--tokens-per-chunk", "4"),
            seeds=5,
        ),
    )
