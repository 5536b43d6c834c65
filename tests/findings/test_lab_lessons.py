"""What the lab taught: real logs of llama-server at its usual verbosity, with their numbers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from stories import asked

from twospeed.findings.observed import observe
from twospeed.findings.registry import find_all
from twospeed.fits.workload import typical_workload
from twospeed.limits.normal import NormalRange
from twospeed.records.run import (
    Goals,
    MachineFacts,
    Quantity,
    Run,
    RuntimeFacts,
    ServerProcess,
    Source,
    Workload,
)
from twospeed.report.build import build_report


def run_of(*records, **more) -> Run:
    return Run(
        source=Source(kind="log", where="server.log", runtime="llama-server"),
        workload=typical_workload(records, "log") or Workload(prompt_tokens=500, output_tokens=24),
        goals=Goals(wait_s=0.5, stream_tps=5),
        made_at="2026-12-01T00:00:00+00:00",
        twospeed_version="0",
        records=records,
        **more,
    )


def first(run: Run) -> tuple[str, str]:
    finding = find_all(observe(run))[0]
    return finding.cause, finding.certainty


def turn(number, prompt, cached, seconds, **signs):
    return asked(number, (prompt, cached, seconds), (24, 0.35), slot=0, **signs)


def test_a_cache_that_keeps_only_the_template_is_not_off():
    changing_head = run_of(
        turn(1, 427, 0, 3.0),
        turn(2, 501, 31, 2.7, chosen_by="lru", held_tokens=450),
        turn(3, 575, 31, 3.2, chosen_by="lru", held_tokens=524),
        turn(4, 649, 31, 3.6, chosen_by="lru", held_tokens=598),
    )
    assert first(changing_head) == ("prompt_cache.prefix_changed", "possible")


def test_short_requests_between_turns_hide_no_eviction():
    visited = []
    for index, prompt in enumerate((415, 489, 563, 637)):
        visited.append(turn(2 * index + 1, prompt, 24 if index else 0, 3.0))
        visited.append(turn(2 * index + 2, 130, 24, 0.8))
    assert first(run_of(*visited)) == ("prompt_cache.evicted", "inferred")


@pytest.mark.parametrize(
    ("kept_frac", "wanted"),
    [
        (0.997, ("prompt_cache.cannot_rewind", "possible")),
        (None, ("prompt_cache.cannot_rewind", "possible")),
        (1.0, ("prompt_cache.disabled", "inferred")),
    ],
)
def test_what_only_goes_on_needs_no_cutting_back(kept_frac, wanted):
    """A slot that could have kept all it held had nothing to cut: no reuse was asked for."""
    unused = [
        turn(n, prompt, 0, 3.0, similarity_frac=0.9, kept_frac=kept_frac)
        for n, prompt in enumerate((415, 489, 563, 637), start=1)
    ]
    assert first(run_of(*unused)) == wanted


def test_in_a_long_text_three_decimals_hide_a_few_tokens():
    unused = [
        turn(n, prompt, 0, 60.0, similarity_frac=0.99, kept_frac=1.0)
        for n, prompt in enumerate((8000, 8100, 8200), start=1)
    ]
    assert first(run_of(*unused)) == ("prompt_cache.disabled", "possible")


def test_the_same_prompt_again_cuts_back_its_last_token():
    again = [turn(n, 600, 0, 4.0, similarity_frac=1.0, kept_frac=1.0) for n in range(1, 5)]
    assert first(run_of(*again)) != ("prompt_cache.disabled", "inferred")


@pytest.mark.parametrize(("working", "named"), [(8, True), (2, False), (None, False)])
def test_threads_are_counted_by_their_work_where_nobody_tells_them(runs, working, named):
    server = ServerProcess(threads=19, working_threads=working, allowed_cores=2)
    slow = replace(runs.run_of(runs.PREFILL_SLOW), machine=MachineFacts(server=server))
    causes = [finding.cause for finding in find_all(observe(slow))]
    assert ("host.threads" in causes) == named


def test_the_narrower_of_two_equal_causes_comes_first(runs):
    slow = replace(
        runs.run_of(runs.PREFILL_SLOW),
        facts=RuntimeFacts(threads=8, layers_offloaded=0),
        machine=MachineFacts(logical_cores=2),
    )
    causes = [finding.cause for finding in find_all(observe(slow))]
    assert causes.index("host.threads") < causes.index("prompt.large")


@pytest.mark.parametrize(
    ("share", "causes"),
    [
        (0.25, ["prompt.large"]),
        (0.19, ["prompt.large", "prefill.compute_low"]),
        (0.05, ["prefill.compute_low", "prompt.large"]),
    ],
)
def test_below_normal_speed_a_large_prompt_is_large_too(runs, share: float, causes: list[str]):
    """Each costs its part: what normal speed would take, and what is lost beyond it."""
    observed = observe(runs.run_of(runs.PREFILL_SLOW))
    normal = NormalRange(low=0.2, high=0.75, of="measured", source="a test")
    reached = Quantity(value=share, origin="client")
    limits = replace(observed.limits, prefill_of_limit_frac=reached, prefill_normal=normal)
    found = find_all(replace(observed, limits=limits))
    assert [one.cause for one in found if one.phase == "prefill"] == causes
    assert sum(one.costs_s or 0.0 for one in found) == pytest.approx(observed.prefill_s.likely)


@pytest.mark.parametrize(("load", "named"), [(0.6, True), (0.1, False)])
def test_where_nothing_could_be_told_the_company_is_named(runs, load, named):
    run = runs.run_of(runs.PREFILL_SLOW)
    blind = replace(
        run,
        records=(),
        source=replace(run.source, local=True),
        conditions=replace(run.conditions, host_load=load),
    )
    observed = observe(blind)
    assert observed.slow_phase == "unknown"
    assert [finding.cause for finding in find_all(observed)] == ["host.contention"] * named


@pytest.mark.parametrize(
    ("reading", "origin"), [((12, 0, 0.5), "server"), ((900, 0, 2.0), "server")]
)
def test_a_single_request_keeps_the_clock_that_timed_it(reading, origin):
    """Also a prompt too short for any curve."""
    report = build_report(run_of(asked(1, reading, (24, 0.35))))
    assert report.prefill.origin == report.decode.origin == origin
