"""The modules that read evidence, each against answers that are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from stories import asked, bursts, even, log, row, slowing, streamed, table

from twospeed.findings.bursts import observe_holding
from twospeed.findings.comparison import APART, NOTABLE_S, compare
from twospeed.findings.observed import observe
from twospeed.findings.registry import find_all
from twospeed.findings.reuse import observe_reuse
from twospeed.findings.signs import LOW_ACCEPTANCE, drafting, falls, sampling_frac
from twospeed.findings.summary import view_load
from twospeed.findings.table import contrasts, deep_loss, is_noisy, setups, slowest_setup
from twospeed.findings.throttling import throttled_graphics, throttled_processor
from twospeed.findings.turns import lost_turns, turns_of
from twospeed.fits.observations import decode_points
from twospeed.fits.workload import typical_workload
from twospeed.records.run import (
    Goals,
    GraphicsDevice,
    LoadSummary,
    MachineFacts,
    RuntimeFacts,
)

GOALS = Goals()


def test_the_typical_request_is_the_median_of_what_was_read():
    records = [
        asked(1, (1000, 0, 1.0), (100, 1.0)),
        asked(2, (3000, 2000, 1.0), (300, 3.0)),
        asked(3, (5000, 4000, 1.0), (200, 2.0)),
    ]
    work = typical_workload(records, "log")
    assert (work.prompt_tokens, work.cached_prompt_tokens, work.output_tokens) == (3000, 2000, 200)
    assert work.origin == "log"


def test_a_turn_that_lost_its_cache_is_typical_only_where_most_did():
    kept, lost = asked(1, (9000, 8900, 0.1), (50, 1.0)), asked(2, (9000, 0, 9.0), (50, 1.0))
    assert typical_workload([kept, kept, lost], "log").cached_prompt_tokens == 8900
    assert typical_workload([kept, lost, lost], "log").cached_prompt_tokens == 0
    assert typical_workload([asked(1, (None, None, 1.0), (5, 1.0))], "log") is None


def test_a_prompt_of_unknown_length_counts_by_what_was_read_of_it():
    work = typical_workload([asked(1, (None, None, 30.0), (200, 20.0), read=2300)], "log")
    assert (work.prompt_tokens, work.cached_prompt_tokens) == (2300, 0)


def test_windows_of_an_answer_show_the_slope_that_its_mean_hides():
    one = asked(1, (600, 0, 0.2), (6000, 66.0), decode_windows=slowing(0.006, 0.016))
    points = decode_points([one], ignore_timings=False)
    assert len(points) == 12
    assert points[0].depth_tokens == pytest.approx(600 + 250)
    assert sum(point.steps for point in points) == 6000
    fit = observe(log(one)).decode
    assert fit.per_depth_token_s == pytest.approx(0.01 / 5500, rel=0.05)
    short = replace(one, signs=replace(one.signs, decode_windows=one.signs.decode_windows[:3]))
    assert len(decode_points([short], ignore_timings=False)) == 1


@pytest.mark.parametrize(
    ("first_s", "last_s", "named"), [(0.01, 0.0158, False), (0.01, 0.02, True)]
)
def test_an_answer_falls_from_a_factor_on(first_s, last_s, named):
    one = asked(1, (600, 0, 0.2), (6000, 66.0), decode_windows=slowing(first_s, last_s, windows=40))
    assert (falls([one]) is not None) is named


@pytest.mark.parametrize(("accepted", "rejected"), [(29, True), (31, False), (100, False)])
def test_drafts_are_rejected_below_a_share(accepted, rejected):
    found = drafting(
        [asked(1, (9, 0, 1.0), (9, 1.0), drafted_tokens=100, accepted_tokens=accepted)]
    )
    assert found.rejected is rejected
    assert found.share == accepted / 100
    assert LOW_ACCEPTANCE == 0.3
    few = asked(1, (9, 0, 1.0), (9, 1.0), drafted_tokens=5, accepted_tokens=0)
    assert drafting([few]) is None


def test_sampling_is_a_share_of_decode():
    one = asked(1, (9, 0, 1.0), (9, 4.0), sampling_s=1.0)
    assert sampling_frac([one, replace(one, signs=None)]) == 0.25
    assert sampling_frac([replace(one, signs=None)]) is None


@given(
    prefill=st.floats(0.2, 20), other=st.floats(0.2, 20), decode=st.floats(0.2, 20),
    rest=st.floats(0.2, 20),
)  # fmt: skip
def test_a_comparison_names_the_phase_that_differs_more(prefill, other, decode, rest):
    found = compare(
        [asked(1, (1000, 0, prefill), (100, decode)), asked(2, (1000, 0, other), (100, rest))]
    )
    if found is None:
        return
    assert found.ratio >= APART
    assert found.ratio > found.other_ratio
    ratios = {"prefill": prefill / other, "decode": decode / rest}
    ratio = ratios[found.phase]
    assert found.ratio == pytest.approx(max(ratio, 1 / ratio))
    assert found.seconds > 0
    assert max((prefill, other) if found.phase == "prefill" else (decode, rest)) >= NOTABLE_S


@pytest.mark.parametrize(
    "records",
    [
        [asked(1, (1000, 0, 1.0), (100, 1.0))],
        [asked(1, (1000, 0, 9.0), (100, 1.0)), asked(2, (3000, 0, 9.0), (100, 1.0))],
        [asked(1, (1000, 0, 0.4), (100, 1.0)), asked(2, (1000, 0, 0.1), (100, 1.0))],
        [asked(1, (1000, 0, 9.0), (100, 1.0), others=2), asked(2, (1000, 0, 1.0), (100, 1.0))],
        [asked(n, (1000, 0, 1.0 + 9 * (n == 3)), (100, 1.0)) for n in range(1, 9)],
    ],
    ids=["alone", "another length", "too short", "company", "a day's work"],
)
def test_no_comparison_where_requests_are_not_alike(records):
    assert compare(records) is None


def test_set_ups_are_told_apart_by_what_differs_beside_the_test():
    rows = [
        row("prefill", 90.0, threads=4),
        row("decode", 9.0, threads=4),
        row("decode", 7.0, threads=8),
    ]
    assert [setup.settings["threads"] for setup in setups(rows)] == [4, 8]
    assert slowest_setup(rows).settings["threads"] == 4
    (pair,) = contrasts(rows, "threads")
    assert (pair.slow.settings["threads"], pair.ratio("decode")) == (8, 9 / 7)
    assert pair.ratio("prefill") == 1.0
    assert contrasts(rows, "layers") == []


@pytest.mark.parametrize(
    ("slow", "fast", "blame"),
    [
        ({"layers_offloaded": 20}, {"layers_offloaded": 33}, "layers"),
        ({"n_ubatch": 16}, {"n_ubatch": 512}, "batch"),
        ({"threads": 24}, {"threads": 8}, "threads"),
        ({"devices": 2}, {"devices": 1}, "devices"),
        ({"no_kv_offload": True}, {"no_kv_offload": False}, "kv_cache"),
        ({"threads": 4}, {"threads": 8}, None),
        ({"layers_offloaded": 33}, {"layers_offloaded": 20}, None),
        ({"kv_type_k": "q8_0"}, {"kv_type_k": "f16"}, None),
        ({"threads": 24, "n_ubatch": 16}, {"threads": 8, "n_ubatch": 512}, None),
        ({"model": "wren"}, {"model": "finch"}, None),
    ],
)
def test_only_a_known_disadvantage_is_blamed(slow, fast, blame):
    rows = [row("decode", 10.0, **slow), row("decode", 40.0, **fast)]
    assert [pair.blame for pair in contrasts(rows)] == ([blame] if blame else [])


def test_the_depth_of_a_table_is_that_of_one_set_up():
    rows = [row("decode", 80.0), row("decode", 50.0, 4096), row("decode", 20.0, 32768)]
    assert deep_loss(rows) == (32768, 4.0)
    assert deep_loss([row("decode", 80.0, fa=1), row("decode", 20.0, 4096, fa=0)]) is None
    assert deep_loss(rows[:1]) is None


def test_a_table_is_noisy_when_most_rows_are():
    assert is_noisy([row("decode", 50.0, sd=20.0)])
    assert not is_noisy([row("decode", 50.0, sd=20.0), *[row("decode", 50.0, sd=1.0)] * 2])
    assert not is_noisy([row("decode", 50.0)])


@pytest.mark.parametrize(
    ("told", "phase"),
    [
        ({"median_ttft_ms": 300.0, "mean_tpot_ms": 20.0}, "none"),
        ({"median_ttft_ms": 300.0, "mean_tpot_ms": 80.0}, "decode"),
        ({"median_ttft_ms": 300.0}, "unknown"),
        ({"mean_tpot_ms": 20.0}, "unknown"),
        ({"median_ttft_ms": 3000.0, "mean_tpot_ms": 20.0}, "unknown"),
        ({"median_ttft_ms": 3000.0, "p99_ttft_ms": 5900.0, "mean_itl_ms": 20.0}, "queue"),
        ({"mean_ttft_ms": 9000.0, "completed": 100, "duration_s": 20.0}, "queue"),
        ({"mean_ttft_ms": 9000.0, "completed": 2, "duration_s": 20.0}, "unknown"),
        ({"running_max": 16, "waiting_max": 9}, "queue"),
        ({"running_max": 16, "waiting_max": 5}, "unknown"),
        ({"queue_max": 40}, "queue"),
        ({"running_max": 7, "waiting_max": 0, "generation_tps_max": 280.0}, "unknown"),
        ({"preemptions": 3, "running_max": 16, "waiting_max": 90}, "decode"),
        ({"kv_cache_usage_max_pct": 99.5, "waiting_max": 3, "running_max": 20}, "decode"),
        ({"kv_cache_usage_max_pct": 99.5, "waiting_max": 0, "running_max": 20}, "unknown"),
    ],
)
def test_sums_are_judged_by_what_they_hold(told, phase):
    assert view_load(LoadSummary(**told), GOALS).phase == phase


def test_no_sums_no_judgement():
    assert view_load(None, GOALS) is None


def held(stamps, **parts):
    return observe_holding(log(*(streamed(n, stamps) for n in (1, 2, 3)), **parts))


def test_bursts_are_told_from_drafts_and_from_an_even_stream():
    assert held(bursts(16, 0.19)).texts_per_burst == 16
    assert held(bursts(16, 0.19)).pause_s == pytest.approx(0.19, rel=0.01)
    assert held(bursts(4, 0.05)) is None
    assert held(even()) is None
    assert held(even(gap_s=0.001)) is None
    assert held(bursts(16, 0.19), facts=RuntimeFacts(draft_model=True)) is None


def test_one_answer_in_bursts_is_chance():
    records = [streamed(1, bursts(16, 0.19)), *(streamed(n, even()) for n in (2, 3, 4))]
    assert observe_holding(log(*records)) is None


def test_a_conversation_is_followed_through_other_requests():
    run = log(
        asked(1, (3000, 0, 3.0), (100, 1.0), slot=0),
        asked(2, (900, 0, 1.0), (20, 0.2), slot=1),
        asked(3, (3300, 3090, 0.2), (90, 1.0), slot=0),
        asked(4, (3600, 0, 3.6), (80, 1.0), slot=0),
    )
    kept, lost = turns_of(run)
    assert (kept.record.number, kept.before.number, kept.lost) == (3, 1, False)
    assert kept.between == ()
    assert (lost.record.number, lost.before.number, lost.held_tokens) == (4, 3, 3390)
    assert lost_turns(run) == [lost]
    assert observe_reuse(run, None).reused == "partial"


@pytest.mark.parametrize(
    "second",
    [(2900, 0, 2.9), (9000, 0, 9.0), (3050, 0, 3.0), (3200, None, 3.0)],
    ids=["shorter", "far longer", "without the answer", "cached part unknown"],
)
def test_no_conversation_is_read_into_other_prompts(second):
    run = log(asked(1, (3000, 0, 3.0), (100, 1.0)), asked(2, second, (100, 1.0)))
    assert turns_of(run) == []


def test_a_constant_zero_of_cached_tokens_makes_no_lost_turn():
    records = [asked(n, (3000 + 200 * n, 0, 3.0), (100, 1.0)) for n in range(1, 6)]
    assert len(lost_turns(log(*records))) == 4
    assert turns_of(log(*records, facts=RuntimeFacts(reports_cached_tokens=False))) == []


@pytest.mark.parametrize(
    ("device", "held_back"),
    [
        ({"throttled_by": ("thermal",)}, True),
        ({"throttled_by": ("HW Slowdown",)}, True),
        ({"throttled_by": ("power_cap",)}, False),
        ({"throttled_by": ("power_cap",), "clock_hz": 5e8, "clock_max_hz": 2e9}, True),
        ({"clock_hz": 5e8, "clock_max_hz": 2e9}, False),
    ],
)
def test_a_power_cap_alone_is_usual(device, held_back):
    machine = MachineFacts(graphics=(GraphicsDevice(name="Wren 16", **device),))
    assert (throttled_graphics(machine) is not None) is held_back


@pytest.mark.parametrize(
    ("facts", "held_back"),
    [
        ({"throttle_events": 12}, True),
        ({"throttle_events": 0}, False),
        ({"throttled_by": ("boost_off",)}, False),
        ({"throttled_by": ("clock_cap",), "clock_hz": 1e9, "clock_max_hz": 4e9}, True),
        ({"clock_hz": 1e9, "clock_max_hz": 4e9}, False),
    ],
)
def test_the_processor_is_throttled_when_it_says_so(facts, held_back):
    assert (throttled_processor(MachineFacts(**facts)) is not None) is held_back


seconds = st.none() | st.floats(0, 500)
tokens = st.none() | st.integers(0, 50_000)
requests = st.lists(
    st.builds(
        lambda reading, writing, **more: asked(1, reading, writing, **more),
        st.tuples(tokens, tokens, seconds),
        st.tuples(tokens, seconds),
        load_s=seconds,
        queue_s=seconds,
        total_s=seconds,
        read=tokens,
        others=st.none() | st.integers(0, 5),
        held_tokens=tokens,
        matched_tokens=tokens,
        similarity_frac=st.none() | st.floats(0, 1),
        drafted_tokens=tokens,
        accepted_tokens=tokens,
        sampling_s=seconds,
        disturbed_s=seconds,
        prefill_step_tokens=tokens,
        context_cut=st.none() | st.booleans(),
    ),
    max_size=7,
)
rows = st.lists(
    st.builds(
        row,
        st.sampled_from(["prefill", "decode"]),
        st.floats(0.01, 1e6),
        st.integers(0, 40_000),
        st.none() | st.floats(0, 1e6),
        threads=st.integers(1, 64),
        layers_offloaded=st.integers(0, 99),
    ),
    max_size=6,
)
sums = st.none() | st.builds(
    LoadSummary,
    completed=tokens,
    duration_s=seconds,
    mean_ttft_ms=seconds,
    p99_ttft_ms=seconds,
    mean_tpot_ms=seconds,
    running_max=tokens,
    waiting_max=tokens,
    preemptions=tokens,
)


@given(found=requests, points=rows, summary=sums)
def test_whatever_a_text_tells_is_read_without_fault(found, points, summary):
    numbered = [replace(record, number=n) for n, record in enumerate(found, 1)]
    run = table(*points, summary=summary)
    run = replace(run, records=tuple(numbered), workload=log(*numbered).workload)
    seen = observe(run)
    for finding in find_all(seen):
        assert finding.evidence
        assert finding.costs_s is None or finding.costs_s > 0
    if not found and not points and summary is None:
        assert seen.slow_phase == "unknown"
