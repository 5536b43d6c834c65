"""Finds the stories and the made-up runs (tests are no packages)."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent

sys.path[:0] = [str(HERE), str(HERE.parent / "report")]
