"""How llama-server tells an answer: three routes, and the `timings` that all of them carry."""

from __future__ import annotations

from typing import Any

from twospeed.simulator.dialect import Piece, identifier
from twospeed.simulator.dialects.openai import OpenAiVoice
from twospeed.simulator.exchange import as_json
from twospeed.simulator.job import Job
from twospeed.simulator.llama_facts import FINGERPRINT, SAMPLING
from twospeed.simulator.sse import DONE, event
from twospeed.simulator.tokens import ids_of


class LlamaVoice(OpenAiVoice):
    """`/v1/chat/completions` and `/v1/completions`."""

    def made_id(self) -> str:
        """32 characters, chat or not."""
        return "chatcmpl-" + identifier(self.job.number, 32)

    def chunk(self, choices: list[Any], **more: object) -> dict[str, Any]:
        """Key order of the real server, which differs between chat and text."""
        job, model = self.job, self.facts.model
        start = {"choices": choices, "created": job.made_s}
        if self.is_chat:
            middle = {"id": self.id, "model": model, "system_fingerprint": FINGERPRINT}
            return start | middle | {"object": "chat.completion.chunk"} | more
        middle = {"model": model, "system_fingerprint": FINGERPRINT, "object": "text_completion"}
        usage = {"usage": more.pop("usage")} if "usage" in more else {}
        return start | middle | usage | {"id": self.id} | more

    def choice(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """The finish reason comes first in a chat."""
        if self.is_chat:
            return {"finish_reason": finish, "index": 0, "delta": delta}
        text = delta.get("content", "")
        return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}

    def usage(self) -> dict[str, Any]:
        """Cached tokens are always told."""
        job = self.job
        return {
            "completion_tokens": job.output_tokens,
            "prompt_tokens": job.prompt_tokens,
            "total_tokens": job.prompt_tokens + job.output_tokens,
            "prompt_tokens_details": {"cached_tokens": job.cached_tokens},
        }

    def prefill_started(self) -> list[bytes]:
        """A progress chunk at once, when progress is wanted."""
        return self._progress_event(self.job.cached_tokens, 0) if self.shows_progress else []

    def progress(self, processed_tokens: int, at_ns: int) -> list[bytes]:
        """One chunk per batch, when progress is wanted."""
        if not self.shows_progress:
            return []
        return self._progress_event(processed_tokens, at_ns - self.job.started_ns)

    @property
    def shows_progress(self) -> bool:
        """Whether the client asked for progress."""
        return self.job.asked.body.get("return_progress") is True

    def text(self, piece: Piece) -> list[bytes]:
        """The role chunk and the first token are one HTTP chunk."""
        told = self.told(piece)
        return [b"".join(self.role()) + told] if piece.first and self.is_chat else [told]

    def told(self, piece: Piece) -> bytes:
        """The event of some tokens, with times in it when those are wanted."""
        if self.job.asked.body.get("timings_per_token") is not True or not self.counts:
            return self._text_event(reasoning=piece.reasoning).filled(piece.text)
        field = self.reasoning_field if piece.reasoning else "content"
        times = timings(self.job, piece.done_tokens, piece.at_ns)
        return event(self.chunk([self.choice({field: piece.text})], timings=times))

    def finish(self) -> list[bytes]:
        """Usage has a chunk of its own in a chat and sits on the last one in text."""
        job = self.job
        last = self.choice({}, job.finish_reason)
        if not self.counts:
            return [event(self.chunk([last])), DONE]
        times = {"timings": timings(job, job.output_tokens)}
        if not job.asked.include_usage:
            return [event(self.chunk([last], **times)), DONE]
        usage = {"usage": self.usage()}
        if not self.is_chat:
            return [event(self.chunk([last], **usage, **times)), DONE]
        return [event(self.chunk([last])) + event(self.chunk([], **usage, **times)), DONE]

    def whole(self) -> bytes:
        """The answer without a stream."""
        job = self.job
        text = "".join(job.answer)
        thought = {self.reasoning_field: "".join(job.reasoning)} if job.reasoning else {}
        message = {"role": "assistant", **thought, "content": text}
        choice = {"finish_reason": job.finish_reason, "index": 0, "message": message}
        if not self.is_chat:
            choice = self.choice({"content": text}, job.finish_reason)
        counted = {"usage": self.usage()} if self.counts else {}
        timed = {"timings": timings(job, job.output_tokens)} if self.counts else {}
        return as_json(
            {
                "choices": [choice],
                "created": job.made_s,
                "model": self.facts.model,
                "system_fingerprint": FINGERPRINT,
                "object": "chat.completion" if self.is_chat else "text_completion",
                **counted,
                "id": self.id,
                **timed,
            }
        )

    def role(self) -> list[bytes]:
        """The content of the role chunk is null."""
        return [event(self.chunk([self.choice({"role": "assistant", "content": None})]))]

    def empty(self, processed_tokens: int, at_ns: int) -> list[bytes]:
        """A progress chunk."""
        return self._progress_event(processed_tokens, at_ns - self.job.started_ns)

    def failure(self, message: str) -> list[bytes]:
        """An error object, and no end mark."""
        error = {"code": 500, "message": message, "type": "server_error"}
        return [event({"error": error})]

    def ping(self) -> list[bytes]:
        """A bare comment."""
        return [b":\n\n"]

    def _progress_event(self, processed_tokens: int, spent_ns: int) -> list[bytes]:
        progress = {
            "total": self.job.prompt_tokens,
            "cache": self.job.cached_tokens,
            "processed": processed_tokens,
            "time_ms": spent_ns // 1_000_000,
        }
        choice = self.choice({"role": "assistant", "content": None})
        return [event(self.chunk([choice], prompt_progress=progress))]


