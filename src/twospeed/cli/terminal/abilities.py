"""What standard output can show."""

from __future__ import annotations

import os
import sys


def shows_colour(*, no_color: bool) -> bool:
    """Colour only on a terminal, never against NO_COLOR (no-color.org) or --no-color."""
    if no_color or os.environ.get("NO_COLOR"):
        return False
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
