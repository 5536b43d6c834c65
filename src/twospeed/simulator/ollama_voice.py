"""How Ollama tells an answer: lines of its native routes, and chunks of the compatible ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from twospeed.simulator.dialect import Piece, Voice, identifier
from twospeed.simulator.dialects.openai import OpenAiVoice
from twospeed.simulator.exchange import as_json
from twospeed.simulator.sse import PLACE, event

SHORTEST_LOAD_NS = 20_000
"""It looks the model up even when that is loaded; a duration of 0 would be left out."""


def go_stamp(made_s: int, since_ns: int) -> str:
    """A moment as Go writes it."""
    moment = datetime.fromtimestamp(made_s + since_ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{since_ns % 1_000_000_000:09}Z"


class NativeVoice(Voice):
    """`/api/chat` and `/api/generate`."""

    content_type: ClassVar[str] = "application/x-ndjson"

    def line(self, at_ns: int, said: Mapping[str, str], **more: object) -> dict[str, Any]:
        """One object of the stream; `said` holds `content` and `thinking`."""
        found: dict[str, Any] = {
            "model": self.facts.model,
            "created_at": go_stamp(self.job.made_s, at_ns - self.job.arrival_ns),
        }
        if self.job.asked.form == "api_chat":
            found["message"] = {"role": "assistant", **said}
        else:
            found["response"] = said["content"]
            if "thinking" in said:
                found["thinking"] = said["thinking"]
        return found | more

    def text(self, piece: Piece) -> list[bytes]:
        """A line each."""
        said = {"content": piece.text}
        if piece.reasoning:
            said = {"content": "", "thinking": piece.text}
        return [_line(self.line(piece.at_ns, said, done=False))]

    def finish(self) -> list[bytes]:
        """The last line has no text but all that is known."""
        return [_line(self._final({"content": ""}))]

    def whole(self) -> bytes:
        """The last line with the text in it."""
        said = {"content": "".join(self.job.answer)}
        if self.job.reasoning:
            said["thinking"] = "".join(self.job.reasoning)
        return as_json(self._final(said))

    def role(self) -> list[bytes]:
        """A line without text."""
        return [_line(self.line(self.job.arrival_ns, {"content": ""}, done=False))]

    def empty(self, processed_tokens: int, at_ns: int) -> list[bytes]:  # noqa: ARG002
        """It tells no progress; an empty line of text comes nearest."""
        return [_line(self.line(at_ns, {"content": ""}, done=False))]

    def failure(self, message: str) -> list[bytes]:
        """A line that holds nothing but the error."""
        return [_line({"error": message})]

    def garbage(self) -> list[bytes]:
        """A line that is cut off."""
        return [b'{"model":"simulated:8b","created_at":"2026-\n']

    def ping(self) -> list[bytes]:
        """An empty line."""
        return [b"\n"]

    def _final(self, said: Mapping[str, str]) -> dict[str, Any]:
        job = self.job
        end_ns = job.latest_token_ns
        final = self.line(end_ns, said, done=True, done_reason=job.finish_reason)
        if not self.counts:
            return final
        return final | {
            "total_duration": end_ns - job.arrival_ns,
            "load_duration": max(job.load_ns, SHORTEST_LOAD_NS),
            "prompt_eval_count": job.prompt_tokens,
            "prompt_eval_duration": job.prefill_ns,
            "eval_count": job.output_tokens,
            "eval_duration": max(job.decode_ns, 1),
        }


class CompatibleVoice(OpenAiVoice):
    """`/v1/chat/completions` and `/v1/completions`: no cached tokens, `reasoning`."""

    reasoning_field: ClassVar[str] = "reasoning"

    def made_id(self) -> str:
        """Short numbers."""
        return ("chatcmpl-" if self.is_chat else "cmpl-") + identifier(self.job.number, 4)

    def chunk(self, choices: list[Any], **more: object) -> dict[str, Any]:
        """No usage unless it is the chunk for it."""
        found = super().chunk(choices)
        found.pop("usage", None)
        found["system_fingerprint"] = "fp_ollama"
        return found | more

    def choice(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """No log probabilities."""
        found = super().choice(delta, finish)
        del found["logprobs"]
        return found

    def usage(self) -> dict[str, Any]:
        """The three sums."""
        found = super().usage()
        return {key: found[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}

    def text(self, piece: Piece) -> list[bytes]:
        """The role comes in the first chunk, together with its text."""
        if not (piece.first and self.is_chat):
            return super().text(piece)
        delta = {"role": "assistant", "content": "" if piece.reasoning else piece.text}
        if piece.reasoning:
            delta[self.reasoning_field] = piece.text
        return [event(self.chunk([self.choice(delta)]))]

    def text_chunk(self, field: str) -> dict[str, Any]:
        """Content is there even beside reasoning."""
        delta = {"content": PLACE} if field == "content" else {"content": "", field: PLACE}
        return self.chunk([self.choice(delta)])


def _line(value: Mapping[str, Any]) -> bytes:
    return as_json(value) + b"\n"
