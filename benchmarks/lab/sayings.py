"""What is often said of the two phases, beside what a real engine shows.

    python benchmarks/lab/sayings.py [--rounds 3] [--page docs/lab.md]

Both phases of every request are timed; the arms of a saying take turns, so that a drift of the
machine meets all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))

from faults import words
from pages import put
from requantized import requantized
from scenario import engine
from trials import report_of

from twospeed.records.run_file import read_run
from twospeed.sources.engine.model import fetch_model

TWO = "threads=2"
FLASH = "flash-attn=on"
SAME = 0.1
"""Factors this near to 1 are no difference here: the machine is shared."""
BUSY = 0.15
"""Host load from which a request is asked again, ..."""
TRIES = 3
"""... so often at most."""
LAST = 48
"""Gaps at the end of a long answer, whose depth is that of a longer prompt."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """Medians of one arm.

    Attributes:
        wait_s: until the first token.
        stream_tps: tokens per second after it.
        total_s: the whole request.
        load: largest share of the processors that other programs used meanwhile.
    """

    wait_s: float
    stream_tps: float
    total_s: float
    load: float


@dataclass(frozen=True, slots=True)
class Saying:
    """One claim and what was measured.

    Attributes:
        claim: as people say it.
        measured: what became of wait and stream.
        load: of the machine meanwhile, by other programs.
        holds: whether it was so here.
        note: why, or how far.
        explains: the outcome that the note is about; with the other one it is left out.
    """

    claim: str
    measured: str
    load: float
    holds: bool
    note: str = ""
    explains: bool = True


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to ask: an engine, and a request."""

    url: str
    prompt: int
    output: int = 48

    def asked(self) -> Speeds:
        """One request."""
        shape = ("--prompt-tokens", str(self.prompt), "--output-tokens", str(self.output))
        return speeds(self.url, *shape)


def speeds(url: str, *shape: str) -> Speeds:
    """Both phases of one request, asked again while other programs are busy."""
    tries: list[Speeds] = []
    while len(tries) < TRIES and all(one.load > BUSY for one in tries):
        timing = report_of("time", url, *shape)
        if "error" in timing:
            raise SystemExit(f"twospeed time: {timing['error']}")
        row = timing["requests"][0]
        load = timing["conditions"]["host_load"] or 0.0
        tries.append(Speeds(row["ttft_s"], row["decode_tps"], row["total_s"], load))
    return min(tries, key=lambda one: one.load)


def in_turn(arms: Sequence[Arm], rounds: int) -> list[Speeds]:
    """Medians of each arm over so many rounds, forwards and backwards."""
    seen: list[list[Speeds]] = [[] for _ in arms]
    for number in range(rounds):
        order = range(len(arms))
        for index in order if number % 2 == 0 else reversed(order):
            seen[index].append(arms[index].asked())
    return [typical(each) for each in seen]


def typical(each: Sequence[Speeds]) -> Speeds:
    """Their medians."""
    return Speeds(
        median(one.wait_s for one in each),
        median(one.stream_tps for one in each),
        median(one.total_s for one in each),
        max(one.load for one in each),
    )


def both(before: Speeds, after: Speeds) -> str:
    """What became of both phases."""
    return (
        f"wait {before.wait_s:.2f} to {after.wait_s:.2f} s "
        f"({after.wait_s / before.wait_s:.2f} times), "
        f"stream {before.stream_tps:.0f} to {after.stream_tps:.0f} tok/s "
        f"({after.stream_tps / before.stream_tps:.2f} times)"
    )


def busiest(*arms: Speeds) -> float:
    """The largest load of all."""
    return max(arm.load for arm in arms)


def same(one: float, other: float) -> bool:
    """Whether two numbers differ too little to tell."""
    return abs(one / other - 1.0) <= SAME


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="parts whose name holds these words")
    parser.add_argument("--page", type=Path, help="write the table there, below its marker")
    args = parser.parse_args()
    parts = (by_length, by_quantization, by_two_changes, by_reuse, by_shape)
    said = []
    for part in parts:
        if args.only in part.__name__:
            for saying in part(args.rounds):
                print(saying, flush=True)
                said.append(saying)
    text = table(said)
    print(text)
    if args.page is not None:
        put(text, "sayings", args.page)


def by_length(rounds: int) -> Iterator[Saying]:
    """Longer prompts on one engine."""
    with engine(TWO) as running:
        url = str(running.url)
        Arm(url, 64, 8).asked()
        arms = [Arm(url, prompt) for prompt in (250, 1000, 2000)]
        rows, deep = [], []
        for _ in range(rounds):
            rows.append([arm.asked() for arm in arms])
            deep.append(deep_stream(url, 1000 - LAST))
        short, middle, long = (typical(column) for column in zip(*rows, strict=True))
        at_depth = median(deep)
    ratio = long.wait_s / middle.wait_s
    yield Saying(
        "twice the prompt, twice the wait",
        f"1,000 to 2,000 tokens: {both(middle, long)}",
        busiest(middle, long),
        2 * (1 - SAME) <= ratio <= 2 * (1 + 3 * SAME),
        "a little more than twice: attention looks back over all that came before",
    )
    yield Saying(
        "a bigger prompt does not slow the stream",
        f"250 to 1,000 tokens: {both(short, middle)}",
        busiest(short, middle),
        same(short.stream_tps, middle.stream_tps),
        "it does, by depth: see the next line",
        explains=False,
    )
    yield Saying(
        "what it does to the stream is depth, whoever wrote the tokens",
        f"behind a prompt of 1,000 tokens {middle.stream_tps:.0f} tok/s; behind a prompt of 64 and "
        f"an answer as long {at_depth:.0f} tok/s (250 in: {short.stream_tps:.0f} tok/s)",
        busiest(short, middle),
        abs(middle.stream_tps - at_depth) < abs(middle.stream_tps - short.stream_tps) / 2,
        "most of the loss comes with the tokens of an answer as well",
    )


