"""Small files in which Linux shows its state: what cannot be read is unknown, never an error.

Every reader of this package takes `root`, below which it looks for /proc, /sys and /dev.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path("/")


def text_of(path: Path) -> str | None:
    """The text of a file without space around it; None where it cannot be read or is empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def number_of(path: Path, *, times: int = 1) -> int | None:
    """The whole number that a file holds, in units of our own.

    Args:
        path: a file with one number.
        times: by what to multiply it, for example 1000 for kHz.

    Returns:
        None where there is none, or a negative one, which drivers use for "not known".
    """
    text = text_of(path)
    return int(text) * times if text is not None and text.isdecimal() else None


def named_number(path: Path, name: str) -> int | None:
    """The number behind a name in a file of lines such as `name 7`, `name: 7 kB`, `name=7`."""
    text = text_of(path)
    if text is None:
        return None
    found = re.search(rf"^{re.escape(name)}[:=]?\s*(\d+)", text, re.MULTILINE)
    return None if found is None else int(found[1])


def listed_numbers(text: str | None) -> tuple[int, ...]:
    """The numbers of a list as the kernel writes it: `0-3,8` are 0, 1, 2, 3 and 8."""
    spans = re.findall(r"(\d+)(?:-(\d+))?", text or "")
    return tuple(
        number for first, last in spans for number in range(int(first), int(last or first) + 1)
    )


def numbered(directory: Path, name: str) -> list[Path]:
    """Directories of such a name with a number behind it, in the order of the numbers."""
    found = [path for path in directory.glob(f"{name}*") if path.name[len(name) :].isdecimal()]
    return sorted(found, key=lambda path: int(path.name[len(name) :]))
