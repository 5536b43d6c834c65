"""Takes off a line what terminals, loggers, chat programs and copying put around it."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\[(?:0|3[0-7]|1;3[0-7])m"
)
_QUOTED = re.compile(r"^(?:\s*>)+ ?")
_PREFIXES = re.compile(
    r"^(?:"
    r"\S{1,5}\s+\d{1,2}\s\d\d:\d\d:\d\d\s(?:\S+\s)?[\w./@-]+\[\d+\]:\s"  # journald, any language
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,:Z+-]*\s(?:\S+\s[\w./@-]+\[\d+\]:\s)?"  # docker, ISO
    r"|[\w.-]{1,60}\s+\|\s"  # docker compose
    r"|\[\d{3,6}\]\s(?=\d+\.\d\d\.\d{3}\.\d{3}\s)"  # child of the llama-server router
    r"|\(\w+ pid=\d+\)\s"  # vLLM
    r"|\[\d{10}\]\s\[[^\]]*\]\[\s*\w+\]\s"  # nitro
    r")"
)
_CLOCK = re.compile(r"^([0-9]{1,7}\.[0-9]{2}\.[0-9]{3}\.[0-9]{3})\s[A-Z]\s")
_BOLD = re.compile(r"^\*\*(.*?)\*\*\s*(?:<-+.*)?$")
MOST_PREFIXES = 4
LONGEST_LINE = 16 * 1024


def cleaned(raw: str) -> tuple[str, str | None]:
    """The line itself, and the clock that llama-server prints before it.

    Of several states that a terminal would show over each other all are kept.
    """
    text = raw[:LONGEST_LINE].rstrip()
    if (
        ">" in text or "\x1b" in text or "\r" in text or "Â±" in text or "\ufeff" in text
        or ("[" in text and ("[0m" in text or "[3" in text or "[1;3" in text))
    ):  # fmt: skip
        text = _untangled(text)
    clock = _CLOCK.match(text)
    if clock is None:
        text = _bare(text)
        clock = _CLOCK.match(text)
    if clock is None:
        return text, None
    return text[clock.end() :], clock[1]


def _bare(text: str) -> str:
    """Without quote marks, bold marks and the prefixes of loggers."""
    first = text[:1]
    if first in (" ", ">"):
        text = _QUOTED.sub("", text).lstrip()
    if text[:1] == "*":
        text = _BOLD.sub(r"\1", text)
    for _ in range(MOST_PREFIXES):
        found = _PREFIXES.match(text)
        if found is None:
            break
        text = text[found.end() :]
    return text


def _untangled(text: str) -> str:
    """Without what terminals, pagers and wrong encodings leave behind."""
    text = _ESCAPES.sub("", text).removeprefix("\ufeff")
    text = text.replace("\r", " ").replace("Â±", "±")
    return text.rstrip().removesuffix(">").rstrip()
