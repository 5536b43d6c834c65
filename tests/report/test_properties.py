"""Whatever a source yields, a report comes out, and it is never healthier than what was seen."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twospeed.cures.elsewhere import Remote
from twospeed.cures.registry import proposers
from twospeed.cures.scenario import read_scenarios
from twospeed.findings.observed import observe
from twospeed.records.request_record import (
    ClientTimes,
    RequestError,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.records.run import (
    Blind,
    Conditions,
    Goals,
    MachineFacts,
    MachineProbe,
    ModelHeader,
    Run,
    RuntimeFacts,
    ServerProcess,
    Source,
    Workload,
)
from twospeed.report.build import build_report
from twospeed.report.document import to_json
from twospeed.report.markdown import render_markdown
from twospeed.report.text import render_text
from twospeed.report.what_if import Asked
from twospeed.runtimes.registry import settings_of

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((files("twospeed.report") / "schema" / "report-1.json").read_text("utf-8"))
)

maybe_s = st.none() | st.sampled_from([0.0, 1e-9, 0.001]) | st.floats(0, 1e4)
maybe_n = st.none() | st.integers(0, 200_000)
arrivals = st.lists(
    st.builds(
        TextArrival,
        at_s=st.floats(0, 1e4),
        kind=st.sampled_from(["answer", "reasoning", "tool"]),
        chars=st.integers(0, 50),
        coalesced=st.booleans(),
    ),
    max_size=12,
).map(lambda events: tuple(sorted(events, key=lambda event: event.at_s)))
records = st.lists(
    st.builds(
        RequestRecord,
        number=st.integers(1, 9),
        step=st.sampled_from(["warmup", "curve", "reuse", "user"]),
        started_at=st.none() | st.just("2026-11-30T12:00:00") | st.text(max_size=5),
        counts=st.builds(
            TokenCounts,
            prompt_tokens=maybe_n,
            cached_prompt_tokens=maybe_n,
            output_tokens=maybe_n,
            reasoning_tokens=maybe_n,
        ),
        client=st.builds(
            ClientTimes,
            headers_s=maybe_s,
            ttft_s=maybe_s,
            first_answer_s=maybe_s,
            last_text_s=maybe_s,
            finish_s=maybe_s,
            end_s=maybe_s,
            ttft_is_upper_bound=st.booleans(),
        ),
        server=st.none()
        | st.builds(
            ServerTimes,
            told_by=st.just("timings"),
            load_s=maybe_s,
            queue_s=maybe_s,
            prefill_s=maybe_s,
            prefill_tokens=maybe_n,
            decode_s=maybe_s,
            decode_steps=maybe_n,
            total_s=maybe_s,
        ),
        arrivals=arrivals,
        repeats=st.none() | st.integers(1, 9),
        other_requests=st.none() | st.integers(0, 2),
        error=st.none()
        | st.builds(
            RequestError,
            kind=st.just("http"),
            message=st.text(max_size=9),
            http_status=st.just(503),
        ),
    ),
    max_size=7,
).map(tuple)
facts = st.builds(
    RuntimeFacts,
    layers_total=maybe_n,
    layers_offloaded=maybe_n,
    n_batch=maybe_n,
    n_ubatch=maybe_n,
    n_ctx=maybe_n,
    slots=maybe_n,
    threads=maybe_n,
    flash_attn=st.none() | st.booleans(),
    kv_type_k=st.sampled_from([None, "f16", "q8_0", "odd"]),
    backend=st.sampled_from([None, "cpu", "cuda"]),
    size_bytes=maybe_n,
    size_vram_bytes=maybe_n,
    parameters=maybe_n,
    quantization=st.none() | st.text(max_size=6),
    prefix_cache_enabled=st.none() | st.booleans(),
    kv_block_tokens=maybe_n,
    reports_cached_tokens=st.none() | st.booleans(),
)
headers = st.none() | st.builds(
    ModelHeader,
    file_bytes=st.integers(0, 10**10),
    parameters=maybe_n,
    active_parameters=maybe_n,
    layers=st.none() | st.integers(1, 99),
    read_bytes_per_token=maybe_n,
    kv_bytes_per_token_f16=maybe_n,
    attention_width=st.none() | st.integers(1, 9999),
    sliding_window=st.none() | st.integers(1, 9999),
)
machines = st.none() | st.builds(
    MachineFacts,
    physical_cores=maybe_n,
    clock_hz=st.none() | st.floats(1e6, 1e10),
    clock_max_hz=st.none() | st.floats(1e6, 1e10),
    server=st.none()
    | st.builds(
        ServerProcess,
        command=st.lists(st.sampled_from(["-t", "8", "-ub", "x", "--threads=3"])).map(tuple),
    ),
)
ASKED = Asked(
    scenarios=read_scenarios(
        ["prompt=0.5,cache=on", "batch=512,threads=2", "quant=q4_k_m,kv=q4_0", "output=1,depth=9"]
    ),
    remote=Remote(ttft_s=1.0, tps=50.0, price_in=1.0, price_out=1.0),
)
runs_at_random = st.builds(
    Run,
    source=st.builds(
        Source,
        kind=st.sampled_from(["live", "log", "engine", "recording", "simulated"]),
        where=st.text(max_size=30),
        runtime=st.none() | st.sampled_from(["llama-server", "ollama", "\x1b[2J"]),
        model=st.none() | st.text(max_size=30),
        local=st.none() | st.booleans(),
    ),
    workload=st.builds(
        Workload,
        prompt_tokens=st.integers(0, 100_000),
        output_tokens=st.integers(0, 5_000),
        cached_prompt_tokens=st.integers(0, 100_000),
    ),
    goals=st.builds(Goals, wait_s=st.floats(1e-3, 1e3), stream_tps=st.floats(1e-3, 1e3)),
    made_at=st.just("2026-11-30T12:00:00Z"),
    twospeed_version=st.just("0.1.0"),
    facts=facts,
    records=records,
    round_trip_s=maybe_s,
    loading_s=maybe_s,
    probe=st.none()
    | st.builds(
        MachineProbe,
        memory_bandwidth_bytes_per_s=st.none() | st.floats(1e6, 1e12),
        matmul_flops_per_s=st.none() | st.floats(1e6, 1e15),
    ),
    header=headers,
    machine=machines,
    settings=st.sampled_from([None, "llama-server", "ollama"]).map(settings_of),
    conditions=st.builds(Conditions, host_load=st.none() | st.floats(0, 1), trusted=st.booleans()),
    ignore_timings=st.booleans(),
    complete=st.booleans(),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs_at_random)
def test_any_run_gives_an_honest_report(run):
    report = build_report(run)
    if report.slow_phase == "none":
        assert report.prefill.tps is not None or report.time_budget.prefill_s is not None
        assert report.stream.tps is not None
        assert report.wait.verdict == report.stream.verdict == "fine"
    if report.stream.tps is None:
        assert report.stream.verdict == "unknown"
    known = [
        getattr(report.time_budget, field)
        for field in report.time_budget.__struct_fields__
        if field != "total_s"
    ]
    if any(part is not None for part in known):
        total = sum(part for part in known if part is not None)
        assert abs(report.time_budget.total_s - total) <= 1e-6 * max(1.0, abs(total))
    SCHEMA.validate(json.loads(to_json(report)))
    text = render_text(report, colour=False)
    assert len(text.splitlines()) <= 40
    assert all(line.isprintable() for line in text.splitlines())
    assert "\x1b" not in render_markdown(report)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs_at_random)
def test_any_run_prices_every_change_and_question_in_order(run):
    observed = observe(run)
    for proposal in (one for propose in proposers() for one in propose(observed)):
        for saved in (proposal.wait_s, proposal.answer_s, proposal.saves_s):
            assert saved.low <= saved.likely <= saved.high
        assert all(line.isprintable() for line in (*proposal.how, proposal.check))
    report = build_report(run, ASKED)
    SCHEMA.validate(json.loads(to_json(report)))
    for row in report.what_if:
        for interval in (row.wait_s, row.stream_tps, row.total_s):
            assert interval is None or 0 <= interval.low <= interval.likely <= interval.high
    assert len(render_text(report, colour=False).splitlines()) <= 40
    assert "\x1b" not in render_markdown(report)


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_taking_sight_away_never_leaves_a_run_healthy(runs, phase):
    healthy = runs.run_of(runs.HEALTHY)
    assert build_report(healthy).slow_phase == "none"
    assert build_report(runs.without_phase(healthy, phase)).slow_phase == "unknown"


def test_markdown_of_very_many_gaps_is_bounded(runs):
    gaps = tuple(Blind(what=f"thing {n}", needs="a look") for n in range(10_000))
    text = render_markdown(build_report(runs.run_of(runs.HEALTHY, unknown=gaps)))
    assert text.count("not seen") == 21
    assert "9980 more" in text or "more, see --json" in text
