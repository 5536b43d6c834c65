"""Text from a server, a file or a command line, made harmless for a terminal and for Markdown."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC and other strings: title, links, clipboard
    r"|\x1b.?"
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~!&@])")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (also what turns the writing direction), surrogate, private, line marks."""


def plain(text: str | None, *, longest: int = 200) -> str:
    """One harmless line: no escape sequences, control or direction characters.

    Source: ECMA-48 for the sequences; Unicode TR36 for the direction characters.
    """
    bare = _ESCAPES.sub("", text or "")
    shown = "".join(" " if c.isspace() else c for c in bare if c.isspace() or _visible(c))
    line = " ".join(shown.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def plain_markdown(text: str | None, *, longest: int = 200) -> str:
    """As `plain`, and nothing in it is markup, a mention or a table cell."""
    return _MARKDOWN.sub(r"\\\1", plain(text, longest=longest))


def _visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE
