from __future__ import annotations

import pytest
from live_stories import TINY
from msgspec.structs import replace

from twospeed.findings.blind_spots import blind_spots
from twospeed.findings.finding import CAUSES, weakened
from twospeed.findings.observed import observe
from twospeed.findings.placement import gpu_share, offload_saving_frac
from twospeed.findings.registry import find_all, finders
from twospeed.records.run import (
    Conditions,
    Goals,
    MachineProbe,
    RuntimeFacts,
)

ON_CPU = RuntimeFacts(layers_offloaded=0, layers_total=30)


def causes(run):
    return [finding.cause for finding in find_all(observe(run))]


def found(run):
    return find_all(observe(run))


def test_healthy_runs_have_no_findings(runs):
    assert causes(runs.run_of(runs.HEALTHY)) == []


def test_every_family_is_discovered_in_diagnostic_order():
    rooms = [find.__module__.rsplit(".", 1)[-1] for find in finders()]
    assert rooms == [
        "measurement", "host", "waits", "buffering", "shared_batch",
        "placement", "cpu_fallback", "memory_spill", "multi_device",
        "prompt_cache", "prefill", "depth", "decode", "decode_work", "threads", "throttled",
    ]  # fmt: skip


def test_big_prompt_with_unknown_normal_is_only_possible(runs):
    (finding,) = found(runs.run_of(runs.PREFILL_SLOW))
    assert (finding.cause, finding.certainty) == ("prompt.large", "possible")
    assert finding.costs_s == pytest.approx(5.21, rel=0.02)


@pytest.mark.parametrize(
    ("flops_per_s", "cause"), [(2.5e11, "prompt.large"), (2.5e12, "prefill.compute_low")]
)
def test_prefill_against_what_is_normal(runs, flops_per_s, cause):
    run = runs.run_of(
        runs.PREFILL_SLOW,
        facts=ON_CPU,
        header=TINY,
        probe=MachineProbe(memory_bandwidth_bytes_per_s=4e10, matmul_flops_per_s=flops_per_s),
    )
    finding = found(run)[0]
    assert (finding.cause, finding.certainty) == (cause, "inferred")


@pytest.mark.parametrize(
    ("bandwidth", "cause"), [(3e9, "decode.bandwidth_bound"), (3e10, "decode.below_limit")]
)
def test_decode_against_what_is_normal(runs, bandwidth, cause):
    machine = runs.Machine(per_token_s=1e-4, decode_per_token_s=0.1)
    run = runs.run_of(
        machine,
        facts=ON_CPU,
        header=TINY,
        probe=MachineProbe(memory_bandwidth_bytes_per_s=bandwidth),
    )
    (finding,) = found(run)
    assert (finding.cause, finding.certainty) == (cause, "inferred")
    assert 0 < finding.costs_s <= 299 * 0.1 * 1.01


def test_short_prompt_is_never_called_large(runs):
    run = runs.run_of(runs.Machine(per_token_s=0.02), prompt=200)
    assert causes(run) == ["prefill.compute_low"]


def test_prefill_no_faster_than_decode_is_not_a_large_prompt(runs):
    run = runs.run_of(runs.Machine(per_token_s=0.04, decode_per_token_s=0.045))
    assert causes(run) == ["prefill.compute_low"]


def test_small_batches_are_named_before_the_prompt(runs):
    facts = RuntimeFacts(n_batch=2048, n_ubatch=16)
    assert causes(runs.run_of(runs.PREFILL_SLOW, facts=facts)) == ["prefill.batch_too_small"]


def test_depth_is_named_when_it_is_a_major_share(runs):
    deep = runs.Machine(per_token_s=1e-4, decode_per_token_s=0.02, decode_per_depth_s=4e-5)
    depth, pace = found(runs.run_of(deep))
    assert (depth.cause, depth.certainty) == ("decode.depth", "measured")
    assert pace.cause == "decode.bandwidth_bound"
    share = 4e-5 * 2150 / (0.02 + 4e-5 * 2150)
    assert depth.costs_s / (depth.costs_s + pace.costs_s) == pytest.approx(share, rel=0.02)


def test_depth_beyond_the_measured_range_is_inferred(runs):
    deep = runs.Machine(per_token_s=1e-6, decode_per_token_s=0.02, decode_per_depth_s=4e-5)
    finding = found(runs.run_of(deep, prompt=16_000))[0]
    assert (finding.cause, finding.certainty) == ("decode.depth", "inferred")


