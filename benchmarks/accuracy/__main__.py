"""How far clients are from the truth: TTFT and token gaps, ours beside those of other tools.

    python benchmarks/accuracy [--streams 1,64,256] [--load quiet,hogs] [--rounds 2]
        [--clients twospeed,epoll,servebench,...] [--tokens 40] [--json FILE]

Every run gets a simulator of its own (prompts take about 200 ms, steps 20 ms), and is compared with
what this simulator did: TTFT from the kernel's stamp of the last request byte to the write of the
first text, and the gaps between such writes. Clients take turns, round after round; each run
waits for a quiet machine first. `hogs` are two busy processes beside client and simulator.

Two kinds of error are printed. *Quantiles*: the client's p50 or p99 minus the true one, over all
that it told. *Pairs*: p50 and p99 of |client - truth| by request and event, for clients whose
requests can be told apart; where a client marks events that shared a read, without those.

The other tools are installed on first use, each into an environment of its own in the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path

from client import Task
from environments import versions, why_not_installed
from machine import (
    NotRun,
    OtherPrograms,
    children_cpu_s,
    hogs,
    run_bounded,
    simulator,
    wait_until_quiet,
)
from outcome import Cell, Outcome, figures
from own_clients import Reader, own_clients
from peers import peers
from stream import true_streams
from table import row, table

CLIENTS = {**own_clients(), **peers()}
LEAST_REQUESTS = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="accuracy", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--streams", default="1,64,256")
    parser.add_argument("--load", default="quiet,hogs")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--read", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:  # we are the bare reader
        print(json.dumps(Reader(**args.read).run()))
        return
    outcomes: dict[Cell, Outcome] = {}
    for _ in rounds(args, outcomes):
        if args.json:
            args.json.write_text(json.dumps(document(outcomes), indent=1))
    print(table(outcomes, versions()))


def rounds(args: argparse.Namespace, outcomes: dict[Cell, Outcome]) -> Iterator[int]:
    """Run all clients by turns; yields after each round."""
    names = args.clients.split(",")
    if unknown := set(names) - set(CLIENTS):
        sys.exit(f"no such client: {', '.join(sorted(unknown))} (known: {', '.join(CLIENTS)})")
    missing = {name: why for name in names if (why := why_not_installed(CLIENTS[name].tool))}
    places = product(args.load.split(","), map(int, args.streams.split(",")), names)
    cells = [Cell(load=load, streams=streams, client=name) for load, streams, name in places]
    for turn in range(1, args.rounds + 1):
        for cell in cells:
            outcome = outcomes.setdefault(cell, Outcome(not_run=missing.get(cell.client)))
            if outcome.not_run is None:
                run_once(cell, args.tokens, outcome)
            told = row(cell.client, outcome)
            print(f"{turn}: {cell.streams} {cell.load} {told}", file=sys.stderr, flush=True)
        yield turn


def run_once(cell: Cell, tokens: int, outcome: Outcome) -> None:
    """One client against a simulator of its own; what both told is added to the outcome."""
    client = CLIENTS[cell.client]
    requests = max(LEAST_REQUESTS, 2 * cell.streams)
    outcome.unquiet |= not wait_until_quiet()
    outcome.load_average = max(outcome.load_average, os.getloadavg()[0])
    with tempfile.TemporaryDirectory() as name, OtherPrograms() as others:
        folder = Path(name)
        try:
            with hogs(cell.load), simulator(cell.streams, folder, tls=client.tls) as url:
                task = Task(
                    url=url, streams=cell.streams, requests=requests, tokens=tokens, folder=folder
                )
                command = client.command(task)
                before_s = children_cpu_s()
                run_bounded(command, folder / "client.log")
                cpu_s = children_cpu_s() - before_s
            seen = client.read(task)
        except (NotRun, OSError, LookupError, ValueError, TypeError) as error:
            outcome.not_run = f"{error}" if isinstance(error, NotRun) else repr(error)
            return
        true = true_streams(folder / "truth.jsonl", tokens)
    # The first ones may have been for warming up.
    outcome.add(seen, true[-requests:], requests=requests, pairs=client.pairs)
    outcome.cpu_s.append(cpu_s)
    outcome.others = max(outcome.others, others.share)


def document(outcomes: Mapping[Cell, Outcome]) -> dict[str, object]:
    """What `--json` writes."""
    rows = [{**asdict(cell), **figures(outcome)} for cell, outcome in outcomes.items()]
    return {"versions": versions(), "rows": rows}


if __name__ == "__main__":
    main()
