"""Ollama: its native routes, and the OpenAI-compatible ones beside them.

Lines of JSON, no end mark; the head of a stream is sent with the first text. In the last line
`prompt_eval_count` is the whole prompt while `prompt_eval_duration` covers its uncached part, and
nothing tells cached tokens. A prompt that is too long is cut silently. Another `num_ctx` loads the
model again.

Source: ollama/ollama docs/api.md, api/types.go, middleware/openai.go.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from twospeed.simulator import asking
from twospeed.simulator.dialect import Dialect, HeadAt, Moment, Voice, http_date, shortened
from twospeed.simulator.exchange import BadFieldError, RefusedError, Reply, Request, json_reply
from twospeed.simulator.job import Asked, Job
from twospeed.simulator.ollama_voice import CompatibleVoice, NativeVoice, go_stamp
from twospeed.simulator.tokens import TEMPLATE_HEAD_TOKENS

JSON = "application/json; charset=utf-8"
VERSION = "0.31.2"
DIGEST = "365c0bd3c000a25d28ddbf732fe1c6add414de7275464c4e4d1c3b5fcb5d8ad1"
FILE_BYTES = 4_920_753_328


class Ollama(Dialect):
    """Ollama with one model on its disk."""

    name: ClassVar[str] = "ollama"
    head_at: ClassVar[HeadAt] = "text"
    model: ClassVar[str] = "simulated:8b"
    forms: ClassVar[Mapping[str, str]] = {
        "/api/chat": "api_chat",
        "/api/generate": "api_generate",
        **Dialect.forms,
    }

    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """As Go's server."""
        lines = [f"Content-Type: {content_type}"]
        if origin:
            lines.append(f"Access-Control-Allow-Origin: {origin}")
        lines.append(f"Date: {http_date(now_s)}")
        if body_line:
            lines.append(body_line)
        return [*lines, "Connection: close"] if closing else lines

    def answer(self, request: Request, moment: Moment) -> Reply | None:
        """Models, what is loaded, the version."""
        path = request.path
        if request.method == "POST":
            return json_reply(self._card(), content_type=JSON) if path == "/api/show" else None
        if path == "/":
            return Reply(body=b"Ollama is running", content_type="text/plain; charset=utf-8")
        known: dict[str, dict[str, Any]] = {
            "/api/version": {"version": VERSION},
            "/api/tags": {"models": [self._entry(moment)]},
            "/api/ps": {"models": self._running(moment)},
            "/v1/models": {"object": "list", "data": [self._listed(moment)]},
        }
        return json_reply(known[path], content_type=JSON) if path in known else None

    def refusal(self, status: int, message: str) -> Reply:
        """Nothing but a text."""
        return json_reply({"error": message}, status, JSON)

    def not_found(self) -> Reply:
        """As its router."""
        return Reply(status=404, body=b"404 page not found", content_type="text/plain")

    def loading(self) -> Reply:
        """Its queue is full."""
        return self.refusal(
            503, "server busy, please try again.  maximum pending requests exceeded"
        )

    def bad_json(self, detail: str) -> Reply:
        """The decoder's words."""
        return self.refusal(400, detail)

    def bad_field(self, error: BadFieldError) -> Reply:
        """As Go's decoder puts it."""
        if error.problem == "missing":
            return self.refusal(400, f"{error.field} is required")
        return self.refusal(400, f"json: cannot unmarshal value into Go struct field {error.field}")

    def voice(self, job: Job, *, counts: bool = True) -> Voice:
        """By the route that was asked."""
        if job.asked.form.startswith("api_"):
            return NativeVoice(self.facts, job, counts=counts)
        return CompatibleVoice(self.facts, job, counts=counts)

    def asked(self, form: str, body: Mapping[str, Any]) -> Asked:
        """Native routes stream unless told otherwise and keep limits among their options."""
        model = asking.string(body, "model")
        if model.removesuffix(":latest") not in {self.facts.model, self.facts.model.split(":")[0]}:
            raise RefusedError(self.refusal(404, f"model '{model}' not found"))
        if not form.startswith("api_"):
            return super().asked(form, body)
        options = body.get("options")
        settings = dict(options) if isinstance(options, Mapping) else {}
        said = {"max_tokens": settings.get("num_predict")}
        asked = super().asked(form, {**body, **said})
        context = settings.get("num_ctx")
        return replace(
            asked,
            stream=body.get("stream") is not False,
            config=f"num_ctx={context}" if context else "",
            body=body,
        )

    def prompt(self, form: str, body: Mapping[str, Any]) -> array[int]:
        """`/api/generate` puts its prompt into the template unless it is raw."""
        if form in ("chat", "api_chat"):
            return self._last_messages(body)
        if form == "api_generate" and body.get("raw") is not True:
            system = body.get("system")
            messages = [{"role": "system", "content": system}] if system else []
            messages.append({"role": "user", "content": asking.string(body, "prompt")})
            return asking.chat_tokens({"messages": messages})
        return asking.prompt_tokens(body)

    def thinks(self, form: str, body: Mapping[str, Any]) -> bool:
        """Also in its native routes."""
        return form != "completion" and asking.may_think(body)

    def fitted(self, asked: Asked) -> Asked:
        """What is still too long loses its middle; nothing tells so."""
        longest = max(self.facts.n_ctx - 1, 1)
        prompt = asked.prompt
        if len(prompt) > longest:
            kept = max(longest // 2, min(TEMPLATE_HEAD_TOKENS, longest))
            prompt = prompt[:kept] + prompt[len(prompt) - (longest - kept) :]
        room = self.facts.n_ctx - len(prompt)
        return shortened(replace(asked, prompt=prompt), room)

    def _last_messages(self, body: Mapping[str, Any]) -> array[int]:
        """The conversation without its oldest messages, when it would not fit otherwise."""
        prompt = asking.chat_tokens(body)
        messages = list(body["messages"])
        while len(prompt) >= self.facts.n_ctx:
            oldest = 1 if messages[0].get("role") == "system" else 0
            if len(messages) - oldest < 2:
                break
            del messages[oldest]
            prompt = asking.chat_tokens({**body, "messages": messages})
        return prompt

    def _details(self) -> dict[str, Any]:
        return {
            "parent_model": "",
            "format": "gguf",
            "family": "llama",
            "families": ["llama"],
            "parameter_size": "8.0B",
            "quantization_level": "Q4_K_M",
        }

    def _entry(self, moment: Moment) -> dict[str, Any]:
        return {
            "name": self.facts.model,
            "model": self.facts.model,
            "modified_at": go_stamp(moment.now_s, 0),
            "size": FILE_BYTES,
            "digest": DIGEST,
            "details": self._details(),
        }

    def _listed(self, moment: Moment) -> dict[str, Any]:
        entry = {"id": self.facts.model, "object": "model", "created": moment.now_s}
        return entry | {"owned_by": "library"}

    def _running(self, moment: Moment) -> list[dict[str, Any]]:
        if not moment.bench.is_loaded(moment.now_ns):
            return []
        entry = self._entry(moment)
        del entry["modified_at"]
        in_memory = FILE_BYTES + 131_072 * self.facts.n_ctx
        return [
            entry
            | {
                "size": in_memory,
                "expires_at": go_stamp(moment.now_s + 300, 0),
                "size_vram": round(in_memory * self.facts.gpu_frac),
                "context_length": self.facts.n_ctx,
            }
        ]

    def _card(self) -> dict[str, Any]:
        return {
            "modelfile": f"FROM {self.facts.model}",
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": self._details(),
            "model_info": {
                "general.architecture": "llama",
                "general.parameter_count": 8_030_261_312,
                "llama.block_count": 32,
                "llama.context_length": 131_072,
                "llama.embedding_length": 4096,
            },
            "capabilities": ["completion"],
        }


DIALECT = Ollama
