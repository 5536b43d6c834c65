"""The prompt cache: which tokens each slot holds, and what a new prompt can reuse of them."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from twospeed.simulator.tokens import TEMPLATE_HEAD_TOKENS

CacheMode = Literal["on", "off", "evict"]

KEPT_PROMPTS = 32
"""Conversations that are remembered besides those in the slots."""
SIMILAR_FRAC = 0.1
"""Share of a prompt that makes a slot its own, as llama-server's `--slot-prompt-similarity`."""
_BLOCK = 256


def _nothing() -> array[int]:
    return array("I")


@dataclass(frozen=True, slots=True)
class Content:
    """Tokens whose state is kept."""

    tokens: array[int] = field(default_factory=_nothing)
    salt: str = ""
    """Only prompts with the same salt may reuse it."""


@dataclass(slots=True)
class Slot:
    """A place for one request at a time."""

    number: int
    content: Content = field(default_factory=Content)
    busy: bool = False
    free_ns: int = 0
    """Since when it has been free."""


def common_prefix(one: array[int], other: array[int]) -> int:
    """How many tokens both begin with."""
    shorter = min(len(one), len(other))
    start = 0
    while start < shorter and one[start : start + _BLOCK] == other[start : start + _BLOCK]:
        start += _BLOCK
    while start < shorter and one[start] == other[start]:
        start += 1
    return min(start, shorter)


class PromptCache:
    """Slots, what they hold, and prompts that were moved out of them.

    Args:
        slots: how many.
        mode: `on` keeps conversations, also those that lost their slot; `off` reuses nothing;
            `evict` gives a slot to another conversation as soon as its request has ended.
        block_tokens: reuse comes in whole blocks of so many tokens.
    """

    def __init__(self, slots: int, mode: CacheMode = "on", block_tokens: int = 1) -> None:
        self.slots = [Slot(number) for number in range(slots)]
        self.mode = mode
        self.block_tokens = block_tokens
        self._moved_out: deque[Content] = deque(maxlen=KEPT_PROMPTS)

    def take(self, prompt: array[int], salt: str = "", *, reuse: bool = True) -> tuple[Slot, int]:
        """Give a prompt the free slot that suits it best.

        Args:
            prompt: its tokens.
            salt: separates it from all prompts with another salt.
            reuse: whether it may reuse anything.

        Returns:
            The slot, busy from now on, and the prompt's cached tokens; one token at least is
            always left to process, since the answer needs its result.

        Raises:
            ValueError: no slot is free.
        """
        free = [slot for slot in self.slots if not slot.busy]
        # A slot that shares little is no better than another one: the longest unused is taken.
        worthwhile = SIMILAR_FRAC * len(prompt)
        slot, held = max(
            ((slot, _overlap(slot.content, prompt, salt)) for slot in free),
            key=lambda found: (found[1] if found[1] > worthwhile else 0, -found[0].free_ns),
        )
        moved_in = max((_overlap(kept, prompt, salt) for kept in self._moved_out), default=0)
        self._move_out(slot.content, kept_tokens=held)
        slot.content = Content(prompt, salt)
        slot.busy = True
        if self.mode == "off" or not reuse:
            return slot, 0
        cached = min(max(held, moved_in), max(len(prompt) - 1, 0))
        return slot, cached - cached % self.block_tokens

    def give_back(self, slot: Slot, tokens: array[int], at_ns: int) -> None:
        """Free a slot; `tokens` is what it holds now, prompt and answer."""
        if self.mode == "evict":
            tokens = tokens[:TEMPLATE_HEAD_TOKENS]
        slot.content = Content(tokens, slot.content.salt)
        slot.busy = False
        slot.free_ns = at_ns

    def clear(self) -> None:
        """Forget everything, as when the model is loaded again."""
        self._moved_out.clear()
        for slot in self.slots:
            slot.content = Content(salt=slot.content.salt)

    def _move_out(self, content: Content, kept_tokens: int) -> None:
        """Remember a conversation that another one drives out of its slot."""
        if self.mode == "on" and len(content.tokens) > kept_tokens:
            self._moved_out.append(content)


def _overlap(content: Content, prompt: array[int], salt: str) -> int:
    return common_prefix(content.tokens, prompt) if content.salt == salt else 0
