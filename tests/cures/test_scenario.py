from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.cures.cure import CURES
from twospeed.cures.registry import proposers, weigh
from twospeed.cures.scenario import knobs, price, price_now, read_scenario
from twospeed.findings.observed import observe
from twospeed.findings.registry import find_all
from twospeed.records.errors import UsageError
from twospeed.records.run import MachineFacts, RuntimeFacts


def priced(run, text):
    return price(observe(run), read_scenario(text))


def test_now_is_what_the_report_says(runs):
    for run in (runs.run_of(runs.BOTH_SLOW), runs.run_of(runs.Machine(reasoning_frac=0.5))):
        observed = observe(run)
        now = price_now(observed)
        assert now.wait_s.likely == pytest.approx(observed.wait.seconds)
        assert now.stream_tps.likely == pytest.approx(observed.stream.tps)
        assert now.total_s.likely == pytest.approx(observed.budget.total_s)


def test_known_answers_on_exact_curves(runs):
    machine = runs.BOTH_SLOW
    run = runs.run_of(machine)
    half = priced(run, "prompt=0.5")
    assert half.wait_s.likely == pytest.approx(machine.prefill_s(1000), rel=0.02)
    assert half.stream_tps.likely == pytest.approx(1 / machine.token_s(1150), rel=0.02)
    reused = priced(run, "cache=0.75")
    assert reused.wait_s.likely == pytest.approx(machine.prefill_s(500, 1500), rel=0.03)
    deep = priced(run, "depth=2000")
    assert deep.wait_s.likely == pytest.approx(machine.prefill_s(2000, 2000), rel=0.03)
    assert deep.stream_tps.likely == pytest.approx(1 / machine.token_s(4150), rel=0.03)
    short = priced(run, "output=100")
    answer_s = sum(machine.token_s(2000 + step) for step in range(99))
    assert short.total_s.likely == pytest.approx(machine.prefill_s(2000) + answer_s, rel=0.02)


def test_bandwidth_moves_the_stream_and_compute_the_wait(runs):
    run = runs.run_of(runs.BOTH_SLOW)
    now = price_now(observe(run))
    memory, compute = priced(run, "bandwidth=2"), priced(run, "compute=2")
    assert memory.wait_s.likely == pytest.approx(now.wait_s.likely)
    assert 1.5 <= memory.stream_tps.likely / now.stream_tps.likely <= 1.8
    assert compute.wait_s.likely < 0.7 * now.wait_s.likely
    assert compute.stream_tps.likely == pytest.approx(now.stream_tps.likely)


def test_changes_compose_and_their_order_does_not_matter(runs):
    run = runs.run_of(runs.BOTH_SLOW, facts=RuntimeFacts(n_batch=8, quantization="Q8_0"))
    one = priced(run, "prompt=0.5,cache=on,quant=q4_k_m,batch=512,depth=2000,kv=q8_0")
    other = priced(run, "kv=q8_0,depth=2000,batch=512,quant=q4_k_m,cache=on,prompt=0.5")
    assert (one.wait_s, one.stream_tps, one.total_s) == (
        other.wait_s,
        other.stream_tps,
        other.total_s,
    )
    apart = priced(run, "prompt=0.5"), priced(run, "quant=q4_k_m")
    both = priced(run, "prompt=0.5,quant=q4_k_m")
    assert both.total_s.likely < min(part.total_s.likely for part in apart)


def test_the_same_change_saves_the_same_as_its_cure(runs):
    observed = observe(runs.run_of(runs.BOTH_SLOW))
    cures, _ = weigh(observed, find_all(observed))
    saves = {cure.cure: cure.saves_s.likely for cure in cures}
    for cure, text in (
        ("shorter prompt", "prompt=0.5"),
        ("keep the prefix stable", "cache=on"),
        ("faster memory", "bandwidth=2"),
        ("more compute", "compute=2"),
    ):
        total = price(observed, read_scenario(text)).total_s.likely
        assert observed.budget.total_s - total == pytest.approx(saves[cure], rel=0.01), cure


def test_off_and_none(runs):
    run = runs.run_of(runs.BOTH_SLOW)
    assert priced(run, "cache=off").wait_s.likely == pytest.approx(
        price_now(observe(run)).wait_s.likely
    )
    assert priced(run, "prompt=0").wait_s.likely < 0.1
    thinking = runs.run_of(runs.Machine(reasoning_frac=0.5))
    quiet = priced(thinking, "reasoning=off")
    assert quiet.wait_s.likely == pytest.approx(runs.Machine().prefill_s(2000), rel=0.05)


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("batch=512", "batch"),
        ("offload=full", "offload"),
        ("threads=2", "threads"),
        ("reasoning=off", "reasoning"),
    ],
)
def test_what_the_run_does_not_show_has_no_price(runs, text, needs):
    found = priced(runs.run_of(runs.BOTH_SLOW), f"{text},prompt=0.5")
    assert found.needs.startswith(needs)
    assert (found.wait_s, found.stream_tps, found.total_s) == (None, None, None)


