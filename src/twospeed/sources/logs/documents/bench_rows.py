"""What rows of benchmark tables have in common: names of tests, speeds with spread, settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from twospeed.records.json_text import encoded
from twospeed.records.run import BenchmarkPoint
from twospeed.runtimes.fields import LARGEST_WHOLE, MOST_TOKENS
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.plain_text import number_in, numbers_in, whole_in

Phase = Literal["prefill", "decode", "mixed"]
Settings = dict[str, str | int | float | bool | None]

FASTEST_TPS = 1e9
"""No machine reads or writes as many tokens per second: the time was no measurement."""
LONGEST_WORD = 400

_TEST = re.compile(
    r"(?P<context>ctx_)?(?P<kind>pp|tg) ?(?P<tokens>\d{1,9})?(?:\+tg ?(?P<more>\d{1,9}))?"
    r"(?: ?@ ?(?:d|pp) ?(?P<depth>\d{1,9}))?(?: \(c(?P<together>\d{1,6})\))?"
)
_SIZE = re.compile(r"([\d.,]{1,16}) ?([KMGT])i?B", re.IGNORECASE)
_COUNT = re.compile(r"([\d.,]{1,16}) ?([KMBT])\b", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "B": 3, "T": 4}
_QUANTIZATION = re.compile(r"\b(I?Q\d_?\w{0,8}|BF16|F16|F32|MXFP4)\b")
_BACKENDS = {
    "cuda": "cuda",
    "metal": "metal",
    "mtl": "metal",
    "vulkan": "vulkan",
    "rocm": "rocm",
    "hip": "rocm",
    "sycl": "sycl",
    "cpu": "cpu",
    "blas": "cpu",
}


class Test(NamedTuple):
    """What a row measured."""

    phase: Phase
    tokens: int | None
    depth_tokens: int
    together: int | None = None
    """Requests at the same time, where the name tells."""


def parse_test(name: str) -> Test | None:
    """The test behind a name such as "pp512", "tg128 @ d4096", "pp512+tg128" or "ctx_pp @ d2048".

    "ctx_pp @ d2048" reads the 2048 tokens themselves, from an empty context.
    """
    found = _TEST.fullmatch(name.strip())
    if found is None:
        return None
    tokens = int(found["tokens"]) if found["tokens"] else None
    depth = int(found["depth"] or 0)
    together = int(found["together"]) if found["together"] else None
    if found["kind"] == "tg":
        return Test("decode", tokens, depth, together) if not found["more"] else None
    if found["more"]:
        return Test("mixed", (tokens or 0) + int(found["more"]), depth, together)
    if found["context"]:
        return Test("prefill", depth, 0, together) if depth else None
    return Test("prefill", tokens, depth, together) if tokens else None


def benchmark_point(
    phase: Phase,
    tokens: int | None,
    depth_tokens: int | None,
    tps: float | None,
    *,
    sd: float | None = None,
    settings: Settings | None = None,
    line: int | None = None,
) -> BenchmarkPoint | None:
    """One point; None where the speed is missing or cannot be one."""
    if tps is None or not 0 < tps <= FASTEST_TPS or (tokens or 0) > MOST_TOKENS:
        return None
    if depth_tokens is not None and depth_tokens > MOST_TOKENS:
        return None
    return BenchmarkPoint(
        phase=phase,
        tokens=tokens,
        depth_tokens=depth_tokens,
        tps=tps,
        sd=sd if sd is not None and 0 <= sd <= FASTEST_TPS else None,
        settings=settings or {},
        line=line,
    )


def unique(points: Iterable[BenchmarkPoint | None]) -> list[BenchmarkPoint]:
    """Points without those that a second paste of the same table repeats."""
    kept: dict[bytes, BenchmarkPoint] = {}
    for point in points:
        if point is not None:
            kept.setdefault(encoded(replace(point, line=None)), point)
    return list(kept.values())


def speed_and_spread(cell: str) -> tuple[float | None, float | None]:
    """Both numbers of "4454.16 ± 13.74", however the sign between them arrived."""
    if number_in(cell) is None:
        return None, None
    found = numbers_in(cell[:LONGEST_WORD])
    return found[0], abs(found[1]) if len(found) > 1 else None


def agreeing(told: float | None, counted: float | None) -> float | None:
    """A printed speed where it agrees with count and time, else what these give."""
    if told is None or counted is None:
        return counted if told is None else told
    return told if abs(told - counted) <= 0.05 * counted else counted


def settings_of(row: Mapping[str, object]) -> Settings:
    """The set-up that a row tells, by the names of RuntimeFacts."""
    told: Settings = {}
    for names, name, meaning in _SETTINGS:
        value = next((row[one] for one in names if row.get(one) not in (None, "")), None)
        read = None if value is None else meaning(_words(value))
        if read is not None:
            told[name] = read
    return told


def learn_common(content: Content, points: Sequence[BenchmarkPoint]) -> None:
    """Take up as facts what every row says alike."""
    alike: Settings = {}
    for name in points[0].settings:
        values = {point.settings.get(name) for point in points}
        if len(values) == 1:
            alike[name] = values.pop()
    content.learn(**{name: alike.get(name) for name in _FACTS})
    if alike.get("no_kv_offload") is True:
        content.learn(kv_cache_on_cpu=True)
    model = alike.get("model")
    if isinstance(model, str):
        content.model = content.model or model
        found = _QUANTIZATION.search(model)
        content.learn(quantization=found[1] if found else None)


def _words(value: object) -> str:
    return str(value)[:LONGEST_WORD] if isinstance(value, str | int | float) else ""


def _text(words: str) -> str | None:
    return words.strip() or None


def _count(words: str) -> int | None:
    found = whole_in(words)
    return found if found is not None and found <= MOST_TOKENS else None


def _size(words: str) -> int | None:
    """Bytes of "4.60 GiB"; a bare number is bytes."""
    return _scaled(words, _SIZE.search(words), 1024.0)


def _parameters(words: str) -> int | None:
    """The count behind "8.03 B"."""
    return _scaled(words, _COUNT.search(words), 1000.0)


def _scaled(words: str, found: re.Match[str] | None, step: float) -> int | None:
    number = number_in(found[1] if found else words)
    if number is None:
        return None
    whole = round(number * step ** (_POWERS[found[2].upper()] if found else 0))
    return whole if whole <= LARGEST_WHOLE else None


def _flag(words: str) -> bool | None:
    return {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}.get(
        words.strip().casefold()
    )


def _backend(words: str) -> str | None:
    """The first that computes; BLAS beside another is no other."""
    names = [name.strip().casefold() for name in words.split(",")]
    known = [_BACKENDS[name] for name in names if name in _BACKENDS]
    return next((name for name in known if name != "cpu"), known[0] if known else None)


_Meaning = Callable[[str], str | int | bool | None]
_SETTINGS: tuple[tuple[tuple[str, ...], str, _Meaning], ...] = (
    (("model", "model_type"), "model", _text),
    (("model_filename",), "model_path", _text),
    (("size", "model_size"), "size_bytes", _size),
    (("params", "model_n_params"), "parameters", _parameters),
    (("backend", "backends"), "backend", _backend),
    (("ngl", "n_gpu_layers"), "layers_offloaded", _count),
    (("threads", "n_threads"), "threads", _count),
    (("n_batch",), "n_batch", _count),
    (("n_ubatch",), "n_ubatch", _count),
    (("type_k",), "kv_type_k", _text),
    (("type_v",), "kv_type_v", _text),
    (("fa", "flash_attn"), "flash_attn", _flag),
    (("nkvo", "no_kv_offload"), "no_kv_offload", _flag),
    (("mmap", "use_mmap"), "mmap", _flag),
    (("sm", "split_mode"), "split_mode", _text),
    (("n_cpu_moe", "ncmoe"), "n_cpu_moe", _count),
    (("test",), "test", _text),
)
_FACTS = (
    "n_batch",
    "n_ubatch",
    "threads",
    "flash_attn",
    "kv_type_k",
    "kv_type_v",
    "size_bytes",
    "parameters",
    "model_path",
    "backend",
)
"""Settings that are facts; the number of layers is what was asked for, often 99 for "all"."""
