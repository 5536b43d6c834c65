"""Dialect of /v1/chat/completions and of LM Studio's /api/v0/chat/completions.

The answer is in `delta` (stream) or `message` (body). Reasoning has three names: llama-server
and SGLang say `reasoning_content`, vLLM, Ollama and mlx_lm.server `reasoning`, others `thinking`.
"""

from __future__ import annotations

from typing import Any

from twospeed.wire.collecting import Message, Texts, parted_text
from twospeed.wire.json_values import as_text, get_dict, get_dicts, get_str
from twospeed.wire.openai_chunk import read_chunk
from twospeed.wire.reading import StreamReading

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")


def read_event(reading: StreamReading, message: Message) -> None:
    """Enter one chunk of the stream into the reading.

    Args:
        reading: what is being filled.
        message: the chunk.
    """
    read_chunk(reading, message, _texts_of)


def read_body(reading: StreamReading, message: Message) -> None:
    """Enter an answer that came whole into the reading.

    Args:
        reading: what is being filled.
        message: the answer, at the moment of its end.
    """
    read_chunk(reading, message, _texts_of)


def _texts_of(choice: dict[str, Any]) -> Texts:
    said = get_dict(choice, "delta") or get_dict(choice, "message")
    content = parted_text(said.get("content"))
    calls = [get_dict(call, "function") for call in get_dicts(said, "tool_calls")]
    calls.append(get_dict(said, "function_call"))
    return Texts(
        answer=content.answer or get_str(said, "refusal"),
        reasoning=_reasoning(said) + content.reasoning,
        tool="".join(get_str(call, "name") + as_text(call.get("arguments")) for call in calls),
    )


def _reasoning(said: dict[str, Any]) -> str:
    # Some servers send the same text under two names: the first one counts.
    for key in _REASONING_KEYS:
        parts = parted_text(said.get(key))
        text = parts.reasoning + parts.answer
        if text:
            return text
    return ""
