"""Documents are found between prose, marks and other text, and nothing is found in noise."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twospeed.records.request_record import RequestRecord
from twospeed.records.run import BenchmarkPoint, LoadSummary, RuntimeFacts
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.json_objects import WINDOW_CHARS, objects_in
from twospeed.sources.logs.documents.plain_text import cleaned, number_in, numbers_in
from twospeed.sources.logs.documents.registry import formats, read_document


def values(text):
    return [found.value for found in objects_in(text)]


def test_objects_alone_in_arrays_lines_and_prose():
    assert values('say {"a": 1} and [{"b": {"c": 2}}, {"d": "}{"}]\n{"e": 3} {}') == [
        {"a": 1},
        {"b": {"c": 2}},
        {"d": "}{"},
        {"e": 3},
    ]


def test_lines_are_counted():
    assert [found.line for found in objects_in('{"a": 1}\n\n{\n"b": 2}\n{"c": 3}')] == [1, 3, 5]


def test_a_document_that_the_end_of_the_text_cuts_off_is_closed_after_its_last_value():
    text = '{"a": [{"b": 1}, {"c": 2, "d": 34567'
    assert values(text) == [{"a": [{"b": 1}, {"c": 2}]}]
    assert values(text[: text.index(" 2")]) == [{"a": [{"b": 1}]}]
    assert values('{"a": 12') == []
    assert values('{"a": 1, "gaps": [1, 2, 3, 4') == [{"a": 1}], "half a list is no list"


def test_of_a_document_that_is_cut_off_before_the_complete_objects_remain():
    assert values('{"a": [{"b": 1}, {"c": 2}, {"d" and so on {"e": 3}') == [
        {"b": 1},
        {"c": 2},
        {"e": 3},
    ]


def test_a_lost_first_brace_is_found_again():
    assert values('"a": 1, "b": {"c": 2}} and {"d": 3}') == [{"a": 1, "b": {"c": 2}}, {"d": 3}]


def test_objects_larger_than_the_window():
    large = {"a": ["x" * WINDOW_CHARS, '"{'], "b": {"c": "\n"}}
    text = json.dumps(large) + json.dumps(large, indent=1) + ' {"d": 1}'
    assert values(text) == [large, large, {"d": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "{" * 200_000,
        '{"' * 100_000,
        '{"a":' * 100_000,
        '{"a":[' * 100_000,
        '{"a": ' + "9" * 100_000 + "}",
        '{"' + '\\"' * 100_000,
        "[" * 100_000,
    ],
)
def test_hostile_json_holds_nothing_and_ends_soon(text):
    assert values(text) == []
    assert read_document(text + ' "timings" predicted_ms avg_ts n_prompt') is None


def test_marks_of_mail_terminals_and_windows_are_no_text():
    assert cleaned("\ufeff> > a\r\n\x1b[1;32m> b\x1b[0m\rc\xa0d") == "a\nb\nc d"


@pytest.mark.parametrize(
    "prefix",
    [
        "bench-1  | ",
        "2026-01-02T03:04:05.123456789Z ",
        "3月 03 10:11:12 host bench[123]: ",
        "Mär 03 10:11:12 host bench[123]: ",
    ],
)
def test_what_every_line_begins_with_is_no_text(prefix):
    text = '{\n  "a": 1\n}\n\n| pp | tg |\n'
    assert cleaned("".join(f"{prefix}{line}\n" for line in text.splitlines())) == text


def test_the_first_column_of_a_table_is_no_prefix():
    text = "pp | tg | s_pp t/s\n512 | 128 | 9.5\n512 | 128 | 8.5"
    assert cleaned(text) == text


@pytest.mark.parametrize("paste", ["{0}\n{0}", "{0}\n\nand again\n\n{0}"])
def test_what_is_pasted_twice_is_counted_once(paste, samples):
    for name, text in samples.items():
        once, twice = read_document(text), read_document(paste.replace("{0}", text))
        assert once is not None, name
        assert twice is not None, name
        assert len(twice.points) == len(once.points), name
        assert len(twice.records) == len(once.records), name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,146.31", [1146.31]),
        ("1.146,31", [1146.31]),
        ("4454,16", [4454.16]),
        ("1,146", [1146.0]),
        ("12,345,678", [12345678.0]),
        ("-3.5 5e-3", [-3.5, 0.005]),
        ("1.2.3", []),
        ("1e300", []),
    ],
)
def test_numbers_by_either_decimal_mark(text, expected):
    assert numbers_in(text) == expected


@pytest.mark.parametrize("text", ["", "x", "-1", "inf", "NaN", "-inf t/s", None])
def test_what_is_no_number(text):
    assert number_in(text) is None


def test_a_paste_of_several_documents_tells_all_of_them(samples):
    names = ("ollama.ndjson", "llama_bench.md", "vllm_bench.txt")
    content = read_document("\n\nand then\n\n".join(samples[name] for name in names))
    assert content is not None
    assert (len(content.records), len(content.points)) == (2, 5)
    assert content.summary is not None


def test_every_sample_is_read_alone_and_by_one_reader(samples):
    for name, text in samples.items():
        plain = cleaned(text)
        told = [one for one in formats() if one.recognises(plain) and one.read(plain)]
        assert len(told) == 1, name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "My model runs at 19 t/s in this test, is that slow?",
        "| test | t/s |\n| --- | --- |\n| my own | 12 |",
        '{"hello": "world", "usage": {"disk": 5}, "timings": {"dns": 3}}',
        "{'timings': {'predicted_ms': 5}}",
        '{"usage": {"prompt_tokens": "many", "completion_tokens": null}}',
        '{"timings": {"prompt_ms": -4, "predicted_ms": 1e400, "predicted_n": 10}}',
        '{"eval_duration": "fast", "total_duration": [], "done": true}',
        "Time To First Token (ms), avg, of course",
    ],
)
def test_noise_is_no_document(text):
    assert read_document(text) is None


def check(content: Content | None) -> None:
    """Whatever is told can be kept in a file and read back: no number is out of its bounds."""
    if content is None:
        return
    assert content.records or content.points or content.summary or content.facts != RuntimeFacts()
    for told, kind in (
        (content.records, list[RequestRecord]),
        (content.points, list[BenchmarkPoint]),
        (content.summary, LoadSummary | None),
        (content.facts, RuntimeFacts),
    ):
        assert msgspec.json.decode(msgspec.json.encode(told), type=kind) == told


@given(st.text(max_size=400))
def test_arbitrary_text_raises_nothing_and_claims_nothing(text):
    assert read_document(text) is None


WORDS = """{ } [ ] : , " | timings prompt_ms predicted_ms predicted_n usage completion_tokens
prompt_tokens eval_duration done true null NaN -1 0 1e999 99999999999999999999 5 0.5 avg_ts n_prompt
n_gen test t/s pp512 tg128 metrics value unit ms request_latency stats tokens_per_second ttfr Trial
time_to_first_token Length tokens/s inf ±"""


@given(st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=80))
def test_words_of_the_formats_in_any_order_raise_nothing(words):
    check(read_document(" ".join(words)))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just(10**400)
    | st.just(1e-320),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def _replaced(value, path, new):
    """`value` with what lies at the end of a walk of child numbers replaced."""
    if not path or not isinstance(value, dict | list) or not value:
        return new
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = keys[path[0] % len(keys)]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _replaced(value[key], path[1:], new)
    return copy


@settings(max_examples=300)
@given(data=st.data())
def test_values_of_the_wrong_kind_anywhere_raise_nothing(data, samples):
    objects = [value for text in samples.values() for value in values(cleaned(text))]
    value = data.draw(st.sampled_from(objects))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=6))
        value = _replaced(value, path, data.draw(JSON_VALUES))
    check(read_document(json.dumps(value)))


@settings(max_examples=300)
@given(data=st.data())
def test_cut_and_spliced_samples_raise_nothing(data, samples):
    names = data.draw(st.lists(st.sampled_from(sorted(samples)), min_size=1, max_size=3))
    pieces = []
    for name in names:
        text = samples[name]
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        pieces.append(text[start:end])
    check(read_document(data.draw(st.sampled_from(["", "\n", " | ", '"'])).join(pieces)))
