"""LM Studio: its native `/api/v1` and `/api/v0`, and the OpenAI-compatible routes.

`/api/v1/chat` streams named events for load, prompt and message; `/api/v0` tells `stats` only
without a stream. Cached tokens are told nowhere.

Source: lmstudio-ai/docs 1_developer/2_rest; the overflow error from lmstudio-bug-tracker 2256.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.simulator import asking
from twospeed.simulator.dialect import Dialect, Moment, Voice, http_date
from twospeed.simulator.exchange import BadFieldError, Reply, Request, json_reply
from twospeed.simulator.job import Job
from twospeed.simulator.lmstudio_voice import CompatibleVoice, NativeVoice, OldVoice

JSON = "application/json; charset=utf-8"
FILE_BYTES = 4_920_737_984
TRAINED_CONTEXT = 131_072


class LmStudio(Dialect):
    """LM Studio with one model on its disk."""

    name: ClassVar[str] = "lmstudio"
    forms: ClassVar[Mapping[str, str]] = {
        **Dialect.forms,
        "/api/v0/chat/completions": "v0_chat",
        "/api/v0/completions": "v0_completion",
        "/api/v1/chat": "v1_chat",
    }
    limit_names: ClassVar[tuple[str, ...]] = ("max_output_tokens", *Dialect.limit_names)

    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """As a server on Node.js."""
        lines = ["X-Powered-By: Express", f"Content-Type: {content_type}"]
        if content_type == "text/event-stream":
            lines.append("Cache-Control: no-cache")
        if origin:
            lines.append(f"Access-Control-Allow-Origin: {origin}")
        lines.append(f"Date: {http_date(now_s)}")
        if body_line:
            lines.append(body_line)
        kept = ["Connection: keep-alive", "Keep-Alive: timeout=5"]
        return [*lines, "Connection: close"] if closing else [*lines, *kept]

    def answer(self, request: Request, moment: Moment) -> Reply | None:
        """Model lists of three ages."""
        if request.method != "GET":
            return None
        loaded = moment.bench.is_loaded(moment.now_ns)
        named = {"id": self.facts.model, "object": "model", "owned_by": "organization_owner"}
        known: dict[str, Any] = {
            "/v1/models": {"data": [named], "object": "list"},
            "/api/v0/models": {"object": "list", "data": [self._old_entry(loaded=loaded)]},
            f"/api/v0/models/{self.facts.model}": self._old_entry(loaded=loaded),
            "/api/v1/models": {"models": [self._entry(loaded=loaded)]},
        }
        found = known.get(request.path)
        return None if found is None else json_reply(found, content_type=JSON)

    def refusal(self, status: int, message: str) -> Reply:
        """Nothing but a text."""
        return json_reply({"error": message}, status, JSON)

    def not_found(self) -> Reply:
        """It answers with 200 all the same."""
        return json_reply({"error": "Unexpected endpoint or method."}, 200, JSON)

    def bad_json(self, detail: str) -> Reply:
        """By the validation of its web framework."""
        return self.refusal(400, f"Invalid JSON: {detail}")

    def bad_field(self, error: BadFieldError) -> Reply:
        """Names the field."""
        wrong = "is required" if error.problem == "missing" else "has an invalid value"
        return self.refusal(400, f"'{error.field}' field {wrong}")

    def too_long(self, prompt_tokens: int) -> Reply:
        """The prompt as a whole must be kept."""
        return self.refusal(
            400,
            "The number of tokens to keep from the initial prompt is greater than the context "
            f"length (n_keep: {prompt_tokens}>= n_ctx: {self.facts.n_ctx}). Try to load the model "
            "with a larger context length, or provide a shorter input.",
        )

    def voice(self, job: Job, *, counts: bool = True) -> Voice:
        """By the route that was asked."""
        kinds: dict[str, type[NativeVoice | CompatibleVoice]] = {
            "v1_chat": NativeVoice,
            "v0_chat": OldVoice,
            "v0_completion": OldVoice,
        }
        return kinds.get(job.asked.form, CompatibleVoice)(self.facts, job, counts=counts)

    def prompt(self, form: str, body: Mapping[str, Any]) -> array[int]:
        """`/api/v1/chat` takes one message and a system prompt."""
        if form != "v1_chat":
            return super().prompt(form.removeprefix("v0_"), body)
        system = body.get("system_prompt")
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": asking.string(body, "input")})
        return asking.chat_tokens({"messages": messages})

    def thinks(self, form: str, body: Mapping[str, Any]) -> bool:
        """Unless told otherwise."""
        return "chat" in form and body.get("reasoning") != "off" and asking.may_think(body)

    def _old_entry(self, *, loaded: bool) -> dict[str, Any]:
        entry = {
            "id": self.facts.model,
            "object": "model",
            "type": "llm",
            "publisher": "twospeed",
            "arch": "llama",
            "compatibility_type": "gguf",
            "quantization": "Q4_K_M",
            "state": "loaded" if loaded else "not-loaded",
            "max_context_length": TRAINED_CONTEXT,
        }
        return entry | ({"loaded_context_length": self.facts.n_ctx} if loaded else {})

    def _entry(self, *, loaded: bool) -> dict[str, Any]:
        config = {
            "context_length": self.facts.n_ctx,
            "eval_batch_size": 512,
            "flash_attention": True,
            "offload_kv_cache_to_gpu": True,
        }
        return {
            "type": "llm",
            "publisher": "twospeed",
            "key": self.facts.model,
            "display_name": "Simulated 8B",
            "architecture": "llama",
            "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
            "size_bytes": FILE_BYTES,
            "params_string": "8B",
            "loaded_instances": [{"id": self.facts.model, "config": config}] if loaded else [],
            "max_context_length": TRAINED_CONTEXT,
            "format": "gguf",
            "capabilities": {"vision": False, "trained_for_tool_use": True},
            "description": None,
        }


DIALECT = LmStudio
