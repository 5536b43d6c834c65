"""More threads than there are processors for them."""

from __future__ import annotations

from twospeed.findings.command_line import THREADS, number_asked
from twospeed.findings.finding import Certainty, Evidence, Finding
from twospeed.findings.lost_time import shown_by_rows
from twospeed.findings.observed import Observed
from twospeed.findings.slowness import is_slow
from twospeed.findings.table import contrasts
from twospeed.limits.ceilings import runs_on_processor
from twospeed.records.run import Run

ORDER = 80

LOSS = 1.15
"""Rows of a table with more threads that are so many times slower show that these are too many."""


def find(observed: Observed) -> list[Finding]:
    """Threads beyond the processors, or a table in which fewer were faster."""
    if not is_slow(observed):
        return []
    return _by_table(observed) or _by_counts(observed)


def threads_of(run: Run) -> int | None:
    """Threads of decode: as the runtime says, as its command line asks, or as many as worked."""
    server = run.machine.server if run.machine else None
    seen = server.working_threads if server else None
    told = (run.facts.threads, number_asked(run, THREADS), seen)
    return next((count for count in told if count is not None), None)


def processors_of(run: Run) -> int | None:
    """Processors that the server may use, as far as anybody tells."""
    machine = run.machine
    allowed = machine.server.allowed_cores if machine and machine.server else None
    logical = machine.logical_cores if machine else None
    known = [count for count in (allowed, logical, run.facts.threads_hw) if count]
    return min(known) if known else None


def _by_counts(observed: Observed) -> list[Finding]:
    run = observed.run
    threads, processors = threads_of(run), processors_of(run)
    cores = run.machine.performance_cores if run.machine else None
    certainty: Certainty | None = None
    if threads and processors and threads > processors:
        certainty = "inferred"
    elif threads and cores and threads > cores and runs_on_processor(run.facts, run.probe):
        certainty, processors = "possible", cores
    if certainty is None:
        return []
    return [
        Finding(
            cause="host.threads",
            phase=observed.slow_phase,
            certainty=certainty,
            costs_s=None,
            evidence=(
                Evidence(what="threads", value=threads, origin="server"),
                Evidence(what="processors for them", value=processors, origin="client"),
            ),
        )
    ]


def _by_table(observed: Observed) -> list[Finding]:
    pairs = [p for p in contrasts(observed.run.points, "threads") if p.ratio("decode") >= LOSS]
    if not pairs:
        return []
    pair = max(pairs, key=lambda one: one.ratio("decode"))
    slow, fast = pair.slow.settings["threads"], pair.fast.settings["threads"]
    evidence = (
        Evidence(what="threads", value=slow, origin="server"),
        Evidence(what="threads of the fastest rows", value=fast, origin="server"),
        Evidence(
            what="decode is slower by", value=pair.ratio("decode"), unit="times", origin="server"
        ),
    )
    return [shown_by_rows(observed, pair, "host.threads", evidence, phase="decode")]
