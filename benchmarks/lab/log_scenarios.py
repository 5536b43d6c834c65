"""Faults put into the real engine; only its log at the usual verbosity is read afterwards."""

from __future__ import annotations

from collections.abc import Callable

from faults import other_client, turns
from scenario import Scenario, engine
from trials import Seen, read_log

from twospeed.sources.engine.model import fetch_model


def logged(
    talk: Callable[[str, int], None],
    *pairs: str,
    stream_goal: str = "5",
) -> Callable[[int], Seen]:
    """Talk to a real engine, then read its log, without knowing anything else."""

    def run(seed: int) -> Seen:
        with engine("threads=1", *pairs) as running:
            talk(str(running.url), seed)
            text = running.log_path.read_text("utf-8", "replace") if running.log_path else ""
        return read_log(text, "--wait-goal", "0.5", "--stream-goal", stream_goal)

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
    whole = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0}  # of the vocabulary
    turns(url, seed, number=2, tokens=60, answer_tokens=80, **whole)


def over_the_context(url: str, seed: int) -> None:
    """Prompt and answer are longer than the context, which shifts; then the same prompt again."""
    for _ in range(4):
        turns(url, seed, number=1, tokens=340, answer_tokens=220)


def beside_prompts(url: str, seed: int) -> None:
    with other_client(url, prompt_tokens=300, answer_tokens=2):
        turns(url, seed, number=2, tokens=60, answer_tokens=16, id_slot=0)


def log_scenarios() -> tuple[Scenario, ...]:
    """The rows that see nothing but a log; the engine's own model is its own draft."""
    model = fetch_model()
    return (
        Scenario(
            "log: longer than the context",
            ("prompt_cache.context_overflow",),
            logged(over_the_context, "ctx-size=512", "context-shift=on"),
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
        Scenario("log: one conversation", (), logged(one_conversation), seeds=5),
    )