def test_hidden_reasoning_is_a_long_output(runs):
    assert causes(runs.run_of(runs.Machine(per_token_s=3e-4, reasoning_frac=0.8))) == [
        "decode.output_long"
    ]


def test_missing_reuse_takes_its_part_of_the_large_prompt(runs):
    run = runs.run_of(runs.Machine(per_token_s=0.003, reuses=False))
    cache, prompt = found(run)
    assert (cache.cause, cache.certainty) == ("prompt_cache.disabled", "possible")
    assert prompt.cause == "prompt.large"
    assert cache.costs_s + prompt.costs_s == pytest.approx(6.01, rel=0.02)
    reported = replace(run, facts=RuntimeFacts(prefix_cache_enabled=False))
    assert found(reported)[0].certainty == "reported"


def test_sliding_window_explains_missing_reuse_better(runs):
    run = runs.run_of(
        runs.Machine(per_token_s=0.003, reuses=False), header=replace(TINY, sliding_window=512)
    )
    assert causes(run)[0] == "prompt_cache.cannot_rewind"


def test_reuse_by_timing_where_it_is_not_told(runs):
    for reuses, word in ((True, "yes"), (False, "no")):
        run = runs.without_cached_counts(runs.run_of(runs.Machine(reuses=reuses), runtime="ollama"))
        reuse = observe(run).reuse
        assert (reuse.reused, reuse.how_known) == (word, "timing")


def test_a_constant_zero_of_cached_tokens_is_not_believed(runs):
    run = runs.run_of(runs.Machine(), facts=RuntimeFacts(reports_cached_tokens=False))
    records = tuple(
        replace(r, counts=replace(r.counts, cached_prompt_tokens=0)) for r in run.records
    )
    reuse = observe(replace(run, records=records)).reuse
    assert (reuse.reused, reuse.how_known) == ("yes", "timing")
    assert reuse.cases[0].cached_tokens is None


def test_reuse_is_unknown_without_a_repeat(runs):
    run = runs.run_of(runs.Machine())
    run = replace(run, records=tuple(r for r in run.records if r.repeats is None))
    assert observe(run).reuse.reused == "unknown"
    off = replace(run, facts=RuntimeFacts(prefix_cache_enabled=False))
    assert (observe(off).reuse.reused, observe(off).reuse.how_known) == ("no", "setting")


def test_waits_before_prefill(runs):
    queue = runs.run_of(runs.Machine(per_token_s=3e-4, queue_s=6.0))
    (finding,) = found(queue)
    assert (finding.cause, finding.certainty) == ("server.queue", "measured")
    far = runs.run_of(runs.Machine(per_token_s=3e-4), round_trip_s=3.0)
    far = replace(far, records=runs.without_arrivals(far).records)
    assert causes(far) == ["network.latency"]
    first = far.records[0]
    cold = replace(first, server=replace(first.server, load_s=20.0))
    loading = replace(far, records=(cold, *far.records[1:]), round_trip_s=0.01)
    (finding,) = found(loading)
    assert (finding.cause, finding.certainty, finding.costs_s) == ("model.load", "reported", 20.0)


def test_split_placement_explains_a_slow_stream(runs):
    machine = runs.Machine(per_token_s=3e-4, decode_per_token_s=0.2)
    split = RuntimeFacts(size_bytes=10**10, size_vram_bytes=7 * 10**9)
    (finding,) = found(runs.run_of(machine, facts=split))
    assert (finding.cause, finding.certainty) == ("placement.partial_offload", "reported")
    assert causes(runs.run_of(runs.HEALTHY, facts=split)) == []


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        (RuntimeFacts(size_bytes=100, size_vram_bytes=68), 0.68),
        (RuntimeFacts(layers_total=40, layers_offloaded=20), 0.5),
        (RuntimeFacts(size_bytes=100, size_vram_bytes=100), None),
        (RuntimeFacts(size_bytes=100, size_vram_bytes=0), None),
        (RuntimeFacts(), None),
    ],
)
def test_share_in_graphics_memory(facts, share):
    assert gpu_share(facts) == share


