"""Predictions of saved diagnoses, scored against runs of machines that were changed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from twospeed.cures.prediction import REUSE_CURES, prediction_for, request_after, score
from twospeed.cures.sessions import compare_runs
from twospeed.findings.observed import observe
from twospeed.fits.interval import Interval
from twospeed.records.errors import UsageError
from twospeed.records.request_record import ServerTimes
from twospeed.records.run import RuntimeFacts, Workload

SHAPES = ((128, 64), (512, 64), (1024, 64), (2048, 64), (4096, 64), (1000, 64))
F16 = RuntimeFacts(quantization="F16", n_ctx=8192)
SPLIT = RuntimeFacts(layers_total=32, layers_offloaded=16, quantization="Q8_0", n_ctx=8192)


def told(record, **times):
    return replace(record, server=replace(record.server or ServerTimes(told_by="x"), **times))


def session(
    runs, machine, *, first: dict | None = None, every: dict | None = None, more=(), **changes
):
    """A run over the usual lengths and one more; `first` and `every` add to the server's times."""
    records = [machine.record(n, *shape) for n, shape in enumerate(SHAPES, start=1)]
    records = [told(record, **(every or {})) for record in records]
    records[0] = told(records[0], **(first or {}))
    return runs.run_of(machine, records=(*records, *more), **changes)


def known_prompts(runs, machine, prompt: int = 2000):
    """Follow-up prompts of which nine tenths were held."""
    fresh = machine.record(1, prompt, 64)
    cached = int(0.9 * prompt)
    seconds = machine.prefill_s(prompt - cached, cached) if machine.reuses else None
    record = replace(
        fresh,
        step="reuse",
        counts=replace(fresh.counts, cached_prompt_tokens=cached if machine.reuses else 0),
    )
    if seconds is not None:
        record = told(record, prefill_s=seconds, prefill_tokens=prompt - cached)
    return tuple(replace(record, number=number) for number in range(7, 14))


def cases(runs):
    """Each cure: the run before it, the run after it, and whether the prediction should hold."""
    slow, steps, both = runs.PREFILL_SLOW, runs.DECODE_SLOW, runs.BOTH_SLOW
    no_reuse = runs.Machine(per_token_s=0.0022, decode_per_token_s=0.0105, reuses=False)
    reusing = runs.Machine(per_token_s=0.0022, decode_per_token_s=0.0105)
    thinking = runs.Machine(per_token_s=0.0002, decode_per_token_s=0.05, reasoning_frac=0.5)
    repeat = no_reuse.record(7, 2048, 16, repeats=4)
    smaller = runs.Machine(per_token_s=0.0004, decode_per_token_s=0.12 / 1.6)
    whole = runs.Machine(per_token_s=0.0004, decode_per_token_s=0.12 * 0.25)
    known = {"records": known_prompts(runs, reusing)}
    return {
        "shorter prompt": (session(runs, slow), session(runs, slow)),
        "shorter answer": (session(runs, steps), session(runs, steps)),
        "less reasoning": (session(runs, thinking), session(runs, thinking)),
        "turn reuse on": (
            session(runs, no_reuse, more=(repeat,)),
            runs.run_of(reusing, **known),
        ),
        "keep the prefix stable": (session(runs, reusing), runs.run_of(reusing, **known)),
        "keep the model loaded": (
            session(runs, slow, first={"load_s": 9.0}),
            session(runs, slow, first={"load_s": 0.0}),
        ),
        "give the conversation its own slot": (
            session(runs, slow, every={"queue_s": 7.0}),
            session(runs, slow, every={"queue_s": 0.0}),
        ),
        "smaller quantization": (session(runs, steps, facts=F16), session(runs, smaller)),
        "full offload": (session(runs, steps, facts=SPLIT), session(runs, whole)),
        "shorter prompt, deep": (session(runs, both), session(runs, both)),
    }


NAMES = (
    "shorter prompt",
    "shorter answer",
    "less reasoning",
    "turn reuse on",
    "keep the prefix stable",
    "keep the model loaded",
    "give the conversation its own slot",
    "smaller quantization",
    "full offload",
    "shorter prompt, deep",
)