def test_a_phase_that_was_not_measured_is_not_priced(runs):
    run = runs.without_phase(runs.run_of(runs.BOTH_SLOW), "decode")
    found = priced(run, "prompt=0.5")
    assert found.wait_s is not None
    assert found.stream_tps is None
    assert found.total_s is None


def test_threads_of_a_crowded_machine(runs):
    facts = RuntimeFacts(threads=8)
    machine = MachineFacts(physical_cores=2, logical_cores=2)
    run = runs.run_of(runs.DECODE_SLOW, facts=facts, machine=machine)
    assert priced(run, "threads=2").stream_tps.likely > 2 * 8.0
    assert priced(run, "threads=1").needs, "fewer than the cores needs a measurement"
    assert priced(run, "threads=8").total_s.likely == pytest.approx(
        price_now(observe(run)).total_s.likely
    )


def test_a_wider_cache_type_undoes_a_narrower_one(runs):
    facts = RuntimeFacts(kv_type_k="q8_0", kv_type_v="q8_0", size_vram_bytes=5)
    run = runs.run_of(runs.BOTH_SLOW, facts=facts)
    now = price_now(observe(run)).stream_tps.likely
    assert priced(run, "kv=f16").stream_tps.likely < now < priced(run, "kv=q4_0").stream_tps.likely


HOSTILE = [
    "",
    ",",
    "prompt",
    "prompt=",
    "=1",
    "prompt=-1",
    "prompt=nan",
    "prompt=inf",
    "prompt=1e400",
    "prompt=0x10",
    "prompt=" + "9" * 400,
    "prompt=99999999999999999999",
    "prompt=200%",
    "prompt=nan%",
    "prompt=1.5",
    "prompt=0.5,prompt=0.6",
    "prompt=0.5,Prompt=0.6",
    "prompt==2",
    "quant=q99",
    "quant=",
    "offload=half",
    "bandwidth=0",
    "bandwidth=-2",
    "bandwidth=nan",
    "bandwidth=1e9",
    "batch=0",
    "batch=1.5",
    "batch=²",
    "threads=many",
    "kv=q9_9",
    "flash_attn=maybe",
    "reasoning=7",
    "depth=-1",
    "\x1b[2J=1",
    "rm -rf=1",
    "{value}=1",
    "x" * 10_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nonsense_is_refused_in_one_printable_line(text):
    with pytest.raises(UsageError) as refused:
        read_scenario(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        scenario = read_scenario(text)
    except UsageError:
        return
    assert scenario.settings


@pytest.mark.parametrize("text", ["prompt=50%", " prompt = 0.5 ", "PROMPT=0.5,", "flash-attn=on"])
def test_spelling_is_forgiving(text):
    assert read_scenario(text).settings


amounts = st.one_of(st.just("0.5"), st.integers(2, 4000).map(str))
words = st.one_of(
    amounts.map(lambda value: f"prompt={value}"),
    amounts.map(lambda value: f"output={value}"),
    st.sampled_from(["cache=on", "cache=off", "depth=2000", "quant=q4_k_m", "quant=f16"]),
    st.sampled_from(["bandwidth=2", "compute=0.5", "kv=q8_0", "flash_attn=on", "kv=f32"]),
)


@given(st.lists(words, min_size=1, max_size=5, unique_by=lambda word: word.split("=")[0]))
def test_any_combination_is_ordered_and_never_below_nothing(runs, combination):
    found = priced(runs.run_of(runs.BOTH_SLOW), ",".join(combination))
    for interval in (found.wait_s, found.stream_tps, found.total_s):
        assert 0 <= interval.low <= interval.likely <= interval.high
    assert found.total_s.likely >= found.wait_s.likely - 1e-9


def test_every_key_of_the_help_can_be_asked():
    asked = {
        "prompt", "quant", "depth", "cache", "offload", "bandwidth", "output", "batch", "threads",
        "kv", "flash_attn",
    }  # fmt: skip
    assert asked <= set(knobs())
    assert {knob.rank for knob in knobs().values()} <= set(range(5))


def test_every_change_has_its_file():
    files = {propose.__module__.rpartition(".")[2] for propose in proposers()}
    assert len(files) == len(CURES)
