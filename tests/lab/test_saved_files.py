"""The part of the lab that needs no server: saved record files of made-up machines."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from controls import BLIND, controls
from msgspec.structs import replace
from saved_scenarios import ROWS
from scenario import NO_FAULT
from trials import filed, read_here, read_saved

from twospeed.findings.observed import observe
from twospeed.findings.registry import find_all
from twospeed.records.run import Run, RuntimeFacts

GENERAL = {*NO_FAULT, "prefill.compute_low", "decode.below_limit", "prompt_cache.disabled"}
"""What is left to say once the narrow evidence is gone."""
IN_PROCESS = [one for one in controls() if "simulated" not in one.name]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_fault_of_a_saved_file_is_named_first(row):
    _, cause, make = row
    for seed in range(3):
        assert read_here(make(random.Random(seed))).causes[:1] == (cause,)


def test_the_command_says_the_same_of_a_saved_file():
    run = ROWS[0][2](random.Random(0))
    assert read_saved(run) == read_here(run)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_less_evidence_gives_no_wrong_cause(row):
    _, cause, make = row
    run = filed(make(random.Random(5)))
    whole = {finding.cause for finding in find_all(observe(run))}
    for name, less in lessened(run):
        for finding in find_all(observe(less)):
            assert finding.cause in GENERAL | whole | {cause}, (name, finding.cause)


def lessened(run: Run) -> Iterator[tuple[str, Run]]:
    yield "facts", replace(run, facts=RuntimeFacts())
    yield "machine", replace(run, machine=None)
    yield "rows", replace(run, points=())
    yield "half of the records", replace(run, records=run.records[::2])
    for name, empty in (("signs", None), ("server", None), ("arrivals", ()), ("change", None)):
        records = tuple(replace(record, **{name: empty}) for record in run.records)
        yield name, replace(run, records=records)


@pytest.mark.parametrize("control", IN_PROCESS, ids=[one.name for one in IN_PROCESS])
def test_healthy_files_are_left_alone_and_thin_ones_not_called_healthy(control):
    for seed in range(3):
        seen = control.run(seed)
        assert set(seen.causes) <= set(NO_FAULT)
        assert seen.slow_phase != ("none" if control.name.startswith(BLIND) else "unknown")