def deep_stream(url: str, tokens: int) -> float:
    """Tokens per second at the end of an answer so long."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        shape = ("--prompt-tokens", "64", "--output-tokens", str(tokens))
        report_of("time", url, *shape, "--save", str(path))
        arrivals = read_run(path).records[0].arrivals
    return LAST / (arrivals[-1].at_s - arrivals[-1 - LAST].at_s)


def by_quantization(rounds: int) -> Iterator[Saying]:
    """The same weights in three formats."""
    plain = fetch_model()
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        large, middle = (requantized(plain, kind, Path(folder)) for kind in ("F16", "Q8_0"))
        arms = []
        for model in (large, middle, plain):
            running = stack.enter_context(engine(TWO, f"model={model}"))
            arms.append(Arm(str(running.url), 1000))
            Arm(str(running.url), 64, 8).asked()
        sizes = [model.stat().st_size / 1e6 for model in (large, middle, plain)]
        f16, q8, q4 = in_turn(arms, rounds)
    yield Saying(
        "a smaller quantization speeds up the stream",
        f"F16 to Q4_1, {sizes[0]:.0f} to {sizes[2]:.0f} MB: {both(f16, q4)}",
        busiest(f16, q4),
        q4.stream_tps > f16.stream_tps * (1 + SAME),
        "by far less than the bytes: at this depth the KV cache is read as well",
    )
    yield Saying(
        "a smaller quantization does nothing for the wait",
        f"Q8_0 to Q4_1, {sizes[1]:.0f} to {sizes[2]:.0f} MB: {both(q8, q4)}",
        busiest(q8, q4),
        same(q8.wait_s, q4.wait_s),
        "what counts is how fast the processor multiplies the format",
        explains=False,
    )


def by_two_changes(rounds: int) -> Iterator[Saying]:
    """A shorter context and a smaller KV cache at once, and each alone."""
    with engine(TWO, FLASH) as full, engine(TWO, FLASH, "cache-type-k=q8_0",
                                            "cache-type-v=q8_0") as small:  # fmt: skip
        arms = [Arm(str(url), prompt) for url in (full.url, small.url) for prompt in (2000, 1000)]
        for arm in arms[::2]:
            Arm(arm.url, 64, 8).asked()
        before, shorter, smaller, together = in_turn(arms, max(rounds - 1, 1))
    yield Saying(
        "I halved the context and quantized the KV cache, and both got better: KV types help",
        f"both at once: {both(before, together)}",
        busiest(before, shorter, smaller, together),
        holds=smaller.wait_s < before.wait_s and smaller.stream_tps > before.stream_tps,
        note=(
            f"the shorter context alone: {both(before, shorter)}; the KV cache in q8_0 alone: "
            f"{both(before, smaller)}"
        ),
        explains=False,
    )


def by_reuse(rounds: int) -> Iterator[Saying]:
    """The same long beginning again, with and without the prompt cache."""
    with engine(TWO, "cache-prompt=on") as on, engine(TWO, "cache-prompt=off") as off:
        for running in (on, off):
            after_head(str(running.url), 0)
        kept, lost = [], []
        for number in range(1, rounds + 1):
            kept.append(after_head(str(on.url), number))
            lost.append(after_head(str(off.url), number))
    before, after = typical(lost), typical(kept)
    yield Saying(
        "a repeated system prompt costs its wait only once",
        f"the second question behind the same 1,000 tokens, reuse off to on: {both(before, after)}",
        busiest(before, after),
        after.wait_s < before.wait_s / 4 and same(before.stream_tps, after.stream_tps),
        "the stream stays as it is",
    )


def after_head(url: str, number: int) -> Speeds:
    """A question of its own behind the long beginning that all share."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "prompt.txt"
        path.write_text(f"{words(850, 1)} {words(60, 90 + number)}", "utf-8")
        return speeds(url, "--prompt", str(path), "--output-tokens", "48")


def by_shape(rounds: int) -> Iterator[Saying]:
    """As many tokens in all, read or written."""
    with engine(TWO) as running:
        url = str(running.url)
        arms = [Arm(url, 1000, 100), Arm(url, 100, 1000)]
        Arm(url, 64, 8).asked()
        read, written = in_turn(arms, max(rounds - 1, 1))
    yield Saying(
        "as many tokens, as many seconds",
        f"1,000 in and 100 out: {read.total_s:.1f} s, of it the wait {read.wait_s:.1f} s; "
        f"100 in and 1,000 out: {written.total_s:.1f} s, of it the wait {written.wait_s:.1f} s",
        busiest(read, written),
        same(read.total_s, written.total_s),
        f"writing takes {written.total_s / read.total_s:.1f} times as long as reading the same",
        explains=False,
    )


def table(said: Sequence[Saying]) -> str:
    """The claims beside the measurements, as a Markdown table."""
    return "\n".join(
        [
            "| said | measured | so here | why, or how far | host load |",
            "|---|---|---|---|---|",
            *(
                f"| {one.claim} | {one.measured} | {'yes' if one.holds else 'no'} "
                f"| {one.note if one.holds == one.explains else ''} | {one.load:.2f} |"
                for one in said
            ),
        ]
    )


if __name__ == "__main__":
    main()
