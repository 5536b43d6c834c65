"""`mlx_lm.benchmark`: trials with the speed of each phase; the line of averages is no trial.

| text | tells | cannot tell |
|---|---|---|
| mlx_lm.benchmark | both speeds per trial | depth, waiting |

    Timing with prompt_tokens=512, generation_tokens=128, batch_size=1.
    Trial 1:  prompt_tps=566.577, generation_tps=48.408, peak_memory=6.200, total_time=3.806
"""

from __future__ import annotations

import re

from twospeed.records.run import BenchmarkPoint
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.bench_rows import benchmark_point, unique
from twospeed.sources.logs.documents.plain_text import number_in

_HEAD = re.compile(
    r"prompt_tokens=(?P<prompt>\d{1,9}), ?generation_tokens=(?P<output>\d{1,9})"
    r"(?:, ?batch_size=(?P<together>\d{1,6}))?"
)
_TRIAL = re.compile(
    r"\bTrial (?P<trial>\d{1,6}): {0,8}prompt_tps=(?P<prefill>[\d.,]{1,16}), "
    r"{0,8}generation_tps=(?P<decode>[\d.,]{1,16})"
)


def recognises(text: str) -> bool:
    """By the names of both speeds."""
    return "prompt_tps=" in text and "generation_tps=" in text


def read(text: str) -> Content | None:
    """Two points per trial."""
    points, line, counted = list[BenchmarkPoint](), 1, 0
    prompt = output = None
    together = 1
    heads = {found.start(): found for found in _HEAD.finditer(text)}
    trials = {found.start(): found for found in _TRIAL.finditer(text)}
    for start in sorted(heads | trials):
        line, counted = line + text.count("\n", counted, start), start
        if start in heads:
            head = heads[start]
            prompt, output = int(head["prompt"]), int(head["output"])
            together = int(head["together"] or 1) or 1
            continue
        points += _points(trials[start], prompt, output, together, line)
    return Content(runtime="mlx_lm", points=unique(points)) if points else None


def _points(
    trial: re.Match[str], prompt: int | None, output: int | None, together: int, line: int
) -> list[BenchmarkPoint]:
    decode_tps = number_in(trial["decode"])
    found = (
        benchmark_point(
            "prefill",
            prompt,
            0,
            number_in(trial["prefill"]),
            settings={"slots": together},
            line=line,
        ),
        benchmark_point(
            "decode",
            output,
            prompt,
            decode_tps / together if decode_tps else None,
            settings={"slots": together},
            line=line,
        ),
    )
    return [point for point in found if point is not None]
