"""The faults that are put into a real engine or a simulator, and the cause that must be named."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from faults import Way, hogs, other_client, turns
from trials import Seen, diagnosed, read_log

from twospeed.sources.engine.engine import Engine
from twospeed.sources.engine.model import fetch_model
from twospeed.sources.engine.settings import parse_settings, with_defaults

NO_FAULT = ("prompt.large", "decode.output_long", "decode.bandwidth_bound")
"""What may be said of a machine without a fault."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault.

    Attributes:
        name: what is done.
        causes: of which the first finding must be one; empty for a healthy control.
        run: does it and says what was seen.
        seeds: how often it is run.
    """

    name: str
    causes: tuple[str, ...]
    run: Callable[[int], Seen]
    seeds: int | None = None


@contextlib.contextmanager
def engine(*pairs: str) -> Iterator[Engine]:
    """A real llama.cpp of our own."""
    settings = with_defaults(parse_settings([*pairs]), fetch_model())
    with Engine(settings) as running:
        yield running.start()


@contextlib.contextmanager
def simulator(*words: str) -> Iterator[str]:
    """A paced server; yields its URL."""
    server = subprocess.Popen(
        [sys.executable, "-m", "twospeed", "simulate", "--port", "0", "--duration", "300", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = server.stdout.readline() if server.stdout else ""
        found = re.search(r"http://[\d.]+:\d+", line)
        if found is None:
            raise SystemExit(f"the simulator did not start: {line!r}")
        yield found[0]
    finally:
        server.kill()
        server.wait()


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


def logged(
    talk: Callable[[str, int], None], *pairs: str, stream_goal: str = "5"
) -> Callable[[int], Seen]:
    """Talk to a real engine, then read its log, without knowing anything else."""

    def run(seed: int) -> Seen:
        with engine("threads=1", *pairs) as running:
            talk(str(running.url), seed)
            text = running.log_path.read_text("utf-8", "replace") if running.log_path else ""
        return read_log(text, "--wait-goal", "0.5", "--stream-goal", stream_goal)

    return run


def simulated(*words: str, flags: tuple[str, ...] = ()) -> Callable[[int], Seen]:
    """Diagnose a simulated machine."""

    def run(seed: int) -> Seen:
        with simulator("--seed", str(seed), "--jitter", "0.03", *words) as url:
            return diagnosed(url, "--no-probe", *flags, seed=seed)

    return run


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


def new_head(url: str, seed: int) -> None:
    turns(url, seed, number=4, head=lambda turn: f"It is 12:0{turn}:{seed:02d}.", cache_prompt=True)


def reuse_off(url: str, seed: int) -> None:
    turns(url, seed, number=4, cache_prompt=False)


def two_conversations(url: str, seed: int) -> None:
    def other(turn: int) -> None:
        turns(url, seed + 300 + turn, number=1, tokens=100)

    turns(url, seed, number=4, between=other)


def one_conversation(url: str, seed: int) -> None:
    turns(url, seed, number=4, tokens=80, answer_tokens=40)


def hot_answers(url: str, seed: int) -> None:
    turns(url, seed, number=2, tokens=60, answer_tokens=80, temperature=1.5)


def beside_prompts(url: str, seed: int) -> None:
    with other_client(url, prompt_tokens=300, answer_tokens=2):
        turns(url, seed, number=2, tokens=60, answer_tokens=16, id_slot=0)


def all_scenarios(model: Path) -> tuple[Scenario, ...]:
    """Every scenario; the engine's own model is its own draft."""
    two = "threads=2"
    deep = ("--prompt-tokens", "3000", "--output-tokens", "200", "--wait-goal", "30")
    batch = ("prefill.batch_too_small",)
    wave = ("server.queue",)
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
            wave,
            beside_a_client("parallel=1", prompt_tokens=60, answer_tokens=60),
        ),
        Scenario(
            "another client's prompts in the batch",
            ("server.shared_batch",),
            logged(beside_prompts, "parallel=2"),
        ),
        Scenario(
            "log: head changed every turn",
            ("prompt_cache.prefix_changed",),
            logged(new_head, "cache-ram=0"),
        ),
        Scenario(
            "log: reuse off in the request",
            ("prompt_cache.disabled", "prompt_cache.prefix_changed"),
            logged(reuse_off, "cache-ram=0"),
        ),
        Scenario(
            "log: two conversations, one slot",
            ("prompt_cache.evicted",),
            logged(two_conversations, "cache-ram=0"),
        ),
        Scenario(
            "log: own draft at temperature 1.5",
            ("decode.draft_rejected",),
            logged(hot_answers, f"model-draft={model}", stream_goal="40"),
        ),
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
            "half a second each way",
            ("network.latency",),
            on_the_way(delay_s=0.5, flags=("--wait-goal", "1")),
        ),
        Scenario("a proxy that buffers", ("network.buffered_stream",), on_the_way(batch_s=0.5)),
        Scenario(
            "healthy: short prompt, two threads",
            (),
            embedded(two, flags=("--prompt-tokens", "200", "--output-tokens", "60")),
            seeds=20,
        ),
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
        Scenario("log: one conversation", (), logged(one_conversation), seeds=5),
    )
