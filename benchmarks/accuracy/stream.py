"""One answer as somebody told it, and as the simulator did it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The times of one request."""

    sent: float
    """Orders requests; its unit is the teller's affair."""
    ttft_s: float | None
    """None where the kernel's stamp of the request is not known."""
    gaps_s: list[float]
    shared: list[bool] = field(default_factory=list)
    """By event: whether another one came in the same read. Empty where the client does not say."""


def from_stamps(
    sent: float, stamps_s: Sequence[float], start_s: float = 0.0, shared: Sequence[bool] = ()
) -> Stream:
    """A request whose every text event has a stamp."""
    gaps_s = np.diff(np.array(stamps_s)).tolist()
    return Stream(sent=sent, ttft_s=stamps_s[0] - start_s, gaps_s=gaps_s, shared=list(shared))


def true_streams(path: Path, tokens: int) -> list[Stream]:
    """What the simulator did, in the order in which requests came.

    Args:
        path: of its truth.
        tokens: of a whole answer. Other answers are left out; one whose client hung up right after
            its last text is whole.
    """
    streams = []
    for line in path.read_text().splitlines():
        told = json.loads(line)
        texts_s = [write["actual_ns"] / 1e9 for write in told["writes"] if write["tokens"]]
        if len(texts_s) == tokens:
            stream = from_stamps(told["arrival_ns"], texts_s, told["arrival_ns"] / 1e9)
            known = told["kernel_receive_ns"] is not None
            streams.append(stream if known else replace(stream, ttft_s=None))
    return sorted(streams, key=lambda stream: stream.sent)
