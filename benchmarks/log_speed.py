"""How fast a log is read: megabytes a second on one core, and memory, beside `grep -c`.

    python benchmarks/log_speed.py [--mb 200] [--profile FILE]

Two logs of llama-server are made up: in one, a line in 50 matters, in the other every line does.
A child process reads each from the file, as `twospeed read` does; `grep -c 'eval time'` reads the
same file before and after it. Memory is the child's peak, the interpreter included.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LONGEST_RUN_S = 600
KINDS = ("one in 50", "every line")
WORDS = [
    "srv",
    "log_server_r",
    "request",
    "done",
    "POST",
    "/v1/chat/completions",
    "127.0.0.1",
    "200",
    "params",
    "from",
    "handler",
    "que",
    "start_loop",
    "waiting",
    "for",
    "new",
    "tasks",
    "update_chat_ok",
    "main",
    "processing",
    "queue",
    "stopped",
    "response",
    "chunk",
    "sent",
    "keep",
    "alive",
    "health",
    "connection",
    "opened",
    "closed",
    "stream",
    "finished",
    "next",
    "stop",
    "reading",
    "template",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--profile", help="write the profile of the reading there")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part is not None:
        print(json.dumps(read(args.part, args.profile)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = Path(folder) / "server.log"
            write_log(path, args.mb * 10**6, sparse=kind == KINDS[0])
            report(kind, path, args.profile)


def report(kind: str, path: Path, profile: str | None) -> None:
    """Read one log both ways and print what that took."""
    before_s = grep_s(path)
    words = [sys.executable, __file__, "--part", str(path)]
    words += ["--profile", profile] if profile else []
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=LONGEST_RUN_S)
    told = json.loads(done.stdout)
    size_mb = path.stat().st_size / 1e6
    grep = "no grep here"
    if before_s is not None:
        both_s = (before_s + (grep_s(path) or before_s)) / 2
        grep = f"{told['wall_s'] / both_s:.1f} times the {both_s:.2f} s of grep -c"
    print(
        f"{kind}: {size_mb:.0f} MB in {told['wall_s']:.2f} s ({size_mb / told['wall_s']:.0f} MB/s, "
        f"{size_mb / told['cpu_s']:.0f} per second of processor time), {grep}, "
        f"peak {told['peak_mb']:.0f} MB, {told['requests']:,} requests; "
        f"host load {os.getloadavg()[0]:.2f}",
        flush=True,
    )


def read(path: Path, profile: str | None) -> dict[str, float]:
    """What reading a log took this process."""
    from cProfile import Profile  # noqa: PLC0415  (the parent does without)

    from twospeed.sources.logs.reading import read_file  # noqa: PLC0415

    watch = Profile() if profile else None
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    content, dropped = watch.runcall(read_file, str(path)) if watch else read_file(str(path))
    took = {"wall_s": time.perf_counter() - began_s, "cpu_s": time.process_time() - began_cpu_s}
    if watch:
        watch.dump_stats(profile)
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**took, "peak_mb": peak_kb * 1024 / 1e6, "requests": len(content.records) + dropped}


def grep_s(path: Path) -> float | None:
    """Seconds that grep needs for the same file; None where there is none."""
    if shutil.which("grep") is None:
        return None
    began_s = time.perf_counter()
    subprocess.run(
        ["grep", "-c", "eval time", str(path)],
        stdout=subprocess.PIPE,  # with /dev/null grep stops at the first line
        check=False,
        env={**os.environ, "LC_ALL": "C"},
        timeout=LONGEST_RUN_S,
    )
    return time.perf_counter() - began_s


def write_log(path: Path, size_bytes: int, *, sparse: bool) -> None:
    """A log of about that size: a piece of some megabytes, over and over."""
    chance = random.Random(5)
    piece = "".join(piece_of(chance, sparse=sparse)).encode()
    with path.open("wb") as file:
        for _ in range(max(size_bytes // len(piece), 1)):
            file.write(piece)


def piece_of(chance: random.Random, *, sparse: bool) -> Iterator[str]:
    """Lines of 2,000 requests (sparse: 200), between lines that say nothing where sparse."""
    at_us = 0
    for task in range(200 if sparse else 2000):
        for said in request_lines(chance, task):
            at_us += chance.randrange(200, 90_000)
            clock = f"{at_us // 60_000_000}.{at_us // 1_000_000 % 60:02d}."
            clock += f"{at_us // 1000 % 1000:03d}.{at_us % 1000:03d}"
            yield f"{clock} I slot {said}\n"
            for _ in range(49 if sparse else 0):
                yield f"{clock} I srv  {' '.join(chance.choices(WORDS, k=11))} {task}\n"


def request_lines(chance: random.Random, task: int) -> Iterator[str]:
    """One request as its slot tells it."""
    new, kept, made = chance.randrange(40, 9000), chance.randrange(0, 900), chance.randrange(8, 700)
    slot = f"id  {task % 4} | task {task} |"
    prompt_ms, answer_ms = new * chance.uniform(0.7, 0.9), made * chance.uniform(15, 19)
    yield f"launch_slot_: {slot} processing task, is_child = 0"
    yield (
        f"update_slots: {slot} new prompt, n_ctx_slot = 32768, n_keep = 0, task.n_tokens = "
        f"{new + kept}"
    )
    yield f"update_slots: {slot} cached n_tokens = {kept}, memory_seq_rm [{kept}, end)"
    for done in range(2048, new, 2048):
        share, spent_s = done / new, prompt_ms / 1e3 * done / new
        yield (
            f"print_timing: {slot} prompt processing, n_tokens = {done + kept:6d}, progress = "
            f"{share:.2f}, t = {spent_s:6.2f} s / {done / spent_s:.2f} tokens per second"
        )
    yield timing(slot, "prompt eval", prompt_ms, new)
    yield timing(slot, "       eval", answer_ms, made)
    yield (
        f"print_timing: {slot}       total time = {prompt_ms + answer_ms:10.2f} ms / "
        f"{new + made:5d} tokens"
    )
    yield f"release: {slot} stop processing: n_tokens = {new + kept + made - 1}, truncated = 0"


def timing(slot: str, what: str, took_ms: float, tokens: int) -> str:
    """A timing line of one phase."""
    return (
        f"print_timing: {slot} {what} time = {took_ms:10.2f} ms / {tokens:5d} tokens "
        f"({took_ms / tokens:8.2f} ms per token, {tokens / took_ms * 1e3:8.2f} tokens per second)"
    )


if __name__ == "__main__":
    main()