class NativeVoice(LlamaVoice):
    """`/completion`: events of its own shape, and no end mark."""

    def told(self, piece: Piece) -> bytes:
        """Text, token ids and counts."""
        ids = ids_of(piece.tokens).tolist()
        return event(self._state(piece.text, ids, piece.done_tokens, piece.at_ns))

    def text(self, piece: Piece) -> list[bytes]:
        """There are no roles here."""
        return [self.told(piece)]

    def role(self) -> list[bytes]:
        """The nearest thing: an event without text."""
        return [event(self._state("", [], 0, 0))]

    def finish(self) -> list[bytes]:
        """Everything that is known about the request."""
        return [event(self._final("", []))]

    def whole(self) -> bytes:
        """The same with the text."""
        return as_json(self._final("".join(self.job.answer), ids_of(self.job.answer).tolist()))

    def _state(self, text: str, ids: list[int], done_tokens: int, at_ns: int) -> dict[str, Any]:
        state: dict[str, Any] = {
            "index": 0,
            "content": text,
            "tokens": ids,
            "stop": False,
            "id_slot": -1,
            "tokens_predicted": done_tokens,
            "tokens_evaluated": self.job.prompt_tokens,
        }
        if self.job.asked.body.get("timings_per_token") is True:
            state["timings"] = timings(self.job, done_tokens, at_ns)
        return state

    def _progress_event(self, processed_tokens: int, spent_ns: int) -> list[bytes]:
        progress = {
            "total": self.job.prompt_tokens,
            "cache": self.job.cached_tokens,
            "processed": processed_tokens,
            "time_ms": spent_ns // 1_000_000,
        }
        return [event(self._state("", [0], 0, 0) | {"prompt_progress": progress})]

    def _final(self, text: str, ids: list[int]) -> dict[str, Any]:
        job, asked = self.job, self.job.asked
        settings = {**SAMPLING, "n_predict": asked.output_tokens, "stream": asked.stream}
        counts = {
            "tokens_predicted": job.output_tokens,
            "tokens_evaluated": job.prompt_tokens,
        }
        final = {
            "index": 0,
            "content": text,
            "tokens": ids,
            "id_slot": job.slot.number if job.slot else -1,
            "stop": True,
            "model": self.facts.model,
            **(counts if self.counts else {}),
            "generation_settings": settings,
            "prompt": asked.body.get("prompt", ""),
            "has_new_line": False,
            "truncated": False,
            "stop_type": "limit" if asked.limited else "eos",
            "stopping_word": "",
        }
        if self.counts:
            final["tokens_cached"] = job.prompt_tokens + job.output_tokens - 1
            final["timings"] = timings(job, job.output_tokens)
        return final


def timings(job: Job, done_tokens: int, at_ns: int | None = None) -> dict[str, Any]:
    """The `timings` object: uncached prompt tokens, and decode from the first token on."""
    last_ns = job.latest_token_ns if at_ns is None else at_ns
    steps = done_tokens - 1
    if done_tokens == 0:
        return dict.fromkeys(_TIMINGS, 0)
    # The real server never tells a time of 0 for a token that exists.
    decode_ms = max(round((last_ns - job.first_token_ns) / 1e6, 3), 0.001)
    prompt_ms = round(job.prefill_ns / 1e6, 3)
    found: dict[str, Any] = {
        "cache_n": job.cached_tokens,
        "prompt_n": job.fresh_tokens,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / job.fresh_tokens if job.fresh_tokens else 0.0,
        "prompt_per_second": 1e3 * job.fresh_tokens / prompt_ms if prompt_ms else 0.0,
        "predicted_n": done_tokens,
        "predicted_ms": decode_ms,
        "predicted_per_token_ms": decode_ms / steps if steps else 0.0,
        "predicted_per_second": 1e3 * steps / decode_ms,
    }
    if job.drafted_tokens:
        found["draft_n"] = job.drafted_tokens
        found["draft_n_accepted"] = job.accepted_tokens
    return found


_TIMINGS = (
    "cache_n",
    "prompt_n",
    "prompt_ms",
    "prompt_per_token_ms",
    "prompt_per_second",
    "predicted_n",
    "predicted_ms",
    "predicted_per_token_ms",
    "predicted_per_second",
)
