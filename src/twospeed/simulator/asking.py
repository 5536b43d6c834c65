"""Reads request bodies: every field of a stranger's JSON has the expected type or is refused."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from twospeed.simulator.exchange import BadFieldError, BadJsonError, as_json
from twospeed.simulator.tokens import ALL_IDS, encode, render_chat, text_of

UNLIMITED = -1
LARGEST_LIMIT = 2**31 - 1


def json_object(body: bytes) -> dict[str, Any]:
    """The body of a request.

    Raises:
        BadJsonError: it is no JSON object.
    """
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadJsonError(str(error)) from error
    if not isinstance(found, dict):
        raise BadJsonError("the body is not an object")
    return found


def string(body: Mapping[str, Any], name: str) -> str:
    """A text field.

    Raises:
        BadFieldError: it is missing or no text.
    """
    value = body.get(name)
    if not isinstance(value, str):
        raise BadFieldError(name, "missing" if value is None else "type", value)
    return value


def chat_messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message.

    Raises:
        BadFieldError: there are none, or one is no message.
    """
    messages = body.get("messages")
    if messages is None:
        raise BadFieldError("messages", "missing")
    if not isinstance(messages, list) or not messages:
        raise BadFieldError("messages", "type", messages)
    return [_message(message) for message in messages]


def chat_tokens(body: Mapping[str, Any]) -> array[int]:
    """Tokens of a chat, tools and template included."""
    tools = body.get("tools")
    return render_chat(chat_messages(body), as_json(tools).decode() if tools else "")


def prompt_tokens(body: Mapping[str, Any], name: str = "prompt") -> array[int]:
    """Tokens of a prompt without a template: a text, a list with one text, or token ids.

    Raises:
        BadFieldError: it is missing or none of these.
    """
    prompt = body.get(name)
    if prompt is None:
        raise BadFieldError(name, "missing")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return encode(prompt)
    if isinstance(prompt, list) and all(_is_id(token) for token in prompt):
        return array("I", prompt)
    raise BadFieldError(name, "type", prompt)


def limit(body: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """Most tokens to say, by the first of `names` that is there; None for no limit.

    Raises:
        BadFieldError: it is no whole number, or one that no limit can be.
    """
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadFieldError(name, "type", value)
        if not UNLIMITED <= value <= LARGEST_LIMIT:
            raise BadFieldError(name, "range", value)
        return None if value == UNLIMITED else max(value, 1)
    return None


def includes_usage(body: Mapping[str, Any]) -> bool:
    """Whether the client asked for usage in the stream."""
    options = body.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


def may_think(body: Mapping[str, Any]) -> bool:
    """Whether the client left reasoning on."""
    arguments = body.get("chat_template_kwargs")
    thinking = arguments.get("enable_thinking") if isinstance(arguments, Mapping) else None
    return thinking is not False and body.get("think") is not False


def _message(message: object) -> tuple[str, str]:
    role = message.get("role") if isinstance(message, Mapping) else None
    text = text_of(message.get("content")) if isinstance(message, Mapping) else None
    if not isinstance(role, str) or text is None or not isinstance(message, Mapping):
        raise BadFieldError("messages", "type", message)
    calls = message.get("tool_calls")
    return role, text + (as_json(calls).decode() if calls else "")


def _is_id(token: object) -> bool:
    return isinstance(token, int) and not isinstance(token, bool) and 0 <= token < ALL_IDS
