"""The machine under a run: its simulator, its load, and what else it does."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

STEP_S = 0.02
PREFILL_TPS = 700
"""Prompts of the clients take about 200 ms."""
LONGEST_RUN_S = 150
QUIET_SHARE = 0.15
LONGEST_WAIT_S = 120
DOUBTFUL = 4
"""Exit status of `twospeed time` where conditions make its figures doubtful, as beside hogs."""


class NotRun(Exception):
    """A client could not be installed, did not end well, or told nothing."""


@contextlib.contextmanager
def simulator(streams: int, folder: Path, *, tls: bool) -> Iterator[str]:
    """A simulator; yields its address."""
    words = ["--prefill-tps", str(PREFILL_TPS), "--decode-tps", str(1 / STEP_S), "--port", "0"]
    words += ["--slots", str(streams), "--cache", "off", "--truth", str(folder / "truth.jsonl")]
    words += ["--duration", str(LONGEST_RUN_S + 10)]
    if tls:
        words += ["--tls", *map(str, certificate(folder))]
    log = folder / "simulator.log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [sys.executable, "-m", "twospeed", "simulate", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        line = server.stdout.readline() if server.stdout else ""
        found = re.search(r"(https?://\S+)/v1", line)
        if found is None:
            raise NotRun(f"the simulator did not start: {log.read_text()[-300:]!r}")
        yield found[1]
        time.sleep(0.2)  # the last line of the truth
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the loopback address, and its key."""
    paths = folder / "cert.pem", folder / "key.pem"
    words = ["req", "-x509", "-nodes", "-days", "1", "-newkey", "ec"]
    words += ["-pkeyopt", "ec_paramgen_curve:prime256v1"]
    words += ["-subj", "/CN=127.0.0.1", "-out", str(paths[0]), "-keyout", str(paths[1])]
    run_bounded(["openssl", *words], folder / "openssl.log")
    return paths


@contextlib.contextmanager
def hogs(load: str) -> Iterator[None]:
    """Two busy processes, if the load asks for them."""
    code = f"import time\nend = time.time() + {LONGEST_RUN_S + 20}\nwhile time.time() < end: pass"
    count = 2 if load == "hogs" else 0
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


class OtherPrograms:
    """Measures which share of the processors all programs but ours and our children used."""

    share = 0.0

    def __enter__(self) -> Self:
        self._busy_s, self._all_s, self._ours_s = *processor_s(), ours_s()
        return self

    def __exit__(self, *_: object) -> None:
        busy_s, all_s = processor_s()
        other_s = busy_s - self._busy_s - (ours_s() - self._ours_s)
        self.share = max(0.0, other_s / (all_s - self._all_s))


def processor_s() -> tuple[float, float]:
    """Busy and all processor time of the machine since it started."""
    with open("/proc/stat", encoding="ascii") as stat:  # noqa: PTH123
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    per_s = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / per_s, sum(ticks) / per_s


def children_cpu_s() -> float:
    """Processor time of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours_s() -> float:
    return children_cpu_s() + time.process_time()


def wait_until_quiet() -> bool:
    """Whether the machine became quiet within two minutes."""
    give_up = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < give_up:
        busy_s, all_s = processor_s()
        time.sleep(1)
        now_busy_s, now_all_s = processor_s()
        if now_busy_s - busy_s < QUIET_SHARE * (now_all_s - all_s):
            return True
    print("the machine did not become quiet; going on", file=sys.stderr, flush=True)
    return False


def run_bounded(words: Sequence[str], log: Path, limit_s: float = LONGEST_RUN_S) -> None:
    """Run a command in a process group of its own, of which nothing is left afterwards.

    Raises:
        NotRun: it took too long or failed.
    """
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    with log.open("w+") as output:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=environment,
            start_new_session=True,
        )
        try:
            code = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise NotRun(f"not done after {limit_s} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(0)
        said = output.read().strip().splitlines()
    if code not in (0, DOUBTFUL):
        raise NotRun(f"exit status {code}: {said[-1] if said else 'no output'}")
