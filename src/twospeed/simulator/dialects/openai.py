"""Plain OpenAI, as hosted APIs and many proxies speak it."""

from __future__ import annotations

from typing import Any, ClassVar

from twospeed.simulator.dialect import (
    Dialect,
    Facts,
    Moment,
    Piece,
    Voice,
    http_date,
    identifier,
)
from twospeed.simulator.exchange import BadFieldError, Reply, Request, as_json, json_reply
from twospeed.simulator.job import Job
from twospeed.simulator.sse import DONE, PLACE, TextEvent, event


class OpenAiVoice(Voice):
    """Chat and text completions; other dialects override the shape of the chunks."""

    reasoning_field: ClassVar[str] = "reasoning_content"

    def __init__(self, facts: Facts, job: Job, *, counts: bool = True) -> None:
        super().__init__(facts, job, counts=counts)
        self.is_chat = job.asked.form == "chat"
        self.id = self.made_id()
        self._events: dict[bool, TextEvent] = {}

    def made_id(self) -> str:
        """The id of the answer."""
        return ("chatcmpl-" if self.is_chat else "cmpl-") + identifier(self.job.number)

    def chunk(self, choices: list[Any], **more: object) -> dict[str, Any]:
        """A chunk of the stream."""
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        found: dict[str, Any] = {
            "id": self.id,
            "object": kind,
            "created": self.job.made_s,
            "model": self.facts.model,
            "system_fingerprint": "fp_simulated",
            "choices": choices,
        }
        if self.job.asked.include_usage and self.counts:
            found["usage"] = None
        return found | more

    def choice(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """The only choice of a chunk; text completions carry their text in place of a delta."""
        if self.is_chat:
            return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        text = delta.get("content", "")
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}

    def usage(self) -> dict[str, Any]:
        """Token counts of the request."""
        job = self.job
        return {
            "prompt_tokens": job.prompt_tokens,
            "completion_tokens": job.output_tokens,
            "total_tokens": job.prompt_tokens + job.output_tokens,
            "prompt_tokens_details": {"cached_tokens": job.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": len(job.reasoning)},
        }

    def text(self, piece: Piece) -> list[bytes]:
        """The role comes first, with an empty text, together with the first token."""
        opening = self.role() if piece.first and self.is_chat else []
        return [*opening, self._text_event(reasoning=piece.reasoning).filled(piece.text)]

    def finish(self) -> list[bytes]:
        """Finish chunk, usage if wanted, the end mark."""
        ended = [event(self.chunk([self.choice({}, self.job.finish_reason)]))]
        if self.job.asked.include_usage and self.counts:
            ended.append(event(self.chunk([], usage=self.usage())))
        return [*ended, DONE]

    def whole(self) -> bytes:
        """The answer without a stream."""
        text = "".join(self.job.answer)
        message = {"role": "assistant", "content": text, "refusal": None}
        if self.job.reasoning:
            message[self.reasoning_field] = "".join(self.job.reasoning)
        said: dict[str, Any] = {"message": message} if self.is_chat else {"text": text}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": self.job.finish_reason}
        answer: dict[str, Any] = {
            "id": self.id,
            "object": "chat.completion" if self.is_chat else "text_completion",
            "created": self.job.made_s,
            "model": self.facts.model,
            "choices": [choice],
        }
        if self.counts:
            answer["usage"] = self.usage()
        return as_json(answer | {"system_fingerprint": "fp_simulated"})

    def role(self) -> list[bytes]:
        """Only the role."""
        return [event(self.chunk([self.choice({"role": "assistant", "content": ""})]))]

    def empty(self, processed_tokens: int, at_ns: int) -> list[bytes]:  # noqa: ARG002
        """Some proxies keep a stream alive with empty deltas."""
        return [event(self.chunk([self.choice({"content": ""})]))]

    def failure(self, message: str) -> list[bytes]:
        """An error object in place of a chunk."""
        error = {"message": message, "type": "server_error", "param": None, "code": None}
        return [event({"error": error}), DONE]

    def text_chunk(self, field: str) -> dict[str, Any]:
        """A chunk of text, with PLACE for the text."""
        return self.chunk([self.choice({field: PLACE})])

    def _text_event(self, *, reasoning: bool) -> TextEvent:
        if reasoning not in self._events:
            field = self.reasoning_field if reasoning else "content"
            self._events[reasoning] = TextEvent.of(self.text_chunk(field))
        return self._events[reasoning]


class OpenAi(Dialect):
    """An endpoint that says nothing about itself beyond the common API."""

    name: ClassVar[str] = "openai"
    voice_type: ClassVar[type[OpenAiVoice]] = OpenAiVoice

    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """As a plain web server would."""
        lines = [f"Date: {http_date(now_s)}", f"Content-Type: {content_type}"]
        if origin:
            lines += [f"Access-Control-Allow-Origin: {origin}", "Vary: Origin"]
        lines.append(f"Connection: {'close' if closing else 'keep-alive'}")
        return [*lines, body_line] if body_line else lines

    def answer(self, request: Request, moment: Moment) -> Reply | None:
        """The model list."""
        if (request.method, request.path) != ("GET", "/v1/models"):
            return None
        entry = {
            "id": self.facts.model,
            "object": "model",
            "created": moment.now_s,
            "owned_by": "twospeed-simulator",
        }
        return json_reply({"object": "list", "data": [entry]})

    def refusal(self, status: int, message: str) -> Reply:
        """An error object."""
        return json_reply(self.error(message, _KIND.get(status, "invalid_request_error")), status)

    def bad_json(self, detail: str) -> Reply:
        """As the public API words it."""
        return self.refusal(400, f"We could not parse the JSON body of your request. ({detail})")

    def bad_field(self, error: BadFieldError) -> Reply:
        """Names the field."""
        if error.problem == "missing":
            message = f"Missing required parameter: '{error.field}'."
        else:
            message = f"Invalid value for '{error.field}'."
        return json_reply(self.error(message, "invalid_request_error", error.field), 400)

    def too_long(self, prompt_tokens: int) -> Reply:
        """The public API's own sentence."""
        message = (
            f"This model's maximum context length is {self.facts.n_ctx} tokens. However, your "
            f"messages resulted in {prompt_tokens} tokens. Please reduce the length of the "
            "messages."
        )
        kind, code = "invalid_request_error", "context_length_exceeded"
        return json_reply(self.error(message, kind, "messages", code), 400)

    def voice(self, job: Job, *, counts: bool = True) -> OpenAiVoice:
        """Chat or text completion."""
        return self.voice_type(self.facts, job, counts=counts)

    def error(
        self, message: str, kind: str, param: str | None = None, code: str | None = None
    ) -> dict[str, Any]:
        """The error object of the public API."""
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}


_KIND = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "service_unavailable",
}


DIALECT = OpenAi
