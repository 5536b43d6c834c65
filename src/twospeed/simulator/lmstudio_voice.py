"""How LM Studio tells an answer: named events, and chunks of the compatible routes."""

from __future__ import annotations

from typing import Any

import msgspec

from twospeed.simulator.dialect import Facts, Piece, Voice, identifier
from twospeed.simulator.dialects.openai import OpenAiVoice
from twospeed.simulator.exchange import as_json
from twospeed.simulator.job import Job
from twospeed.simulator.sse import DONE, PLACE, TextEvent, named_event


class NativeVoice(Voice):
    """`/api/v1/chat`: every event has its type as name and in its data."""

    def __init__(self, facts: Facts, job: Job, *, counts: bool = True) -> None:
        super().__init__(facts, job, counts=counts)
        self._events = {
            kind: TextEvent.of(
                {"type": f"{kind}.delta", "content": PLACE}, f"event: {kind}.delta\ndata: ".encode()
            )
            for kind in ("reasoning", "message")
        }
        self._kind = ""

    def greeting(self) -> list[bytes]:
        """The chat begins."""
        return [_typed("chat.start", model_instance_id=self.facts.model)]

    def load_started(self) -> list[bytes]:
        """Only when it has to be loaded."""
        name = self.facts.model
        return [
            _typed("model_load.start", model_instance_id=name)
            + _typed("model_load.progress", model_instance_id=name, progress=0)
        ]

    def load_ended(self) -> list[bytes]:
        """With the time that it took."""
        name, load_s = self.facts.model, self.job.load_ns / 1e9
        return [
            _typed("model_load.progress", model_instance_id=name, progress=1)
            + _typed("model_load.end", model_instance_id=name, load_time_seconds=load_s)
        ]

    def prefill_started(self) -> list[bytes]:
        """The prompt's first progress comes with its start."""
        return [
            _typed("prompt_processing.start") + _typed("prompt_processing.progress", progress=0)
        ]

    def progress(self, processed_tokens: int, at_ns: int) -> list[bytes]:  # noqa: ARG002
        """As a share of what was not cached."""
        fresh = self.job.fresh_tokens
        share = (processed_tokens - self.job.cached_tokens) / fresh if fresh else 1.0
        told = _typed("prompt_processing.progress", progress=round(share, 4))
        return [told + _typed("prompt_processing.end")] if share >= 1 else [told]

    def text(self, piece: Piece) -> list[bytes]:
        """A message opens with its first text; reasoning has ended then."""
        kind = "reasoning" if piece.reasoning else "message"
        turn = b""
        if kind != self._kind:
            turn = (_typed(f"{self._kind}.end") if self._kind else b"") + _typed(f"{kind}.start")
            self._kind = kind
        return [turn + self._events[kind].filled(piece.text)]

    def finish(self) -> list[bytes]:
        """The whole answer again, with statistics."""
        return [_typed(f"{self._kind}.end") + _typed("chat.end", result=self._result())]

    def whole(self) -> bytes:
        """The answer without a stream."""
        return as_json(self._result())

    def role(self) -> list[bytes]:
        """A delta without text."""
        return [self._events["message"].filled("")]

    def empty(self, processed_tokens: int, at_ns: int) -> list[bytes]:
        """The progress that it tells anyway."""
        return self.progress(processed_tokens, at_ns)

    def failure(self, message: str) -> list[bytes]:
        """An error, and an end with what there was."""
        error = {"type": "internal_error", "message": message}
        result = {"model_instance_id": self.facts.model, "output": []}
        return [_typed("error", error=error) + _typed("chat.end", result=result)]

    def garbage(self) -> list[bytes]:
        """An event that is cut off."""
        return [b'event: message.delta\ndata: {"type":"message.del\n\n']

    def _result(self) -> dict[str, Any]:
        job = self.job
        output = [{"type": "message", "content": "".join(job.answer)}]
        if job.reasoning:
            output.insert(0, {"type": "reasoning", "content": "".join(job.reasoning)})
        result: dict[str, Any] = {"model_instance_id": self.facts.model, "output": output}
        if self.counts:
            stats: dict[str, Any] = {
                "input_tokens": job.prompt_tokens,
                "total_output_tokens": job.output_tokens,
                "reasoning_output_tokens": len(job.reasoning),
                "tokens_per_second": _rate(job),
                "time_to_first_token_seconds": _first_token_s(job),
            }
            if job.load_ns:
                stats["model_load_time_seconds"] = job.load_ns / 1e9
            result["stats"] = stats
        if job.asked.body.get("store") is not False:
            result["response_id"] = "resp_" + identifier(job.number, 48)
        return result


class CompatibleVoice(OpenAiVoice):
    """`/v1` routes."""

    def chunk(self, choices: list[Any], **more: object) -> dict[str, Any]:
        """Its model stands for the fingerprint; no usage but in its own chunk."""
        found = super().chunk(choices)
        found.pop("usage", None)
        found["system_fingerprint"] = self.facts.model
        return found | more

    def usage(self) -> dict[str, Any]:
        """No cached tokens."""
        found = super().usage()
        del found["prompt_tokens_details"]
        return found

    def text(self, piece: Piece) -> list[bytes]:
        """The role is in every chunk of a chat."""
        return [self._text_event(reasoning=piece.reasoning).filled(piece.text)]

    def text_chunk(self, field: str) -> dict[str, Any]:
        """A chunk with PLACE for its text."""
        return self.chunk([self.choice({"role": "assistant", field: PLACE})])

    def failure(self, message: str) -> list[bytes]:
        """A named event, and no end mark."""
        return [named_event("error", {"error": {"message": message}})]


class OldVoice(CompatibleVoice):
    """`/api/v0` routes: statistics, but not in streams."""

    def __init__(self, facts: Facts, job: Job, *, counts: bool = True) -> None:
        super().__init__(facts, job, counts=counts)
        self.is_chat = job.asked.form == "v0_chat"
        self.id = self.made_id()

    def finish(self) -> list[bytes]:
        """No usage."""
        return [*super().finish()[:1], DONE]

    def whole(self) -> bytes:
        """Statistics and facts about the model."""
        answer = msgspec.json.decode(super().whole())
        del answer["system_fingerprint"]
        job = self.job
        if self.counts:
            answer["stats"] = {
                "tokens_per_second": _rate(job),
                "time_to_first_token": _first_token_s(job),
                "generation_time": job.decode_ns / 1e9,
                "stop_reason": "maxPredictedTokensReached" if job.asked.limited else "eosFound",
            }
        answer["model_info"] = {
            "arch": "llama",
            "quant": "Q4_K_M",
            "format": "gguf",
            "context_length": self.facts.n_ctx,
        }
        answer["runtime"] = {
            "name": "llama.cpp-linux-x86_64-simulated",
            "version": "2.5.1",
            "supported_formats": ["gguf"],
        }
        return as_json(answer)


def _typed(kind: str, **more: object) -> bytes:
    return named_event(kind, {"type": kind, **more})


def _rate(job: Job) -> float:
    """Tokens after the first per second of decode."""
    steps = job.output_tokens - 1
    return steps / (job.decode_ns / 1e9) if steps and job.decode_ns else 0.0


def _first_token_s(job: Job) -> float:
    """From arrival, so waiting is in it."""
    return (job.first_token_ns - job.arrival_ns) / 1e9
