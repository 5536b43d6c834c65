"""Anything may be pasted: nothing is raised, nothing takes long, and noise is nothing."""

from __future__ import annotations

import time
from io import BytesIO

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_samples import LOAD, SAMPLES

from twospeed.records.request_record import RequestRecord
from twospeed.records.run import BenchmarkPoint, LoadSummary, MachineFacts, RuntimeFacts
from twospeed.sources.logs.cleaning import cleaned
from twospeed.sources.logs.collector import Line
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.numbers import bytes_of, go_seconds, number, seconds, whole
from twospeed.sources.logs.reading import LineReaders, read_text
from twospeed.sources.logs.sieve import marked_lines
from twospeed.sources.logs.text_input import blocks

LONGEST_S = 20.0
"""Far above what any of these needs, far below what a runaway expression takes."""
TEXTS = [sample.text for sample in SAMPLES.values()]
TEXT_OF_WORDS = """\
    slot id task | : = prompt eval time ms / tokens runs ( ) total load llama_print_timings:
    print_timings: [GIN] POST "/api/chat" 200 duration: count: rate: 5 0 -1 inf nan 1e999 0.00 9,9
    99999999999999 7s 5m Processing: Process: Generate: Generation: CtxLimit:5/5 Amt:5/5, T/s ms/T
    Metrics: generated in seconds Queue: Context: Prompt: Generation: tokens-per-sec encoded decoded
    Decode batch, Prefill #running-req: gen throughput (token/s): offloaded 5/6 layers to GPU n_ctx
    n_drafted n_accept inference_time="5s" time_per_token="1ns" {"function": "id_slot": 5, } msg=
    layers.model=5 layers.offload=9 launch_slot_ release: stop processing: n_tokens new prompt, kv
    cache rm [ end) in cache: | to process: tg_3s t/s n_gen \x1b[31m > ** \r"""
WORDS = [*TEXT_OF_WORDS.split(), " ", "  ", "\n", "\n"]


def check(content: Content) -> None:
    """Whatever is told can be kept in a file and read back: no number is out of its bounds."""
    for told, kind in (
        (content.records, list[RequestRecord]),
        (content.points, list[BenchmarkPoint]),
        (content.summary, LoadSummary | None),
        (content.machine, MachineFacts | None),
        (content.facts, RuntimeFacts),
    ):
        assert msgspec.json.decode(msgspec.json.encode(told), type=kind) == told


def is_empty(content: Content) -> bool:
    return content == Content(unread=content.unread)


def streamed(data: bytes) -> Content:
    readers = LineReaders()
    for line, raw in marked_lines(blocks(BytesIO(data), "here")):
        text, clock = cleaned(raw.decode("utf-8", "replace"))
        readers.take(Line(text, line, clock))
    return readers.finish()


@given(st.binary(max_size=600))
def test_arbitrary_bytes_tell_nothing(data):
    assert is_empty(read_text(data.decode("utf-8", "replace")))
    assert is_empty(streamed(data))


@given(st.text(max_size=400))
def test_arbitrary_text_tells_nothing(text):
    assert is_empty(read_text(text))


@pytest.mark.parametrize(
    "prose",
    [
        "My model runs at 19 t/s in this test, is that slow?",
        "I get 36.5 toks, and 0.7s/token with the old build. Total: 5 hours of my life.",
        "The slot machine took 5 tokens. Processing: done. Generation: next. msg=hello",
        "[GIN]",
        "Prompt: 5 tokens of advice\nGeneration: gap",
        "GET / HTTP/1.1\nHost: 127.0.0.1\n\n200 OK, eval time is over",
        "def eval_time(prompt):\n    return total_time / tokens  # ms",
        "| time | slot | task |\n| --- | --- | --- |\n| 09:00 | 1 | write |",
    ],
)
def test_prose_tells_nothing(prose):
    assert is_empty(read_text(prose))


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=80))
def test_words_of_the_formats_in_any_order_raise_nothing(words):
    text = " ".join(words)
    check(read_text(text))
    check(streamed(text.encode()))


