"""Every line format and generation, read to known answers."""

from __future__ import annotations

import pytest
from line_samples import CARD, MLX_SERVER, OLLAMA_BLOCK, SAMPLES, TIMINGS_V1
from msgspec.structs import asdict
from told_by_logs import told

from twospeed.records.run import LoadSummary, RuntimeFacts
from twospeed.sources.logs.reading import read_text


@pytest.mark.parametrize("name", SAMPLES)
def test_requests_are_read_to_the_number(name):
    assert told(read_text(SAMPLES[name].text)) == SAMPLES[name].requests


@pytest.mark.parametrize("name", SAMPLES)
def test_facts_and_sums_are_what_the_text_says_and_no_more(name):
    content, sample = read_text(SAMPLES[name].text), SAMPLES[name]
    assert content.facts == RuntimeFacts(**sample.facts)
    assert content.summary == (LoadSummary(**sample.summary) if sample.summary else None)
    assert content.end_to_end == sample.end_to_end
    assert content.unread == 0
    if sample.runtime:
        assert content.runtime == sample.runtime


@pytest.mark.parametrize("name", [name for name, one in SAMPLES.items() if one.signs])
def test_signs_of_the_first_request(name):
    signs = read_text(SAMPLES[name].text).records[0].signs
    assert signs is not None
    assert {key: getattr(signs, key) for key in SAMPLES[name].signs} == SAMPLES[name].signs


def test_steps_and_windows_of_a_prompt_and_an_answer():
    signs = read_text(SAMPLES["llama-server 2026"].text).records[0].signs
    assert signs is not None
    assert [(one.output_tokens, one.per_token_s) for one in signs.decode_windows] == [(150, 0.02)]
    assert signs.prefill_step_tokens == 2048


def test_queue_and_load_are_kept_apart():
    tabby = read_text(SAMPLES["tabbyAPI old"].text).records[0].server
    tgi = read_text(SAMPLES["TGI"].text).records[0].server
    ollama = read_text(OLLAMA_BLOCK).records[0].server
    assert tabby is not None
    assert tgi is not None
    assert ollama is not None
    assert tabby.queue_s == 0.5
    assert tgi.queue_s == pytest.approx(0.1505)
    assert (ollama.load_s, ollama.queue_s) == (0.0205, None)


def test_a_long_rest_of_an_ollama_block_is_waiting():
    waited = OLLAMA_BLOCK.replace("12.5s", "20.5s")
    server = read_text(waited).records[0].server
    assert server is not None
    assert server.queue_s == pytest.approx(20.5 - 0.0205 - 2.25 - 10.125)


def test_the_load_time_of_a_block_is_no_load():
    server = read_text(TIMINGS_V1).records[0].server
    assert server is not None
    assert server.load_s is None


def test_what_a_graphics_card_says():
    machine = read_text(CARD).machine
    assert machine is not None
    assert machine.graphics[0].throttled_by == ("power_cap", "thermal")
    assert machine.graphics[0].temperature_c == 88


def test_progress_without_a_request_tells_nothing():
    content = read_text(MLX_SERVER)
    assert (content.records, content.facts, content.unread) == ([], RuntimeFacts(), 0)


def test_the_oldest_block_whose_phases_cannot_be_parted_is_no_request():
    text = (
        "main: mem per token = 27000000 bytes\nmain:     load time =  5600.70 ms\n"
        "main:  predict time = 37000.48 ms / 220.73 ms per token\n"
        "main:    total time = 48000.06 ms\n"
    )
    assert all(
        one.server is None or (one.server.prefill_s, one.server.decode_s) == (None, None)
        for one in read_text(text).records
    )


def test_values_that_stand_for_none_are_none():
    text = (
        "llama_print_timings: prompt eval time =     0.00 ms /     1 tokens (    0.00 ms per token,"
        "      inf tokens per second)\n"
        "llama_print_timings:        eval time =   500.00 ms /    10 runs   (   50.00 ms per token,"
        "    20.00 tokens per second)\n"
        "llama_print_timings:       total time =   510.00 ms\n"
    )
    assert told(read_text(text)) == ((None, None, None, 11, None, 0.5, 10, 0.51),)


@pytest.mark.parametrize("digits", ["9" * 13, "9" * 5000])
def test_counts_beyond_belief_are_unknown(digits):
    text = SAMPLES["llama-server 2026"].text.replace("5600", digits).replace("[600,", f"[{digits},")
    record = read_text(text).records[0]
    assert record.counts.cached_prompt_tokens in (None, 600), "what other lines tell stays known"
    assert record.counts.prompt_tokens is None or record.counts.prompt_tokens < 2**40


def test_facts_that_nobody_named_stay_unknown():
    told_facts = asdict(read_text(SAMPLES["llama-server 2025"].text).facts)
    assert [name for name, value in told_facts.items() if value is not None] == ["n_ctx"]
