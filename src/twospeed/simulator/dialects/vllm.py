"""vLLM (shapes and key order from captures of 0.32.0).

Heads are sent at once; a role chunk travels with the first token, the finish reason with the
last one. Cached tokens and times of a request are told only when the server was started with
the flags for them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from twospeed.simulator import asking
from twospeed.simulator.dialect import Dialect, Moment, Piece, http_date, identifier
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
from twospeed.simulator.sse import DONE, PLACE, event
from twospeed.simulator.tokens import encode
from twospeed.simulator.vllm_facts import BLOCK_TOKENS, FINGERPRINT, VERSION, metrics_page


class VllmVoice(OpenAiVoice):
    """Chat and text completions."""

    reasoning_field: ClassVar[str] = "reasoning"

    def made_id(self) -> str:
        """16 hexadecimal digits."""
        return ("chatcmpl-" if self.is_chat else "cmpl-") + identifier(self.job.number, 16)

    def chunk(self, choices: list[Any], **more: object) -> dict[str, Any]:
        """No usage unless it is asked for each chunk."""
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        start = {"id": self.id, "object": kind, "created": self.job.made_s}
        return {**start, "model": self.facts.model, "choices": choices, **more}

    def choice(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """The stop reason is there only with a finish reason, in a chat."""
        stop = {"stop_reason": None} if finish or not self.is_chat else {}
        if self.is_chat:
            start = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return start | stop | {"token_ids": None}
        start = {"index": 0, "text": delta.get("content", ""), "logprobs": None}
        ids = {"prompt_token_ids": None, "token_ids": None}
        return start | {"finish_reason": finish} | stop | ids

    def usage(self) -> dict[str, Any]:
        """Details only with the flag for them."""
        found = self.sums(self.job.output_tokens)
        if self.facts.report_cached:
            created = {"created_cache_tokens": self._created_tokens()} if self.is_chat else {}
            found["prompt_tokens_details"] = {"cached_tokens": self.job.cached_tokens, **created}
        return found

    def sums(self, done_tokens: int) -> dict[str, Any]:
        """Counts after so many tokens."""
        prompt = self.job.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + done_tokens,
            "completion_tokens": done_tokens,
        }

    def text(self, piece: Piece) -> list[bytes]:
        """Role and first token are two HTTP chunks in one packet."""
        opening = self.role() if piece.first and self.is_chat else []
        if not piece.last and not self._counts_each:
            return [*opening, self._text_event(reasoning=piece.reasoning).filled(piece.text)]
        field = self.reasoning_field if piece.reasoning else "content"
        finish = self.job.finish_reason if piece.last else None
        chunk = self.chunk([self.choice({field: piece.text}, finish)])
        if piece.last and not (self.job.asked.include_usage and self.counts):
            chunk["system_fingerprint"] = FINGERPRINT
        if self._counts_each:
            chunk["usage"] = self.sums(piece.done_tokens) | {"completion_tokens_details": None}
        return [*opening, event(chunk)]

    def finish(self) -> list[bytes]:
        """The finish reason went out with the last token."""
        if not (self.job.asked.include_usage and self.counts):
            return [DONE]
        times = {"metrics": self.metrics()} if self.facts.report_times else {}
        last = self.chunk([], usage=self.usage(), system_fingerprint=FINGERPRINT, **times)
        return [event(last), DONE]

    def metrics(self) -> dict[str, float]:
        """Times of the request in milliseconds; the queue is in none of the others."""
        job = self.job
        steps = job.output_tokens - 1
        spent_s = (job.prefill_ns + job.decode_ns) / 1e9
        return {
            "time_to_first_token_ms": job.prefill_ns / 1e6,
            "generation_time_ms": job.decode_ns / 1e6,
            "queue_time_ms": job.queue_ns / 1e6,
            "mean_itl_ms": job.decode_ns / 1e6 / steps if steps else 0.0,
            "tokens_per_second": job.output_tokens / spent_s if spent_s else 0.0,
        }

    def whole(self) -> bytes:
        """The answer without a stream."""
        job, text = self.job, "".join(self.job.answer)
        message = {
            "role": "assistant",
            "content": text,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": "".join(job.reasoning) or None,
        }
        end = {"finish_reason": job.finish_reason, "stop_reason": None, "token_ids": None}
        said = {"message": message} if self.is_chat else {"text": text}
        answer: dict[str, Any] = {
            "id": self.id,
            "object": "chat.completion" if self.is_chat else "text_completion",
            "created": job.made_s,
            "model": self.facts.model,
            "choices": [{"index": 0, **said, "logprobs": None, **end, "routed_experts": None}],
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
        }
        if self.counts:
            answer["usage"] = self._whole_usage()
        names = ("prompt_logprobs", "prompt_token_ids", "prompt_text")
        answer |= dict.fromkeys((*names, "kv_transfer_params", "ec_transfer_params"))
        timed = self.facts.report_times and self.counts
        return as_json(answer | {"metrics": self.metrics() if timed else None})

    def role(self) -> list[bytes]:
        """Only the role, with an empty text."""
        if not self.is_chat:
            return [event(self.chunk([self.choice({})]))]
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
        usage = {}
        if self._counts_each:
            usage = {"usage": self.sums(0) | {"completion_tokens_details": None}}
        end = {"prompt_token_ids": None, "prompt_text": None}
        return [event(self.chunk([choice | {"finish_reason": None}], **usage, **end))]

    def failure(self, message: str) -> list[bytes]:
        """An error object, then the end mark."""
        error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
        return [event({"error": error}), DONE]

    def text_chunk(self, field: str) -> dict[str, Any]:
        """A chunk with PLACE for its text."""
        return self.chunk([self.choice({field: PLACE})])

    @property
    def _counts_each(self) -> bool:
        options = self.job.asked.body.get("stream_options")
        wanted = isinstance(options, Mapping) and options.get("continuous_usage_stats") is True
        return wanted and self.job.asked.include_usage and self.counts

    def _created_tokens(self) -> int:
        """Prompt tokens in blocks that this request filled."""
        prompt = self.job.prompt_tokens
        return prompt - prompt % BLOCK_TOKENS - self.job.cached_tokens

    def _whole_usage(self) -> dict[str, Any]:
        found = self.sums(self.job.output_tokens)
        details = {
            "cached_tokens": self.job.cached_tokens,
            "created_cache_tokens": self._created_tokens(),
            "multimodal_tokens": None,
        }
        found["prompt_tokens_details"] = details if self.facts.report_cached else None
        return found | {"completion_tokens_details": None}


class Vllm(Dialect):
    """vLLM's server with one model."""

    name: ClassVar[str] = "vllm"
    block_tokens: ClassVar[int] = BLOCK_TOKENS
    model: ClassVar[str] = "simulated-8b"

    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """As uvicorn."""
        lines = [f"date: {http_date(now_s)}", "server: uvicorn"]
        if body_line.startswith("Content-Length"):
            lines.append(body_line.lower())
        if content_type:
            lines.append(f"content-type: {content_type}")
        lines.append("vary: Origin")
        if origin:
            lines.append(f"access-control-allow-origin: {origin}")
        if closing:
            lines.append("connection: close")
        return [*lines, body_line.lower()] if body_line.startswith("Transfer") else lines

    def answer(self, request: Request, moment: Moment) -> Reply | None:
        """Version, models, counters; `/tokenize`."""
        path = request.path
        if request.method == "POST":
            return self._tokenized(request) if path == "/tokenize" else None
        if path in ("/health", "/ping"):
            return Reply(content_type="")
        if path == "/metrics":
            page = metrics_page(self.facts, moment.bench).encode()
            return Reply(body=page, content_type="text/plain; version=1.0.0; charset=utf-8")
        known: dict[str, Any] = {
            "/version": {"version": VERSION},
            "/load": {"server_load": len(moment.bench.running) + len(moment.bench.waiting)},
            "/v1/models": {"object": "list", "data": [self._listed(moment)]},
        }
        return json_reply(known[path]) if path in known else None

    def refusal(self, status: int, message: str) -> Reply:
        """Its error object; the kinds are named like classes."""
        return self._error(message, _KIND.get(status, "BadRequestError"), status)

    def not_found(self) -> Reply:
        """By its web framework."""
        return json_reply({"detail": "Not Found"}, 404)

    def bad_json(self, detail: str) -> Reply:
        """By the validation of its web framework."""
        found = {
            "type": "json_invalid",
            "loc": "body.1",
            "msg": "JSON decode error",
            "input": "<dict of 0 items>",
            "ctx": {"error": detail},
        }
        return self._error(f"1 validation error:\n  {found}", "Bad Request", 400, "body.1")

    def bad_field(self, error: BadFieldError) -> Reply:
        """By the same validation."""
        missing = error.problem == "missing"
        found = {
            "type": "missing" if missing else f"{error.field}_type",
            "loc": f"body.{error.field}",
            "msg": "Field required" if missing else "Input is not valid",
            "input": "<dict of 1 items>" if missing else repr(error.value)[:80],
        }
        message = f"1 validation error:\n  {found}"
        return self._error(message, "Bad Request", 400, f"body.{error.field}")

    def is_open(self, path: str) -> bool:
        """Only the API proper is guarded."""
        return not path.startswith("/v1")

    def voice(self, job: Job, *, counts: bool = True) -> VllmVoice:
        """Chat or text completion."""
        return VllmVoice(self.facts, job, counts=counts)

    def asked(self, form: str, body: Mapping[str, Any]) -> Asked:
        """A salt separates caches; an unknown model is refused."""
        model = body.get("model")
        if model not in (None, "", self.facts.model):
            message = f"The model `{model}` does not exist. Valid aliases: {self.facts.model}."
            raise RefusedError(self._error(message, "NotFoundError", 404, "model"))
        salt = body.get("cache_salt")
        return replace(super().asked(form, body), salt=salt if isinstance(salt, str) else "")

    def too_long(self, prompt_tokens: int) -> Reply:
        """It stops counting one token beyond the limit."""
        del prompt_tokens
        n_ctx = self.facts.n_ctx
        message = (
            f"This model's maximum context length is {n_ctx} tokens. However, your prompt contains "
            f"at least {n_ctx + 1} input tokens, which exceeds this limit even without any output "
            "tokens. Please reduce the length of the input prompt. "
            f"(parameter=input_tokens, value={n_ctx + 1})"
        )
        return self._error(message, "BadRequestError", 400, "input_tokens")

    def _tokenized(self, request: Request) -> Reply:
        body = asking.json_object(request.body)
        ids: array[int] = (
            asking.chat_tokens(body)
            if "messages" in body
            else encode(asking.string(body, "prompt"))
        )
        counted = {"count": len(ids), "max_model_len": self.facts.n_ctx}
        return json_reply({**counted, "tokens": ids.tolist(), "token_strs": None})

    def _listed(self, moment: Moment) -> dict[str, Any]:
        name = self.facts.model
        entry = {"id": name, "object": "model", "created": moment.now_s, "owned_by": "vllm"}
        return {**entry, "root": name, "parent": None, "max_model_len": self.facts.n_ctx}

    def _error(self, message: str, kind: str, status: int, param: str | None = None) -> Reply:
        error = {"message": message, "type": kind, "param": param, "code": status}
        return json_reply({"error": error}, status)


_KIND = {
    401: "Unauthorized",
    404: "NotFoundError",
    429: "RateLimitError",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}

DIALECT = Vllm
