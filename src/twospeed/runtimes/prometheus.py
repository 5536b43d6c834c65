"""Samples out of a Prometheus text page, as far as a runtime's gauges need it.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
import re

from twospeed.runtimes.fields import whole

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def total(page: bytes, name: str) -> float | None:
    """Sum of the samples called `name` over all their labels; None where there is none."""
    values = [value for _, value in _samples(page, name)]
    return sum(values) if values else None


def labels(page: bytes, name: str) -> dict[str, str]:
    """Labels of the first sample called `name`, for gauges that carry facts in them."""
    return next((found for found, _ in _samples(page, name)), {})


def requests_in_progress(page: bytes, running: str, waiting: str) -> int | None:
    """Requests by the two gauges of a scheduler; None where the first is not shown."""
    at_work = total(page, running)
    return None if at_work is None else whole(at_work + (total(page, waiting) or 0))


def _samples(page: bytes, name: str) -> list[tuple[dict[str, str], float]]:
    found = []
    for line in page.decode("utf-8", "replace").splitlines():
        if not line.startswith(name):
            continue
        sample = _SAMPLE.match(line)
        value = _value(sample["value"]) if sample else None
        if sample and value is not None and sample["name"] == name:
            found.append((dict(_LABEL.findall(sample["labels"] or "")), value))
    return found


def _value(written: str) -> float | None:
    try:
        value = float(written)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
