"""Dialect of /v1/chat/completions and of LM Studio's /api/v0/chat/completions.

The answer is in `delta` (stream) or `message` (body). Reasoning has three names: llama-server
and SGLang say `reasoning_content`, vLLM, Ollama and mlx_lm.server `reasoning`, others `thinking`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from twospeed.records.request_record import TextKind
from twospeed.wire.collecting import Message, Texts, parted_text, take_aside
from twospeed.wire.json_values import as_text, get_dict, get_dicts, get_str
from twospeed.wire.openai_chunk import read_chunk
from twospeed.wire.reading import StreamReading, TextEvent

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")


class _Delta(Struct, frozen=True, gc=False):
    """A delta with nothing in it but answer text, or reasoning under one of its names."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking: str | None = None
    refusal: None = None
    function_call: None = None
    tool_calls: tuple[()] | None = None


class _Choice(Struct, frozen=True, gc=False):
    delta: _Delta
    finish_reason: None = None


class _Chunk(Struct, frozen=True, gc=False):
    """A chunk in mid-stream; whatever means more than text has no room here."""

    choices: tuple[_Choice]
    model: str | None = None
    usage: dict[str, Any] | None = None
    object: str | None = None
    type: str | None = None
    error: None = None
    timings: None = None
    metrics: None = None
    stats: None = None
    prompt_progress: None = None


_chunk_of = msgspec.json.Decoder(_Chunk).decode


def read_plain(reading: StreamReading, raw: bytes, at_ns: int, read: int) -> bool:
    """Enter a chunk that holds one piece of text and at most running counts; decline all others.

    Args:
        reading: what is being filled.
        raw: JSON of the chunk.
        at_ns: its stamp.
        read: index of its socket read.
    """
    try:
        chunk = _chunk_of(raw)
    except (ValueError, RecursionError):
        return False
    delta = chunk.choices[0].delta
    thought = delta.reasoning_content or delta.reasoning or delta.thinking
    if chunk.object == "error" or chunk.type == "error" or bool(thought) == bool(delta.content):
        return False
    told = None
    if chunk.usage is not None or reading.model is None:
        told = take_aside(reading, chunk.model, chunk.usage)
    kind: TextKind = "reasoning" if thought else "answer"
    text = thought or delta.content or ""
    event = TextEvent(at_ns=at_ns, read=read, kind=kind, text=text, output_tokens=told)
    reading.text.append(event)
    return True


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
