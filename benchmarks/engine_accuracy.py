"""How right is `twospeed diagnose` on the embedded engine? Run on demand, on a quiet machine.

Three questions, one engine, one run:

1. Do the reported speeds agree with the server's own clock, request by request?
2. Does the path without server clocks (--ignore-timings) agree too, from 200 uncached tokens up?
3. Do the fitted curves foretell lengths and depths that are drawn only after the fit is saved?
   Inside the measured range and at 1.5 times beyond it; medians of three requests.

    python benchmarks/engine_accuracy.py [--threads N] [--budget SECONDS] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from twospeed.cli.main import main as twospeed
from twospeed.fits.decode import fit_decode
from twospeed.fits.observations import decode_points, prefill_points, request_speeds
from twospeed.fits.prefill import fit_prefill
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Run
from twospeed.records.run_file import read_run
from twospeed.sources.engine.engine import Engine
from twospeed.sources.engine.model import fetch_model
from twospeed.sources.engine.settings import parse_settings, with_defaults
from twospeed.sources.live.endpoint import Endpoint


def host_load() -> str:
    return "load average " + " ".join(f"{value:.2f}" for value in os.getloadavg())


def diagnosed(url: str, budget_s: float) -> Run:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "run.jsonl"
        out = Path(name) / "report.txt"
        status = twospeed(
            ["diagnose", url, "--budget", str(budget_s), "--save", str(path), "--out", str(out)]
        )
        print(f"exit status {status}")
        print(out.read_text())
        return read_run(path)


async def held_out(url: str, wanted: list[tuple[int, int]], repeats: int) -> list[RequestRecord]:
    """Requests of the wanted (prompt, output) tokens, interleaved."""
    records: list[RequestRecord] = []
    async with await Endpoint.open(url) as endpoint:
        warm = Probe(step="warmup", prompt_tokens=200, output_tokens=16)
        await endpoint.measure(warm, 1)
        for _ in range(repeats):
            for prompt, output in random.sample(wanted, len(wanted)):
                probe = Probe(step="curve", prompt_tokens=prompt, output_tokens=output)
                records.append(await endpoint.measure(probe, len(records) + 2))
    return records


def clocks(run: Run, *, at_least: int) -> list[tuple[int, float, float]]:
    """Uncached tokens, prefill and decode ratio of our clock against the server's."""
    rows = []
    for record in run.records:
        told = record.server
        if record.step == "warmup" or told is None or not told.prefill_tokens:
            continue
        if told.prefill_tokens < at_least:
            continue
        ours = request_speeds(record, round_trip_s=run.round_trip_s, ignore_timings=True)
        theirs = request_speeds(record, round_trip_s=run.round_trip_s, ignore_timings=False)
        if ours.prefill_s and theirs.prefill_s and ours.decode_tps and theirs.decode_tps:
            rows.append(
                (
                    told.prefill_tokens,
                    ours.prefill_s / theirs.prefill_s,
                    ours.decode_tps / theirs.decode_tps,
                )
            )
    return rows


def errors(
    run: Run, fresh: list[RequestRecord], *, ignore_timings: bool
) -> list[dict[str, object]]:
    """Relative error of the curves fitted to `run` at each fresh length."""
    fit = fit_prefill(
        prefill_points(run.records, round_trip_s=run.round_trip_s, ignore_timings=ignore_timings)
    )
    step = fit_decode(decode_points(run.records, ignore_timings=ignore_timings))
    assert fit is not None
    assert step is not None
    groups: dict[int, list[RequestRecord]] = {}
    for record in fresh:
        assert record.probe is not None
        groups.setdefault(record.probe.prompt_tokens, []).append(record)
    rows = []
    for wanted, records in sorted(groups.items()):
        prefills = prefill_points(records, round_trip_s=run.round_trip_s, ignore_timings=False)
        decodes = decode_points(records, ignore_timings=False)
        prefill = statistics.median(
            fit.seconds(p.prompt_tokens, p.cached_tokens).likely / p.s - 1 for p in prefills
        )
        decode = statistics.median(
            step.per_token(p.depth_tokens).likely / p.per_token_s - 1 for p in decodes
        )
        rows.append(
            {
                "prompt_tokens": wanted,
                "beyond": wanted / fit.longest_tokens,
                "prefill_error": prefill,
                "decode_error": decode,
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--budget", type=float, default=40.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    asked = parse_settings([] if args.threads is None else [f"threads={args.threads}"])
    with Engine(with_defaults(asked, fetch_model())) as engine:
        engine.start()
        assert engine.url is not None
        before = host_load()
        run = diagnosed(engine.url, args.budget)
        top = max(r.counts.prompt_tokens or 0 for r in run.records)
        rng = random.Random(time.time_ns())
        inside = sorted(rng.randint(max(100, top // 12), top) for _ in range(4))
        beyond = [min(int(1.5 * top), 4096 - 96)]
        fresh = asyncio.run(
            held_out(engine.url, [(tokens, 64) for tokens in [*inside, *beyond]], repeats=3)
        )
        after = host_load()
    result = {
        "host": {"before": before, "after": after},
        "server_clock_lines": [
            {
                "prompt_n": r.server.prefill_tokens,
                "prompt_ms": r.server.prefill_s and r.server.prefill_s * 1e3,
                "predicted_steps": r.server.decode_steps,
                "predicted_ms": r.server.decode_s and r.server.decode_s * 1e3,
                "ttft_ms": r.client.ttft_s and r.client.ttft_s * 1e3,
            }
            for r in run.records
            if r.server is not None
        ],
        "own_clock_over_server_clock": clocks(run, at_least=200),
        "held_out": errors(run, fresh, ignore_timings=False),
        "held_out_ignoring_timings": errors(run, fresh, ignore_timings=True),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