def scored(before, now, name: str):
    prediction = prediction_for(before, name)
    after = request_after(prediction.cure, observe(before))
    found = compare_runs(before, now, after, reuse=prediction.cure in REUSE_CURES)
    return score(prediction.saves_s, found.saved_s), prediction, found


@pytest.mark.parametrize("name", NAMES)
def test_a_cure_that_does_what_it_should_is_scored_as_held(runs, name: str):
    before, now = cases(runs)[name]
    held, prediction, found = scored(before, now, name.partition(",")[0])
    assert found.saved_s is not None, found
    assert held == "yes", (prediction, found)
    assert found.saved_s.low <= found.saved_s.likely <= found.saved_s.high


@pytest.mark.parametrize(
    "name",
    [
        "turn reuse on",
        "keep the model loaded",
        "give the conversation its own slot",
        "full offload",
    ],
)
def test_a_cure_that_changed_nothing_is_scored_as_failed(runs, name: str):
    before, _ = cases(runs)[name]
    now = before
    if name in REUSE_CURES:
        machine = runs.Machine(per_token_s=0.0022, decode_per_token_s=0.0105, reuses=False)
        now = runs.run_of(machine, records=known_prompts(runs, machine))
    held, _, found = scored(before, now, name)
    assert held == "no"
    assert found.saved_s.likely == pytest.approx(0.0, abs=0.1)


def test_a_change_is_found_by_its_cause_and_by_its_name(runs):
    before = session(runs, runs.PREFILL_SLOW)
    assert prediction_for(before, "prompt.large").cure == prediction_for(before, "prompt").cure
    assert prediction_for(before, "Shorter-Prompt").cure == "shorter prompt"
    assert prediction_for(before, "shorter prompt=1000").listed == "cures"
    assert prediction_for(before, "smaller quantization").listed == "wont_help"


def test_what_was_not_predicted_is_refused(runs):
    before = session(runs, runs.PREFILL_SLOW)
    with pytest.raises(UsageError, match="predicted nothing of 'keep the model loaded'"):
        prediction_for(before, "keep the model loaded")
    with pytest.raises(UsageError, match="Did you mean shorter answer"):
        prediction_for(before, "shorter anser")
    with pytest.raises(UsageError, match="nothing was slow"):
        prediction_for(session(runs, runs.HEALTHY), "larger batch")


def test_the_request_that_is_left(runs):
    thinking = runs.Machine(decode_per_token_s=0.05, reasoning_frac=0.5)
    observed = observe(session(runs, thinking))
    work = Workload(prompt_tokens=2000, output_tokens=300)
    assert request_after("full offload", observed) == work
    assert request_after("shorter prompt", observed).prompt_tokens == 1000
    assert request_after("shorter answer", observed).output_tokens == 225
    assert request_after("less reasoning", observed).output_tokens == 225
    assert request_after("turn reuse on", observed).cached_prompt_tokens == 1800


@pytest.mark.parametrize(
    ("measured", "held"),
    [
        (None, "cannot tell"),
        (Interval(1.5, 2.0, 2.5), "yes"),
        (Interval(0.0, 0.5, 0.9), "no"),
        (Interval(3.1, 4.0, 5.0), "no"),
        (Interval(0.1, 0.8, 1.5), "cannot tell"),
    ],
)
def test_scores(measured, held: str):
    assert score(Interval(1.0, 2.0, 3.0), measured) == held


def test_two_clocks_are_not_compared(runs):
    before = session(runs, runs.PREFILL_SLOW)
    now = replace(session(runs, runs.PREFILL_SLOW), ignore_timings=True)
    found = compare_runs(before, now, before.workload)
    assert {one.why for one in found.phases.values()} == {"not_measured"}
    assert found.saved_s is None


def test_a_run_without_curves_is_no_basis(runs):
    before = runs.blind_run()
    found = compare_runs(before, session(runs, runs.HEALTHY), before.workload)
    assert found.before_s is None
    assert found.phases["workload"].verdict == "cannot tell"
