"""mlx_lm.server (shapes and key order from captures of 0.32.2).

HTTP/1.0 without chunks: a body ends with its connection. Comments tell how much of the uncached
part of the prompt is processed. Every chunk has the role, no prompt is too long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.simulator.dialect import Dialect, Moment, Piece, http_date, uuid_like
from twospeed.simulator.dialects.openai import OpenAiVoice
from twospeed.simulator.exchange import BadFieldError, RefusedError, Reply, Request
from twospeed.simulator.job import Asked, Job
from twospeed.simulator.sse import DONE

FINGERPRINT = "0.32.2-0.32.4-Simulated-x86_64"


class MlxVoice(OpenAiVoice):
    """Chat and text completions, in the JSON of Python's library: spaces, and only ASCII."""

    reasoning_field: ClassVar[str] = "reasoning"

    def made_id(self) -> str:
        """In the form of a UUID."""
        return ("chatcmpl-" if self.is_chat else "cmpl-") + uuid_like(self.job.number)

    def object(self, kind: str, choices: list[Any], **more: object) -> bytes:
        """An answer or a chunk of one."""
        start = {"id": self.id, "system_fingerprint": FINGERPRINT, "object": kind}
        middle = {"model": self.facts.model, "created": self.job.made_s}
        return json.dumps(start | middle | {"choices": choices} | more).encode()

    def told(self, said: Mapping[str, Any], finish: str | None = None) -> bytes:
        """A chunk of the stream; `said` holds the text by its field."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        if self.is_chat:
            choice["delta"] = {"role": "assistant", **said}
        else:
            choice["text"] = said.get("content", "")
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        return b"data: " + self.object(kind, [choice]) + b"\n\n"

    def usage(self) -> dict[str, Any]:
        """Cached tokens are always told."""
        found = super().usage()
        del found["completion_tokens_details"]
        return found

    def progress(self, processed_tokens: int, at_ns: int) -> list[bytes]:  # noqa: ARG002
        """A comment that counts only what was not cached."""
        fresh = processed_tokens - self.job.cached_tokens
        return [f": keepalive {fresh}/{self.job.fresh_tokens}\n\n".encode()]

    def text(self, piece: Piece) -> list[bytes]:
        """One event."""
        field = self.reasoning_field if piece.reasoning else "content"
        return [self.told({field: piece.text})]

    def finish(self) -> list[bytes]:
        """The chunk with usage calls itself a whole answer."""
        ended = [self.told({}, self.job.finish_reason)]
        if self.job.asked.include_usage and self.counts:
            usage = self.object("chat.completion", [], usage=self.usage())
            ended.append(b"data: " + usage + b"\n\n")
        return [*ended, DONE]

    def whole(self) -> bytes:
        """The answer without a stream."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.job.finish_reason}
        text = "".join(self.job.answer)
        if self.is_chat:
            choice["message"] = {"role": "assistant", "content": text}
            if self.job.reasoning:
                choice["message"][self.reasoning_field] = "".join(self.job.reasoning)
        else:
            choice["text"] = text
        kind = "chat.completion" if self.is_chat else "text_completion"
        counted = {"usage": self.usage()} if self.counts else {}
        return self.object(kind, [choice], **counted)

    def role(self) -> list[bytes]:
        """A chunk without text."""
        return [self.told({})]

    def empty(self, processed_tokens: int, at_ns: int) -> list[bytes]:
        """The comment that it sends anyway."""
        return self.progress(processed_tokens, at_ns)

    def failure(self, message: str) -> list[bytes]:
        """An event that holds nothing but the error."""
        return [b"data: " + json.dumps({"error": message}).encode() + b"\n\n"]


class Mlx(Dialect):
    """mlx_lm.server with one model."""

    name: ClassVar[str] = "mlx"
    http_version: ClassVar[str] = "1.0"
    ascii_only: ClassVar[bool] = True
    model: ClassVar[str] = "mlx-community/simulated-8b-4bit"

    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """As the server of Python's library; any page may ask."""
        del closing, origin
        lines = [
            "Server: BaseHTTP/0.6 Python/3.11.7",
            f"Date: {http_date(now_s)}",
            f"Content-type: {content_type}",
        ]
        if content_type == "text/event-stream":
            lines.append("Cache-Control: no-cache")
        names = ("Origin", "Methods", "Headers")
        lines += [f"Access-Control-Allow-{name}: *" for name in names]
        return [*lines, body_line] if body_line else lines

    def answer(self, request: Request, moment: Moment) -> Reply | None:
        """Health and the model list."""
        if request.method != "GET":
            return None
        entry = {"id": self.facts.model, "object": "model", "created": moment.now_s}
        known: dict[str, Any] = {
            "/health": {"status": "ok"},
            "/v1/models": {"object": "list", "data": [entry]},
        }
        return _reply(known[request.path]) if request.path in known else None

    def refusal(self, status: int, message: str) -> Reply:
        """Nothing but a text."""
        return _reply({"error": message}, status)

    def not_found(self) -> Reply:
        """Plain text under a JSON type."""
        return Reply(status=404, body=b"Not Found", sized=False)

    def bad_json(self, detail: str) -> Reply:
        """The decoder's words."""
        return self.refusal(400, f"Invalid JSON in request body: {detail}")

    def bad_field(self, error: BadFieldError) -> Reply:
        """It checks a few fields by hand."""
        if error.problem == "missing":
            return self.refusal(400, f"Request did not contain {error.field}")
        return self.refusal(400, f"{error.field} must be a non-negative integer")

    def voice(self, job: Job, *, counts: bool = True) -> MlxVoice:
        """Chat or text completion."""
        return MlxVoice(self.facts, job, counts=counts)

    def asked(self, form: str, body: Mapping[str, Any]) -> Asked:
        """Another model would have to be downloaded."""
        model = body.get("model")
        if model not in (None, "default_model", self.facts.model):
            message = (
                "Cannot find an appropriate cached snapshot folder for the specified revision on "
                "the local disk and outgoing traffic has been disabled. To enable repo look-ups "
                "and downloads online, set 'HF_HUB_OFFLINE=0' as environment variable."
            )
            raise RefusedError(self.refusal(404, message))
        return super().asked(form, body)

    def fitted(self, asked: Asked) -> Asked:
        """Nothing is too long."""
        return asked


def _reply(value: Mapping[str, Any], status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(value).encode(), sized=False)


DIALECT = Mlx
