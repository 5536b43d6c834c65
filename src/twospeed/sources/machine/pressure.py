"""For how long something had to wait for a processor or for memory, as Linux counts it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from twospeed.sources.machine.system_files import ROOT, text_of


def stalled_s(resource: Literal["cpu", "memory"], root: Path = ROOT) -> float | None:
    """Time since start-up in which some task waited for a resource, in seconds.

    Returns:
        None where the system does not tell.

    Source: Documentation/accounting/psi.rst of Linux.
    """
    text = text_of(root / "proc" / "pressure" / resource) or ""
    found = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return None if found is None else int(found[1]) / 1e6


def share_between(before_s: float | None, after_s: float | None, span_s: float) -> float | None:
    """Share of a span that was spent waiting (0 … 1).

    Args:
        before_s: waited until its start, in seconds.
        after_s: waited until its end, in seconds.
        span_s: its length in seconds.

    Returns:
        None where either is unknown, or the span has no length.
    """
    if before_s is None or after_s is None or span_s <= 0:
        return None
    return min(1.0, max(0.0, (after_s - before_s) / span_s))
