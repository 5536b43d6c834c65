"""A conversation before the prompt: what was said lies in the cache and is looked back at."""

from __future__ import annotations

from dataclasses import replace

from twospeed.cures.knob import Knob, whole
from twospeed.cures.pace import Change, Pace, constant


def depth_of(tokens: int) -> Change:
    """So many tokens in the cache before the part of the prompt that is processed now."""

    def change(pace: Pace) -> Pace:
        new = pace.prompt_tokens - pace.cached_tokens
        return replace(pace, prompt_tokens=new + tokens, cached_tokens=constant(tokens))

    return change


KNOB = Knob(
    key="depth",
    form="tokens, such as 2000",
    read=whole,
    change=lambda _, tokens: depth_of(tokens),
    needs="nothing more",
    rank=2,
)
