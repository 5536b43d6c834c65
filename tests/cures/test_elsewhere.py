from __future__ import annotations

import pytest

from twospeed.cures.elsewhere import Remote, compare, there_s
from twospeed.cures.registry import weigh
from twospeed.findings.observed import observe
from twospeed.findings.registry import find_all
from twospeed.report.what_if_text import elsewhere_lines


def test_seconds_elsewhere_are_those_that_were_given():
    remote = Remote(ttft_s=1.0, tps=50.0, ttft_per_1k_s=0.2)
    assert there_s(remote, 2000, 101) == pytest.approx(1.0 + 0.4 + 2.0)


def test_the_line_runs_where_both_take_as_long(runs):
    machine = runs.Machine(overhead_s=0.0, per_token_s=0.001, decode_per_token_s=0.01)
    observed = observe(runs.run_of(machine, prompt=2000, output=101))
    # here: 2 ms + n / 1000 + 1.0; there: 0.5 + 2.0
    found = compare(observed, Remote(ttft_s=0.5, tps=50.0))
    assert found.prompt_line.below == "here"
    assert found.prompt_line.at_tokens == pytest.approx(1500, abs=30)
    # here: 2.0 + m / 100; there: 0.5 + m / 50
    assert found.output_line.below == "there"
    assert found.output_line.at_tokens == pytest.approx(151, abs=5)
    assert found.request.faster == "there"
    by_shape = {(shape.prompt_tokens, shape.output_tokens): shape for shape in found.shapes}
    assert by_shape[500, 1000].faster == "here"
    assert by_shape[8000, 100].faster == "there"


def test_one_may_be_faster_throughout(runs):
    observed = observe(runs.run_of(runs.BOTH_SLOW))
    fast, slow = Remote(ttft_s=0.001, tps=1e6), Remote(ttft_s=900.0, tps=0.1)
    found = compare(observed, fast)
    assert (found.prompt_line.at_tokens, found.prompt_line.below) == (None, "there")
    assert {shape.faster for shape in found.shapes} == {"there"}
    found = compare(observed, slow)
    assert (found.output_line.at_tokens, found.output_line.below) == (None, "here")


def test_shapes_stay_inside_the_context(runs):
    observed = observe(runs.run_of(runs.BOTH_SLOW))
    found = compare(observed, Remote(ttft_s=1.0, tps=50.0))
    assert max(shape.prompt_tokens for shape in found.shapes) <= observed.run.facts.n_ctx


def test_money(runs):
    observed = observe(runs.run_of(runs.BOTH_SLOW))
    remote = Remote(
        ttft_s=1.0, tps=50.0, price_in=2.0, price_out=10.0, local_watts=360.0, price_kwh=0.5
    )
    request = compare(observed, remote).request
    assert request.there_price == pytest.approx(2000 * 2e-6 + 300 * 1e-5)
    assert request.here_price == pytest.approx(request.here_s.likely * 360 / 3.6e6 * 0.5)
    free = compare(observed, Remote(ttft_s=1.0, tps=50.0)).request
    assert (free.here_price, free.there_price) == (None, None)


def test_what_was_not_measured_is_not_compared(runs):
    observed = observe(runs.without_phase(runs.run_of(runs.BOTH_SLOW), "decode"))
    found = compare(observed, Remote(ttft_s=1.0, tps=50.0))
    assert found.request.faster == "unknown"
    assert found.prompt_line.below == "unknown"
    assert elsewhere_lines(found) == ["not known here, 7.0 s there: not known"]


def test_a_known_server_is_weighed_like_any_other_change(runs):
    observed = observe(runs.run_of(runs.BOTH_SLOW))
    findings = find_all(observed)
    cures, _ = weigh(observed, findings, Remote(ttft_s=1.0, tps=50.0))
    (sent,) = [cure for cure in cures if cure.cure == "send this request elsewhere"]
    there = there_s(Remote(ttft_s=1.0, tps=50.0), 2000, 300)
    assert sent.saves_s.likely == pytest.approx(observed.budget.total_s - there, rel=0.02)
    _, idle = weigh(observed, findings, Remote(ttft_s=500.0, tps=1.0))
    (kept,) = [wont for wont in idle if wont.cure == "send this request elsewhere"]
    assert kept.why == "may_slow_down"


def test_lines_are_short(runs):
    observed = observe(runs.run_of(runs.PREFILL_SLOW))
    remote = Remote(
        ttft_s=0.8, tps=60.0, price_in=3.0, price_out=15.0, local_watts=100.0, price_kwh=0.3
    )
    lines = elsewhere_lines(compare(observed, remote))
    assert len(lines) == 4
    assert max(map(len, lines)) <= 65
