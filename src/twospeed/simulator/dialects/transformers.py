"""transformers serve (shapes and key order from captures of 5.24.0).

The role chunk comes at once, usage on the finish chunk whether asked for or not, and no end mark.
Nothing tells cached tokens, no prompt is too long, and the server is pinned to its model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.simulator.dialect import Dialect, Moment, Piece, http_date, uuid_like
from twospeed.simulator.dialects.openai import OpenAiVoice
from twospeed.simulator.exchange import (
    BadFieldError,
    RefusedError,
    Reply,
    Request,
    as_json,
    json_reply,
)
from twospeed.simulator.job import Asked, Job
from twospeed.simulator.sse import PLACE, event


class TransformersVoice(OpenAiVoice):
    """Chat and text completions."""

    def made_id(self) -> str:
        """The request's id, as in its header."""
        return uuid_like(self.job.number)

    def chunk(self, choices: list[Any], **more: object) -> dict[str, Any]:
        """The choices come right after the id."""
        start = {"id": self.id, "choices": choices, "created": self.job.made_s}
        if not self.is_chat:
            return {**start, "model": self.facts.model, "object": "text_completion", **more}
        kind = {"object": "chat.completion.chunk", "system_fingerprint": ""}
        return {**start, "model": self.facts.model, **kind, **more}

    def choice(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """What is null is left out."""
        ended = {"finish_reason": finish} if finish else {}
        if self.is_chat:
            return {"delta": delta, "index": 0, **ended}
        return {**ended, "index": 0, "text": delta.get("content", "")}

    def usage(self) -> dict[str, Any]:
        """The three sums."""
        prompt, output = self.job.prompt_tokens, self.job.output_tokens
        sums = {"completion_tokens": output, "prompt_tokens": prompt}
        return sums | {"total_tokens": prompt + output}

    def greeting(self) -> list[bytes]:
        """The role, before anything is processed."""
        return self.role() if self.is_chat else []

    def text(self, piece: Piece) -> list[bytes]:
        """Nothing but text."""
        return [self._text_event(reasoning=piece.reasoning).filled(piece.text)]

    def finish(self) -> list[bytes]:
        """Usage unasked."""
        counted = {"usage": self.usage()} if self.counts else {}
        return [event(self.chunk([self.choice({}, self.job.finish_reason)], **counted))]

    def whole(self) -> bytes:
        """The answer without a stream."""
        job, text = self.job, "".join(self.job.answer)
        said: dict[str, Any] = {"text": text}
        if self.is_chat:
            thought = {self.reasoning_field: "".join(job.reasoning)} if job.reasoning else {}
            said = {"message": {"content": text, "role": "assistant", **thought}}
        start = {
            "id": self.id,
            "choices": [{"finish_reason": job.finish_reason, "index": 0, **said}],
        }
        middle = {"created": job.made_s, "model": self.facts.model}
        kind = {"object": "chat.completion" if self.is_chat else "text_completion"}
        return as_json(start | middle | kind | ({"usage": self.usage()} if self.counts else {}))

    def role(self) -> list[bytes]:
        """The role without a content."""
        return [event(self.chunk([self.choice({"role": "assistant"})]))]

    def failure(self, message: str) -> list[bytes]:
        """A chunk that holds only the error, and no end mark."""
        return [event({"error": message})]

    def text_chunk(self, field: str) -> dict[str, Any]:
        """A chunk with PLACE for its text."""
        return self.chunk([self.choice({field: PLACE})])


class Transformers(Dialect):
    """transformers serve with one model."""

    name: ClassVar[str] = "transformers"
    model: ClassVar[str] = "simulated/8b"
    reuses: ClassVar[bool] = False

    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """As uvicorn, with an id for each request."""
        lines = [f"date: {http_date(now_s)}", "server: uvicorn"]
        if body_line.startswith("Content-Length"):
            lines.append(body_line.lower())
        lines += [f"content-type: {content_type}", f"x-request-id: {uuid_like(now_s)}"]
        if origin:
            lines.append(f"access-control-allow-origin: {origin}")
        if body_line.startswith("Transfer"):
            lines.append(body_line)
        return [*lines, "Connection: close"] if closing else lines

    def answer(self, request: Request, moment: Moment) -> Reply | None:  # noqa: ARG002
        """Health and the model list."""
        if request.method != "GET":
            return None
        entry = {"owned_by": "local", "id": self.facts.model, "object": "model", "created": 0}
        known: dict[str, Any] = {
            "/health": {"status": "ok"},
            "/v1/models": {"object": "list", "data": [entry | {"status": {"value": "loaded"}}]},
        }
        return json_reply(known[request.path]) if request.path in known else None

    def refusal(self, status: int, message: str) -> Reply:
        """By its web framework; faults of its own are plain text."""
        if status == 500:
            return Reply(
                status=500,
                body=b"Internal Server Error",
                content_type="text/plain; charset=utf-8",
            )
        return json_reply({"detail": message}, status)

    def bad_json(self, detail: str) -> Reply:
        """By the validation of its web framework."""
        found = {
            "type": "json_invalid",
            "loc": ["body", 1],
            "msg": "JSON decode error",
            "input": {},
            "ctx": {"error": detail},
        }
        return json_reply({"detail": [found]}, 422)

    def bad_field(self, error: BadFieldError) -> Reply:
        """It trips over what is missing and validates the rest."""
        if error.problem == "missing":
            return self.refusal(500, "Internal Server Error")
        return json_reply({"detail": f"Invalid value for {error.field}"}, 422)

    def voice(self, job: Job, *, counts: bool = True) -> TransformersVoice:
        """Chat or text completion."""
        return TransformersVoice(self.facts, job, counts=counts)

    def asked(self, form: str, body: Mapping[str, Any]) -> Asked:
        """Another model is refused."""
        model = body.get("model")
        if model not in (None, self.facts.model):
            message = f"Server is pinned to '{self.facts.model}'; requested '{model}'."
            raise RefusedError(self.refusal(400, message))
        return super().asked(form, body)

    def fitted(self, asked: Asked) -> Asked:
        """Nothing is too long."""
        return asked


DIALECT = Transformers
