"""Prompts of exactly the wanted length where the server can count, of the learned one elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twospeed.records.request_record import Change
from twospeed.runtimes.runtime import Answer, Ask, Runtime
from twospeed.sources.live.prompts import FIRST_TEMPLATE_TOKENS, Prompt, PromptWriter

AskServer = Callable[[Ask], Awaitable[Answer]]

TRIES = 4
CLOSE_ENOUGH_FRAC = 0.005
MOST_WORDS_PER_TOKEN = 5.0
"""A count that would need more is no count of this text: the prompt would grow without bound."""


class PromptSizer:
    """Writes prompts of a wanted length for one model on one server."""

    def __init__(self, writer: PromptWriter, runtime: Runtime, model: str | None) -> None:
        self._writer = writer
        self._runtime = runtime
        self._model = model
        self._text_tokens: dict[int, int] = {}
        self._template_tokens = FIRST_TEMPLATE_TOKENS
        self._server_counts = True

    async def prompt_of(self, tokens: int, ask: AskServer) -> Prompt:
        """Write a new prompt of so many tokens, chat template included.

        Args:
            tokens: wanted length.
            ask: puts a question to the server.
        """
        prompt = self._writer.write(tokens)
        text_tokens = max(1.0, tokens - self._template_tokens)
        for _ in range(TRIES):
            counted = await self._counted(prompt, ask)
            if counted is None:
                break
            if abs(counted - text_tokens) <= max(1.0, CLOSE_ENOUGH_FRAC * tokens):
                break
            words = prompt.words + round((text_tokens - counted) * prompt.words / counted)
            if words > MOST_WORDS_PER_TOKEN * tokens:
                break
            shorter_or_longer = self._writer.resized(prompt, words)
            if shorter_or_longer.words == prompt.words:
                break
            prompt = shorter_or_longer
        return prompt

    def changed(self, prompt: Prompt, answer: str, change: Change | None) -> Prompt:
        """An earlier prompt with a change (see `PromptWriter.changed`)."""
        return self._writer.changed(prompt, answer, change)

    def learn(self, prompt: Prompt, prompt_tokens: int) -> None:
        """Take in the server's count for a prompt that was sent."""
        if not prompt.opening:
            return
        self._writer.learn(prompt.words, prompt_tokens)
        text_tokens = self._text_tokens.get(prompt.seed)
        if text_tokens is not None:
            self._template_tokens = float(prompt_tokens - text_tokens)

    async def _counted(self, prompt: Prompt, ask: AskServer) -> int | None:
        """Tokens of the text by the server's own tokenizer, None where it does not count."""
        question = self._runtime.tokenize(self._model, prompt.text)
        if question is None or not self._server_counts:
            return None
        counted = self._runtime.token_count(await ask(question))
        if not counted:
            self._server_counts = False
            return None
        self._text_tokens[prompt.seed] = counted
        return counted
