from __future__ import annotations

from array import array

from twospeed.simulator.bench import Bench
from twospeed.simulator.cache import PromptCache
from twospeed.simulator.job import Asked, Job
from twospeed.simulator.machine import Machine

MS = 1_000_000
MACHINE = Machine(prefill_tps=1000, decode_tps=100)


def job(number: int, arrival_ms: float, tokens: int = 100, config: str = "") -> Job:
    prompt = array("I", range(1000 * number, 1000 * number + tokens))
    asked = Asked(form="chat", prompt=prompt, output_tokens=2, stream=True, config=config)
    return Job(
        number=number,
        asked=asked,
        arrival_ns=round(arrival_ms * MS),
        made_s=0,
        answer=["a", " b"],
    )


def bench(slots: int = 1, **how) -> Bench:
    return Bench(MACHINE, PromptCache(slots), **how)


def test_a_free_slot_starts_at_arrival_not_at_the_call():
    b = bench()
    b.arrive(job(1, 5))
    started = b.start_next()
    assert (started.queue_end_ns, started.prefill_start_ns) == (5 * MS, 5 * MS)
    assert started.prefill_end_ns == 105 * MS
    assert (started.queue_ns, started.load_ns) == (0, 0)


def test_the_queue_is_first_come_first_served():
    b = bench()
    first, second, third = job(1, 0), job(2, 10), job(3, 20)
    for each in (first, second, third):
        b.arrive(each)
    assert b.start_next() is first
    assert b.start_next() is None
    b.leave(first, 150 * MS)
    assert b.start_next() is second
    assert second.queue_end_ns == 150 * MS
    assert second.queue_ns == 140 * MS
    assert b.start_next() is None
    b.leave(second, 300 * MS)
    assert b.start_next() is third


def test_two_slots_run_two_at_once():
    b = bench(slots=2)
    b.arrive(job(1, 0))
    b.arrive(job(2, 10))
    assert [b.start_next().number, b.start_next().number] == [1, 2]
    assert b.decoding(99 * MS) == 0
    assert b.decoding(100 * MS) == 1
    assert b.decoding(110 * MS) == 2


def test_the_first_request_pays_for_the_load_and_others_for_the_rest_of_it():
    b = bench(slots=2, load_s=0.5)
    assert not b.is_loaded(0)
    b.arrive(job(1, 0))
    b.arrive(job(2, 200))
    first, second = b.start_next(), b.start_next()
    assert first.load_ns == 500 * MS
    assert second.load_ns == 300 * MS
    assert not b.is_loaded(499 * MS)
    assert b.is_loaded(500 * MS)


def test_a_loaded_model_costs_nothing_until_it_was_idle_too_long():
    b = bench(load_s=0.5, unload_after_s=1.0)
    first = job(1, 0)
    b.arrive(first)
    b.start_next()
    b.leave(first, 700 * MS)
    second = job(2, 1600)
    b.arrive(second)
    assert b.start_next().load_ns == 0
    b.leave(second, 1700 * MS)
    assert not b.is_loaded(2701 * MS)
    third = job(3, 2701)
    b.arrive(third)
    assert b.start_next().load_ns == 500 * MS


def test_loading_again_forgets_the_cache():
    b = bench(load_s=0.5, unload_after_s=1.0)
    first = job(1, 0)
    b.arrive(first)
    b.start_next()
    b.leave(first, 700 * MS)
    again = job(1, 9000)
    b.arrive(again)
    assert b.start_next().cached_tokens == 0


def test_another_configuration_loads_again():
    b = bench(load_s=0.5)
    for number, (at_ms, config, load_ms) in enumerate(
        [(0, "", 500), (1000, "", 0), (2000, "num_ctx=9", 500), (3000, "num_ctx=9", 0)]
    ):
        each = job(number, at_ms, config=config)
        b.arrive(each)
        assert b.start_next().load_ns == load_ms * MS
        b.leave(each, (at_ms + 700) * MS)


def test_what_was_said_stays_in_the_slot_but_for_the_last_token():
    b = bench()
    first = job(1, 0)
    b.arrive(first)
    b.start_next()
    first.done_tokens = 2
    b.leave(first, 200 * MS)
    assert len(b.cache.slots[0].content.tokens) == 101


def test_who_gives_up_in_the_queue_leaves_no_trace():
    b = bench()
    first, second = job(1, 0), job(2, 10)
    b.arrive(first)
    b.arrive(second)
    b.start_next()
    b.leave(second, 20 * MS)
    assert not b.waiting
    assert b.totals.requests == 0


def test_totals_count_what_was_done():
    b = bench()
    for at_ms in (0, 1000):
        each = job(1, at_ms)
        b.arrive(each)
        b.start_next()
        each.done_tokens, each.last_token_ns = 2, each.prefill_end_ns + 10 * MS
        b.leave(each, each.last_token_ns)
    totals = b.totals
    assert (totals.prompt_tokens, totals.cached_tokens, totals.output_tokens) == (200, 99, 4)
    assert (totals.prefill_ns, totals.decode_ns) == (101 * MS, 20 * MS)
