"""Every story gets its right cause, and no story a wrong one, also with less evidence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live_stories import LARGE, LIVE, QUIET
from msgspec.structs import asdict, replace
from stories import STORIES, Story

from twospeed.findings.finding import CAUSES, Finding
from twospeed.findings.observed import observe
from twospeed.findings.registry import MOST_FINDINGS, find_all
from twospeed.records.request_record import ClientTimes, ServerSigns
from twospeed.records.run import Conditions, LoadSummary, Run, RuntimeFacts
from twospeed.records.run_file import read_run, write_run

RANK = ("possible", "inferred", "measured", "reported")
GENERAL = {
    "prompt.large",
    "prefill.compute_low",
    "decode.bandwidth_bound",
    "decode.below_limit",
    "decode.output_long",
}
"""What is left to say where nothing narrower is shown."""


ALL = STORIES | LIVE


@pytest.fixture(params=sorted(ALL))
def story(request) -> Story:
    return ALL[request.param]


def test_the_slow_phase_and_the_first_cause_are_right(story: Story):
    seen = observe(story.run)
    found = find_all(seen)
    assert seen.slow_phase in story.phases
    assert (found[0].cause if found else None) in story.causes


def test_nothing_forbidden_is_claimed_and_all_has_evidence(story: Story):
    found = find_all(observe(story.run))
    assert not {finding.cause for finding in found} & set(story.forbidden)
    assert len(found) <= MOST_FINDINGS
    for finding in found:
        assert finding.cause in CAUSES
        assert finding.evidence
        assert finding.costs_s is None or finding.costs_s > 0


def lessened(run: Run) -> Iterator[tuple[str, Run]]:
    """The same run with one source of evidence gone at a time."""
    yield from _without_parts(run)
    yield from _without_signs(run)
    yield "signs", _each(run, lambda r: replace(r, signs=None))
    yield "company", _each(run, lambda r: replace(r, other_requests=None))
    yield "arrivals", _each(run, lambda r: replace(r, arrivals=()))
    yield "our clock", _each(run, lambda r: replace(r, client=ClientTimes(), arrivals=()))
    yield "cached tokens", _each(run, _without_cached)
    yield "row", replace(run, points=run.points[1:])
    yield "last row", replace(run, points=run.points[:-1])
    for gone in range(len(run.records) if len(run.records) > 1 else 0):
        yield f"request {gone}", replace(run, records=run.records[:gone] + run.records[gone + 1 :])


def _without_parts(run: Run) -> Iterator[tuple[str, Run]]:
    yield "facts", replace(run, facts=RuntimeFacts())
    yield "conditions", replace(run, conditions=Conditions())
    for part in ("machine", "probe", "header", "summary", "round_trip_s"):
        yield part, replace(run, **{part: None})
    for part in ("facts", "summary", "machine", "probe"):
        told = getattr(run, part)
        for name, value in (asdict(told) if told is not None else {}).items():
            if value not in (None, ()):
                empty = () if isinstance(value, tuple) else None
                yield name, replace(run, **{part: replace(told, **{name: empty})})
    yield from _without_device_facts(run)


def _without_device_facts(run: Run) -> Iterator[tuple[str, Run]]:
    """One thing less that a graphics device, or the server's process, tells."""
    machine = run.machine
    if machine is None:
        return
    for name in ("memory_total_bytes", "memory_used_bytes", "shared_memory_used_bytes",
                 "clock_hz", "throttled_by"):  # fmt: skip
        empty = () if name == "throttled_by" else None
        devices = tuple(replace(device, **{name: empty}) for device in machine.graphics)
        if devices != machine.graphics:
            yield f"device {name}", replace(run, machine=replace(machine, graphics=devices))
    for name, value in asdict(machine.server).items() if machine.server else ():
        if value not in (None, ()):
            server = replace(machine.server, **{name: () if name == "command" else None})
            yield f"server {name}", replace(run, machine=replace(machine, server=server))


def _without_signs(run: Run) -> Iterator[tuple[str, Run]]:
    for name in ServerSigns.__struct_fields__:
        if any(r.signs and getattr(r.signs, name) for r in run.records):
            yield name, _each(run, lambda r, n=name: _without_sign(r, n))


def _each(run: Run, change) -> Run:
    return replace(run, records=tuple(change(record) for record in run.records))


def _without_sign(record, name: str):
    if record.signs is None:
        return record
    empty = () if name == "decode_windows" else None
    return replace(record, signs=replace(record.signs, **{name: empty}))


def _without_cached(record):
    counts = replace(record.counts, cached_prompt_tokens=None)
    server = record.server and replace(record.server, prefill_tokens=None)
    return replace(record, counts=counts, server=server)


def test_less_evidence_never_gives_another_cause(story: Story):
    fair = {cause for cause in story.causes if cause} | GENERAL
    before = {f.cause: f for f in find_all(observe(story.run))}
    for name, run in lessened(story.run):
        for finding in find_all(observe(run)):
            assert finding.cause in fair | set(before), (name, finding.cause)
            _is_no_surer(name, finding, before)


def _is_no_surer(name: str, finding: Finding, before: dict[str, Finding]) -> None:
    """General causes may be named where a narrower one was; none becomes surer by knowing less."""
    earlier = before.get(finding.cause)
    if earlier is None:
        assert finding.certainty in ("possible", "inferred"), (name, finding.cause)
    elif finding.cause not in GENERAL:
        assert RANK.index(finding.certainty) <= RANK.index(earlier.certainty), (name, finding)


def test_a_blind_run_is_never_called_healthy(story: Story):
    blind = replace(story.run, records=(), points=(), summary=None)
    seen = observe(blind)
    assert seen.slow_phase not in ("none", "prefill")
    half = _each(story.run, lambda r: replace(r, server=None, client=ClientTimes(), arrivals=()))
    if half.records and not half.points:
        assert observe(half).slow_phase != "none"


def test_one_phase_alone_is_not_health():
    run = STORIES["healthy chat"].run
    for gone in ({"prefill_s": None}, {"decode_s": None}):
        half = _each(run, lambda r, gone=gone: replace(r, server=replace(r.server, **gone)))
        assert observe(half).slow_phase == "unknown"
    load = STORIES["healthy load"].run
    silent = replace(load, summary=LoadSummary(mean_itl_ms=12.5, waiting_max=0))
    assert observe(silent).slow_phase == "unknown"


def test_a_saved_run_gets_the_same_findings(story: Story, tmp_path):
    write_run(tmp_path / "run.jsonl", story.run)
    kept = read_run(tmp_path / "run.jsonl")
    assert find_all(observe(kept)) == find_all(observe(story.run))


def test_every_cause_has_its_story():
    assert {story.causes[0] for story in ALL.values()} - {None} == set(CAUSES)


@pytest.mark.parametrize("name", sorted(QUIET))
def test_signs_without_slowness_are_no_findings(name: str):
    seen = observe(QUIET[name])
    assert seen.slow_phase == "none"
    assert find_all(seen) == ()


@pytest.mark.parametrize("name", sorted(LARGE))
def test_usual_signs_beside_a_large_prompt_are_no_findings(name: str):
    found = find_all(observe(LARGE[name]))
    assert [finding.cause for finding in found] == ["prompt.large"]
