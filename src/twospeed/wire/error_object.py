"""What a server says went wrong, dug out of the shapes in use.

`{"error": {"message": …}}` (OpenAI, llama-server, vLLM), `{"error": "…"}` (Ollama, mlx_lm.server),
`{"detail": "…"}` or `{"detail": [{"msg": …}]}` (FastAPI: transformers serve, TabbyAPI),
`{"object": "error", "message": "…"}` (older vLLM), a bare `{"message": …}` in an event named error.
"""

from __future__ import annotations

from typing import Any

from twospeed.wire.json_values import as_text, get_str


def stream_error(value: dict[str, Any], event_name: str | None) -> str | None:
    """Message of an error object inside an accepted response; None when it carries none.

    Args:
        value: one event, or the whole body.
        event_name: name of the event where events have names.
    """
    error = value.get("error")
    if error:
        return _message(error)
    named = event_name == "error" or "error" in (value.get("object"), value.get("type"))
    return _message(value) if named else None


def refusal_message(value: object) -> str | None:
    """Message in the JSON body of a refused request; None when it holds none.

    Args:
        value: the decoded body.
    """
    if not isinstance(value, dict):
        return None
    for key in ("error", "detail", "message"):
        if value.get(key):
            return _message(value[key])
    return None


def _message(error: object) -> str:
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, dict):
        return _one_line(as_text(error)) or "an error without a message"
    for key in ("message", "msg", "error", "detail"):
        text = get_str(error, key)
        if text:
            return _one_line(text)
    return _one_line(as_text(error)) or "an error without a message"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:1000]