def test_offload_saving_agrees_with_the_published_sweep():
    # docs/physics.md: 83 % of the layers on the card gave 29 % of full speed.
    saved = offload_saving_frac(0.83)
    assert saved.low < 1 - 0.29 < saved.high


def test_a_lying_server_clock_is_found_and_not_used(runs):
    seen = observe(runs.run_of(runs.Machine(per_token_s=0.003, server_clock=0.5)))
    assert find_all(seen)[0].cause == "measurement.artifact"
    assert seen.prefill_s.likely == pytest.approx(6.01, rel=0.02)


def test_a_delay_or_a_queue_is_no_lying_clock(runs):
    for machine in (runs.Machine(delay_s=4.0), runs.Machine(queue_s=6.0)):
        assert observe(runs.run_of(machine)).clocks is None


def test_clocks_are_not_compared_when_the_server_is_to_be_ignored(runs):
    run = runs.run_of(runs.Machine(server_clock=0.5), ignore_timings=True)
    assert observe(run).clocks is None


def test_contention_weakens_what_we_measured_and_not_what_is_reported(runs):
    busy = Conditions(host_load=0.6, trusted=False)
    quiet = found(runs.run_of(runs.BOTH_SLOW))
    noisy = found(runs.run_of(runs.BOTH_SLOW, conditions=busy))
    assert [f.cause for f in quiet] == [f.cause for f in noisy]
    assert [f.certainty for f in noisy] == [weakened(f.certainty) for f in quiet]
    assert weakened("reported") == "reported"
    assert weakened("measured") == "inferred"


def test_contention_is_named_only_beside_something_slow(runs):
    busy = Conditions(host_load=0.6)
    assert "host.contention" in causes(runs.run_of(runs.PREFILL_SLOW, conditions=busy))
    assert causes(runs.run_of(runs.HEALTHY, conditions=busy)) == []


def test_at_most_three_and_the_worst_first(runs):
    facts = RuntimeFacts(size_bytes=10, size_vram_bytes=6)
    run = runs.run_of(
        runs.Machine(
            per_token_s=0.004, decode_per_token_s=0.1, decode_per_depth_s=1e-4, reuses=False
        ),
        facts=facts,
        goals=Goals(wait_s=0.5),
    )
    findings = found(run)
    assert len(findings) == 3
    costs = [finding.costs_s for finding in findings]
    assert costs == sorted(costs, reverse=True)
    assert {finding.cause for finding in findings} <= set(CAUSES)


def test_one_request_of_a_log_speaks_for_itself(runs):
    run = runs.without_arrivals(runs.run_of(runs.PREFILL_SLOW))
    only = replace(run, records=(run.records[3],))
    seen = observe(only)
    assert seen.prefill is None
    assert seen.prefill_s.likely == pytest.approx(5.35, rel=0.03)
    assert seen.slow_phase == "prefill"


def test_blind_spots_name_what_is_missing(runs):
    gaps = {blind.what for blind in blind_spots(observe(runs.blind_run()))}
    assert {"prefill time of this workload", "decode speed"} <= gaps
    seen = {blind.what for blind in blind_spots(observe(runs.run_of(runs.HEALTHY)))}
    assert not {"prefill time of this workload", "decode speed"} & seen
    cut = {b.what for b in blind_spots(observe(runs.run_of(runs.HEALTHY, complete=False)))}
    assert "the rest of this run" in cut - seen


@pytest.mark.parametrize("server_clock", [1.5, 7.0])
def test_a_server_that_claims_more_than_the_whole_wait_is_found_however_short(runs, server_clock):
    # At most 0.08 s too much, which as an excess of our clock would be let pass.
    machine = runs.Machine(overhead_s=0.001, per_token_s=3e-5, server_clock=server_clock)
    clocks = observe(runs.run_of(machine)).clocks
    assert clocks.phase == "prefill"
    assert clocks.ratio == pytest.approx(1 / server_clock, rel=0.15)
    assert not clocks.server_tells_less


def test_a_clock_step_more_than_the_wait_is_let_pass(runs):
    machine = runs.Machine(overhead_s=0.001, per_token_s=1e-6, server_clock=2.0)
    run = runs.run_of(machine)
    told = [replace(r, server=replace(r.server, decode_s=None)) for r in run.records]
    assert observe(replace(run, records=tuple(told))).clocks is None
