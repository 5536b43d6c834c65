"""What does twospeed itself cost? Run on demand, on a quiet machine.

Processor time and memory of our own process, without the probe's helper and the engine, which are
processes of their own; the disk space of a base install; and what the live line costs, by one
diagnosis on a terminal and one without.

    python benchmarks/footprint.py [--budget SECONDS] [--skip-install] [--url URL]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPEATS = 7
MB = 1e6

# Runs in a child of its own: RUSAGE_SELF leaves out the probe and the engine, its children. The
# high-water mark is that of the memory map, since ru_maxrss remembers the parent's as well.
CHILD = """
import json, pathlib, re, resource, sys, time
began_s = time.monotonic()
from twospeed.cli.main import main
status = main(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_SELF)
proc = pathlib.Path("/proc/self/status")
if proc.exists():
    peak_bytes = int(re.search(r"VmHWM:\\s+(\\d+) kB", proc.read_text())[1]) * 1024
else:
    peak_bytes = used.ru_maxrss
pathlib.Path(sys.argv[1]).write_text(json.dumps({
    "status": status,
    "cpu_s": used.ru_utime + used.ru_stime,
    "wall_s": time.monotonic() - began_s,
    "peak_bytes": peak_bytes,
}))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure against its bound."""

    what: str
    value: float
    bound: float | None
    unit: str

    def __str__(self) -> str:
        bound = "" if self.bound is None else f"< {self.bound:g}"
        word = "" if self.bound is None else "ok" if self.value < self.bound else "MISSED"
        return f"{self.what:<52}{self.value:>9.3f} {self.unit:<12}{bound:>7}  {word}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Our own part of one diagnosis."""

    cpu_s: float
    wall_s: float
    peak_bytes: int
    requests: int


def start_cpu_s(*argv: str) -> float:
    """Median processor seconds of a whole process."""
    times = []
    for _ in range(REPEATS):
        with subprocess.Popen(
            [sys.executable, "-m", "twospeed", *argv], stdout=subprocess.DEVNULL
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, argv
        times.append(used.ru_utime + used.ru_stime)
    return statistics.median(times)


def diagnosis(*argv: str, live: bool) -> Cost:
    """Cost of one diagnosis, with or without a terminal."""
    with tempfile.TemporaryDirectory() as name:
        told, kept = Path(name) / "cost.json", Path(name) / "run.jsonl"
        out = ("--out", str(Path(name) / "report.txt"), "--save", str(kept))
        command = [sys.executable, "-c", CHILD, str(told), "diagnose", *argv, *out]
        if live:
            on_a_terminal(command)
        else:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        cost = json.loads(told.read_text())
        assert cost["status"] in {0, 4}, cost
        lines = kept.read_text(encoding="utf-8").splitlines()
        return Cost(
            cpu_s=cost["cpu_s"],
            wall_s=cost["wall_s"],
            peak_bytes=cost["peak_bytes"],
            requests=sum('"type":"request"' in line for line in lines),
        )


def on_a_terminal(command: list[str]) -> None:
    """Run a command that believes to be watched, and read what it draws."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        drawn = 0
        with contextlib.suppress(OSError):  # the end of a terminal on Linux
            while data := os.read(ours, 65536):
                drawn += data.count(b"\r\x1b[K")
        process.wait()
    os.close(ours)
    print(f"  the live line was drawn {drawn} times")


def installed_bytes() -> Mapping[str, int]:
    """Bytes of a base install in a fresh environment, by top-level name."""
    with tempfile.TemporaryDirectory() as name:
        # A copy, since building leaves its traces in the tree.
        copy = Path(name) / "source"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "*.egg-info"))
        environment = Path(name) / "venv"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = environment / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", copy / "constraints.txt", copy], check=True)
        packages = next(environment.glob("lib/python*/site-packages"))
        return {entry.name: size_bytes(entry) for entry in packages.iterdir()}


def size_bytes(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def install_rows() -> Iterator[Row]:
    sizes = installed_bytes()
    builders = sum(size for name, size in sizes.items() if is_builder(name))
    total = sum(sizes.values())
    yield Row("base install without pip and setuptools", (total - builders) / MB, 100, "MB")
    yield Row("base install with them", total / MB, None, "MB")
    for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:6]:
        yield Row(f"  {name}", size / MB, None, "MB")


def is_builder(name: str) -> bool:
    return name.lower().startswith(
        ("pip", "setuptools", "_distutils", "distutils", "pkg_resources")
    )


def run_rows(where: list[str]) -> Iterator[Row]:
    plain = diagnosis(*where, live=False)
    yield Row(
        f"diagnosis, {plain.requests} requests, {plain.wall_s:.0f} s: our CPU",
        plain.cpu_s,
        1.5,
        "s",
    )
    yield Row("  peak memory", plain.peak_bytes / MB, 80, "MB")
    live = diagnosis(*where, live=True)
    yield Row(
        f"on a terminal, {live.requests} requests, {live.wall_s:.0f} s: our CPU",
        live.cpu_s,
        1.5,
        "s",
    )
    yield Row("  peak memory", live.peak_bytes / MB, 80, "MB")
    share = live.cpu_s / live.wall_s - plain.cpu_s / plain.wall_s
    yield Row("  more than without a terminal, of one core", 100 * share, 2, "%")
    yield Row("  everything, of one core", 100 * live.cpu_s / live.wall_s, None, "%")


def host_load() -> str:
    return "load average " + " ".join(f"{value:.2f}" for value in os.getloadavg())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=40.0)
    parser.add_argument("--url", help="instead of the embedded engine")
    parser.add_argument("--skip-install", action="store_true")
    args = parser.parse_args()
    rows: list[Row] = []

    def tell(row: Row) -> None:
        rows.append(row)
        print(row, flush=True)

    print(host_load())
    for argv in (["--version"], ["--help"], ["diagnose", "--help"]):
        tell(Row(f"{' '.join(argv)}: our CPU", start_cpu_s(*argv), 0.1, "s"))
    where = [args.url] if args.url else ["--embedded"]
    for row in run_rows([*where, "--budget", str(args.budget)]):
        tell(row)
    for row in () if args.skip_install else install_rows():
        tell(row)
    print(host_load())
    return int(any(row.bound is not None and row.value >= row.bound for row in rows))


if __name__ == "__main__":
    began_s = time.monotonic()
    status = main()
    print(f"took {time.monotonic() - began_s:.0f} s")
    sys.exit(status)
