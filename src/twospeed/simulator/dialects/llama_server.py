"""llama-server of llama.cpp (shapes and key order from captures of b11549).

The head of a stream is sent when a slot is free; the role chunk travels with the first token,
except that `return_progress` repeats it in every progress chunk from the start of prefill.
`timings` come unasked. Streams end with a closed connection that was advertised as kept alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from twospeed.simulator import asking
from twospeed.simulator.cache import Slot
from twospeed.simulator.dialect import Dialect, HeadAt, Moment
from twospeed.simulator.exchange import BadFieldError, RefusedError, Reply, Request, json_reply
from twospeed.simulator.job import Asked, Job
from twospeed.simulator.llama_facts import SAMPLING, metrics_page, model_list, properties
from twospeed.simulator.llama_voice import LlamaVoice, NativeVoice
from twospeed.simulator.tokens import ids_of, pieces

JSON = "application/json; charset=utf-8"


class LlamaServer(Dialect):
    """llama-server with one model."""

    name: ClassVar[str] = "llama-server"
    head_at: ClassVar[HeadAt] = "slot"
    closes_after_stream: ClassVar[bool] = True
    model: ClassVar[str] = "models/simulated-8b-Q4_K_M.gguf"
    forms: ClassVar[Mapping[str, str]] = {
        "/v1/chat/completions": "chat",
        "/chat/completions": "chat",
        "/v1/completions": "completion",
        "/completion": "native",
        "/completions": "native",
    }
    limit_names: ClassVar[tuple[str, ...]] = ("n_predict", "max_completion_tokens", "max_tokens")

    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """Keep-alive is advertised even when it will not be kept."""
        del now_s
        lines = ["Server: llama.cpp", f"Access-Control-Allow-Origin: {origin}"]
        if content_type == "text/event-stream":
            lines.append("X-Accel-Buffering: no")
        lines.append(f"Content-Type: {content_type}")
        if body_line:
            lines.append(body_line)
        return [*lines, "Connection: close" if closing else "Keep-Alive: timeout=5, max=100"]

    def answer(self, request: Request, moment: Moment) -> Reply | None:
        """State and facts; `/tokenize` and `/apply-template`."""
        path = {"/v1/health": "/health", "/v1/models": "/models"}.get(request.path, request.path)
        if request.method == "POST":
            return self._posted(request.path, request)
        if path == "/metrics":
            page = metrics_page(moment.bench).encode()
            return Reply(body=page, content_type="text/plain; version=0.0.4")
        told: dict[str, Callable[[], object]] = {
            "/health": lambda: {"status": "ok"},
            "/props": lambda: properties(self.facts),
            "/models": lambda: model_list(self.facts, moment.now_s),
            "/slots": lambda: [self._slot(slot, moment) for slot in moment.bench.cache.slots],
        }
        return json_reply(told[path](), content_type=JSON) if path in told else None

    def refusal(self, status: int, message: str) -> Reply:
        """Message, type and code, in this order."""
        kind = _KIND.get(status, "invalid_request_error")
        error = {"message": message, "type": kind, "code": status}
        return json_reply({"error": error}, status, JSON)

    def not_found(self) -> Reply:
        """Its own words, also for a wrong method."""
        return self.refusal(404, "File Not Found")

    def bad_json(self, detail: str) -> Reply:
        """By the parser, whose errors put the code first."""
        return self._invalid(f"[json.exception.parse_error.101] parse error: {detail}")

    def bad_field(self, error: BadFieldError) -> Reply:
        """As its schema words it."""
        if error.problem == "missing":
            return self._invalid(f"'{error.field}' is required")
        if error.problem == "range":
            return self._invalid(
                f"Field '{error.field}': Value must be between -1 <= value <= 2147483647, "
                f"but got {error.value}"
            )
        return self._invalid(
            f"Field '{error.field}': [json.exception.type_error.302] type must be "
            f"{'array' if error.field == 'messages' else 'number'}, "
            f"but is {_type_name(error.value)}"
        )

    def is_open(self, path: str) -> bool:
        """Health and the model list need no key."""
        return path in {"/health", "/v1/health", "/models", "/v1/models"}

    def voice(self, job: Job, *, counts: bool = True) -> LlamaVoice:
        """By the route that was asked."""
        kind = NativeVoice if job.asked.form == "native" else LlamaVoice
        return kind(self.facts, job, counts=counts)

    def asked(self, form: str, body: Mapping[str, Any]) -> Asked:
        """`cache_prompt: false` processes everything anew."""
        return replace(super().asked(form, body), reuse=body.get("cache_prompt") is not False)

    def fitted(self, asked: Asked) -> Asked:
        """A prompt as long as the context is refused, streaming or not."""
        if len(asked.prompt) < self.facts.n_ctx:
            return super().fitted(asked)
        error = {
            "code": 400,
            "message": f"request ({len(asked.prompt)} tokens) exceeds the available context size "
            f"({self.facts.n_ctx} tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": len(asked.prompt),
            "n_ctx": self.facts.n_ctx,
        }
        raise RefusedError(json_reply({"error": error}, 400, JSON))

    def _posted(self, path: str, request: Request) -> Reply | None:
        if path == "/tokenize":
            body = asking.json_object(request.body)
            text = asking.string(body, "content")
            found = pieces(text)
            ids = ids_of(found).tolist()
            if body.get("with_pieces") is True:
                pairs = zip(ids, found, strict=True)
                return json_reply(
                    {"tokens": [{"id": i, "piece": piece} for i, piece in pairs]}, content_type=JSON
                )
            return json_reply({"tokens": ids}, content_type=JSON)
        if path == "/apply-template":
            messages = asking.chat_messages(asking.json_object(request.body))
            shown = "".join(f"<|im_start|>{role}\n{text}<|im_end|>" for role, text in messages)
            return json_reply({"prompt": shown + "<|im_start|>assistant\n"}, content_type=JSON)
        return None

    def _invalid(self, message: str) -> Reply:
        error = {"code": 400, "message": message, "type": "invalid_request_error"}
        return json_reply({"error": error}, 400, JSON)

    def _slot(self, slot: Slot, moment: Moment) -> dict[str, Any]:
        job = next((job for job in moment.bench.running if job.slot is slot), None)
        done = job.done_tokens if job else 0
        processed = bool(job and job.first_token_ns <= moment.now_ns)
        return {
            "id": slot.number,
            "n_ctx": self.facts.n_ctx,
            "speculative": moment.bench.machine.draft_tokens > 0,
            "is_processing": slot.busy,
            "id_task": job.number if job else -1,
            "n_prompt_tokens": len(slot.content.tokens) + done,
            "n_prompt_tokens_processed": job.fresh_tokens if job and processed else 0,
            "n_prompt_tokens_cache": job.cached_tokens if job else 0,
            "params": {**SAMPLING, "stream": bool(job and job.asked.stream)},
            "next_token": [
                {
                    "has_next_token": job is not None,
                    "has_new_line": False,
                    "n_remain": job.output_tokens - done if job else -1,
                    "n_decoded": done,
                }
            ],
        }


_KIND = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "unavailable_error",
}


def _type_name(value: object) -> str:
    names = {str: "string", bool: "boolean", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), "number")


DIALECT = LlamaServer