NUMBERS = st.sampled_from(
    ["0", "0.00", "1", "inf", "nan", "-5", "9" * 12, "9" * 13, "9" * 40, "9" * 5000, "1e30",
     "0.000000000001", "1,5", "1.000,5", "1,000,000.5", "5.", "٣", "²"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_any_number_in_any_place_raises_nothing(data):
    text = data.draw(st.sampled_from(TEXTS))
    places = [at for at, char in enumerate(text) if char.isdigit()]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.sampled_from(places)) % len(text)
        end = at
        while end < len(text) and (text[end].isdigit() or text[end] == "."):
            end += 1
        text = text[:at] + data.draw(NUMBERS) + text[end:]
    check(read_text(text))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_cut_and_spliced_samples_raise_nothing(data):
    pieces = []
    for _ in range(data.draw(st.integers(1, 4))):
        text = data.draw(st.sampled_from(TEXTS))
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        pieces.append(text[start:end])
    text = data.draw(st.sampled_from(["", "\n", "\r", " ", "\x1b[0m"])).join(pieces)
    check(read_text(text))
    check(streamed(text.encode()))


@settings(max_examples=100, deadline=None)
@given(st.permutations(SAMPLES["llama-server 2026"].text.splitlines()))
def test_lines_in_any_order_raise_nothing(lines):
    check(read_text("\n".join(lines)))


HOSTILE = {
    "one line": "x" * 3_000_000,
    "digits": "prompt eval time = " + "9" * 1_000_000,
    "spaces": "slot print_timing: id" + " " * 500_000 + "| eval time = 5 ms",
    "quote marks": "> " * 300_000,
    "brackets": "[GIN] " * 200_000,
    "escapes": "\x1b[" * 300_000,
    "headings": "\n".join("slot print_timing: id  0 | task 5 |" for _ in range(30_000)),
    "tasks": "\n".join(f"slot launch_slot_: id  0 | task {n} | go" for n in range(30_000)),
    "slots": "\n".join(f"slot launch_slot_: id  {n} | task {n} | go" for n in range(30_000)),
    "JSON": '{"function":' * 20_000,
    "JSON slots": "\n".join(
        f'{{"function":"x","id_slot":{n},"id_task":{n},"t_prompt_processing":5.0}}'
        for n in range(20_000)
    ),
    "throughput": "Avg prompt throughput: " * 50_000,
    "metrics": "Metrics: 5 tokens generated in 5 seconds (Queue: 5 s, Process: " * 20_000,
    "batches": "Decode batch, #running-req: 5, " * 30_000,
    "batches by line": "Decode batch, #running-req: 5, x gen throughput\n" * 20_000,
    "layers": "layers.model=5 msg= " * 30_000,
    "blank lines": "\n" * 200_000,
    "wrapped": ("a, \n" + "   b, \n" * 20) * 5_000,
    "loads": LOAD * 2_000,
    "NUL bytes": "\0" * 2_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_soon(name):
    began_s = time.perf_counter()
    check(read_text(HOSTILE[name]))
    check(streamed(HOSTILE[name].encode()))
    assert time.perf_counter() - began_s < LONGEST_S


def test_timings_of_a_newer_version_are_counted():
    text = (
        "engine: prefill 5000 tokens in 2.5 s, 2000.0 tok/s\n"
        "engine: decode 250 tokens in 5.0 s, 50.0 tok/s\n"
        "engine: bye\n"
    )
    content = read_text(text)
    assert content.unread == 2
    assert is_empty(content)


@given(st.text(max_size=30))
def test_numbers_of_any_text(text):
    for value in (number(text), seconds(text), whole(text), go_seconds(text)):
        assert value is None or 0 <= value < 1e24
    assert bytes_of(text, "GB") is None or bytes_of(text, "GB") >= 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("285,92", 285.92),
        ("10,944.03", 10944.03),
        ("10.944,03", 10944.03),
        ("1,234,567", 1234567.0),
        ("12.", 12.0),
        ("1.2.3", None),
        ("0:", None),
        ("²", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_printed_numbers(text, expected):
    assert number(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1m43s", 103.0),
        ("1h2m", 3720.0),
        ("32.5ms", 0.0325),
        ("90µs", 9e-5),
        ("5", None),
        ("s", None),
    ],
)
def test_go_durations(text, expected):
    assert go_seconds(text) == (None if expected is None else pytest.approx(expected))
