"""The stopwatch's document: what is counted, what is left out, and how it is spread."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import pairwise

import jsonschema
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.records.request_record import (
    ClientTimes,
    RequestError,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.records.run import Conditions, Source
from twospeed.report.timing import (
    OwnPart,
    Spread,
    TimedRequest,
    Timing,
    TimingConditions,
    TimingSheet,
    TimingSummary,
    exact_gaps_s,
    spread,
    timing_of,
    to_json,
)
from twospeed.report.timing_text import duration, render_heading, render_row, render_summary

SCHEMA = json.loads((files("twospeed.report") / "schema" / "timing-1.json").read_text("utf-8"))
OWN = OwnPart(cpu_s=0.5, cpu_s_per_token=12.5e-6, loop_lag_s=0.0013, peak_bytes=61_000_000)


def arrivals(*events: float | tuple[float, int]) -> tuple[TextArrival, ...]:
    """Reads at given moments, each with one event or so many."""
    made = []
    for event in events:
        at_s, count = event if isinstance(event, tuple) else (event, 1)
        made += [
            TextArrival(at_s=at_s, kind="answer", chars=3, coalesced=number > 0)
            for number in range(count)
        ]
    return tuple(made)


def record(number=1, *, steps=11, step_s=0.02, ttft_s=0.2, first=1, **changes) -> RequestRecord:
    """A stream of equal steps whose first read holds so many events."""
    reads = [(ttft_s, first), *(ttft_s + step_s * i for i in range(1, steps + 1))]
    fields = {
        "number": number,
        "step": "curve",
        "counts": TokenCounts(
            prompt_tokens=100, cached_prompt_tokens=0, output_tokens=steps + first
        ),
        "client": ClientTimes(
            clock="kernel",
            ttft_s=ttft_s,
            ttft_is_upper_bound=first > 1,
            first_answer_s=ttft_s,
            end_s=ttft_s + steps * step_s,
        ),
        "arrivals": arrivals(*reads),
        "finish_reason": "length",
    }
    return RequestRecord(**(fields | changes))


FAILED = RequestError(kind="stream", message="it closed in mid-answer", http_status=None)


def sheet_of(*records: RequestRecord, alone: bool = True) -> TimingSheet:
    sheet = TimingSheet(round_trip_s=None, alone=alone)
    for one in records:
        sheet.add(one)
    return sheet


def document(*records: RequestRecord, alone: bool = True, **changes) -> Timing:
    return timing_of(
        sheet_of(*records, alone=alone),
        **{
            "source": Source(kind="live", where="http://h", runtime="openai", model="m"),
            "made_at": "2026-01-01T00:00:00+00:00",
            "twospeed_version": "0.1.0",
            "conditions": Conditions(host_load=0.03, steal=0.0, cpu_pressure=0.02),
            "own": OWN,
        }
        | changes,
    )


def valid(timing: Timing) -> dict:
    value = json.loads(to_json(timing))
    jsonschema.Draft202012Validator(SCHEMA).validate(value)
    return value


def test_both_phases_of_one_request():
    (row,) = sheet_of(record()).rows
    assert (row.ttft_s, row.clock, row.events, row.coalesced_events) == (0.2, "kernel", 12, 0)
    assert row.itl_s == pytest.approx(0.02)
    assert (row.decode_tps, row.decode_origin) == (pytest.approx(50), "client")
    assert (row.prefill_tps, row.prefill_origin) == (pytest.approx(500), "client")


def test_decode_is_by_our_clock_and_prefill_by_the_servers():
    told = ServerTimes(
        told_by="timings", prefill_s=0.1, prefill_tokens=100, decode_s=0.11, decode_steps=11
    )
    (row,) = sheet_of(record(server=told)).rows
    assert (row.decode_tps, row.decode_origin) == (pytest.approx(50), "client")
    assert (row.prefill_tps, row.prefill_origin) == (pytest.approx(1000), "server")


def test_without_counted_arrivals_decode_is_by_the_servers_clock():
    told = ServerTimes(told_by="timings", decode_s=0.11, decode_steps=11)
    (row,) = sheet_of(record(server=told, arrivals=())).rows
    assert (row.itl_s, row.decode_tps, row.decode_origin) == (None, pytest.approx(100), "server")


def test_beside_other_requests_our_clock_tells_no_prefill():
    (row,) = sheet_of(record(), alone=False).rows
    assert (row.prefill_s, row.prefill_tps, row.prefill_origin) == (None, None, None)
    assert row.ttft_s == 0.2
    told = ServerTimes(told_by="timings", prefill_s=0.1, prefill_tokens=100)
    (row,) = sheet_of(record(server=told), alone=False).rows
    assert row.prefill_tps == pytest.approx(1000)


def test_a_first_read_of_several_events_is_an_upper_bound_and_left_out():
    summary = sheet_of(record(1), record(2, first=3, ttft_s=0.9)).summary()
    assert (summary.ttft_s.n, summary.ttft_s.left_out, summary.ttft_s.mean) == (1, 1, 0.2)
    assert summary.itl_s.n == 2, "steps are counted from the end of the first read"
    assert summary.itl_s.mean == pytest.approx(0.02)


def test_gaps_that_end_in_a_read_of_several_events_are_left_out_and_never_zero():
    reads = arrivals(0.0, 0.02, (0.06, 2), 0.08, (0.10, 3))
    assert exact_gaps_s(reads) == pytest.approx([0.02, 0.02])
    summary = sheet_of(record(arrivals=reads)).summary()
    assert (summary.event_gap_s.n, summary.event_gap_s.left_out) == (2, 5)
    assert exact_gaps_s(arrivals((0.1, 4))) == []
    assert exact_gaps_s(()) == []


def test_failed_requests_have_a_row_and_stay_out_of_the_summary():
    timing = document(record(1), record(2, error=FAILED, ttft_s=9.0))
    assert [row.error for row in timing.requests] == [None, FAILED]
    assert (timing.summary.ttft_s.n, timing.summary.event_gap_s.n) == (1, 11)
    assert "1 of 2 requests failed" in render_summary(timing)


def test_clocks_are_never_mixed():
    told = ServerTimes(told_by="timings", prefill_s=0.1, prefill_tokens=100)
    summary = sheet_of(record(1, server=told), record(2), record(3)).summary()
    assert (summary.prefill_tps.n, summary.prefill_tps.origin) == (2, "client")
    assert summary.prefill_tps.mean == pytest.approx(500)


@pytest.mark.parametrize(
    ("n", "known"), [(1, {"p50"}), (9, {"p50"}), (10, {"p50", "p90"}), (99, {"p50", "p90"})]
)
def test_too_few_values_have_no_percentile(n, known):
    found = spread([float(i) for i in range(n)], "client")
    assert {name for name in ("p50", "p90", "p99") if getattr(found, name) is not None} == known


def test_a_hundred_values_have_all_percentiles_between_the_nearest_two():
    found = spread([float(i) for i in range(100, 0, -1)], "client")
    assert (found.n, found.mean) == (100, 50.5)
    assert (found.p50, found.p90, found.p99) == pytest.approx((50.5, 90.1, 99.01))


def test_nothing_has_no_spread():
    assert spread([], "client", left_out=3) == Spread(n=0, left_out=3)


@given(st.lists(st.floats(0, 1e3), min_size=100, max_size=300))
def test_percentiles_are_those_of_numpy(values):
    found = spread(values, "client")
    assert (found.p50, found.p90, found.p99) == tuple(np.percentile(values, [50, 90, 99]))


@given(
    st.lists(st.tuples(st.floats(0, 10), st.integers(1, 4)), max_size=30).map(
        lambda reads: sorted(reads, key=lambda read: read[0])
    )
)
def test_exact_gaps_are_those_to_events_alone_in_their_read(reads):
    gaps = exact_gaps_s(arrivals(*reads))
    alone = [here[0] - before[0] for before, here in pairwise(reads) if here[1] == 1]
    assert gaps == alone


def test_documents_are_valid():
    value = valid(document(record(1), record(2, first=2), record(3, error=FAILED)))
    assert value["schema"] == "twospeed.timing/1"
    assert value["requests"][1]["ttft_is_upper_bound"] is True
    assert value["summary"]["ttft_s"]["p99"] is None
    assert valid(document(complete=False))["summary"]["ttft_s"]["mean"] is None


def test_unknown_is_null():
    bare = RequestRecord(number=1)
    row = valid(document(bare))["requests"][0]
    assert {key for key, value in row.items() if value is None} >= {
        "prompt_tokens", "cached_prompt_tokens", "prefill_s", "prefill_tps", "output_tokens",
        "decode_s", "decode_tps", "itl_s", "ttft_s", "total_s", "connect_s", "error",
    }  # fmt: skip
    assert sheet_of(bare).output_tokens == 0


def encoded_names(kind) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def test_the_schema_requires_every_field_and_the_other_way_round():
    parts = SCHEMA["properties"]
    assert encoded_names(Timing) == set(SCHEMA["required"]) == set(parts)
    assert encoded_names(TimedRequest) == set(SCHEMA["$defs"]["request"]["required"])
    assert encoded_names(Spread) == set(SCHEMA["$defs"]["spread"]["required"])
    assert encoded_names(TimingSummary) == set(parts["summary"]["required"])
    assert encoded_names(OwnPart) == set(parts["own"]["required"])
    assert encoded_names(TimingConditions) == set(parts["conditions"]["required"])
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_refuses_what_it_should():
    good = valid(document(record()))
    jsonschema.validate({**good, "a_later_addition": 1}, SCHEMA)
    for broken in (
        {key: value for key, value in good.items() if key != "own"},
        {**good, "schema": "twospeed.timing/2"},
        {**good, "requests": [{**good["requests"][0], "clock": "sundial"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA)


def test_an_interrupted_timing_says_so():
    assert document(complete=True).conditions.warnings == ()
    stopped = document(record(), complete=False)
    assert not stopped.complete
    assert "stopped early" in stopped.conditions.warnings[0]
    given_up = document(record(error=FAILED), complete=False, gave_up=True)
    assert "failed in a row" in given_up.conditions.warnings[0]


@pytest.mark.parametrize(
    ("value_s", "shown"),
    [
        (None, "-"),
        (0.0, "0.000 ms"),
        (0.0004123, "0.412 ms"),
        (0.00994, "9.940 ms"),
        (0.2013, "201.3 ms"),
        (9.9999, "9,999.9 ms"),
        (9.99999, "10.00 s"),
        (83.5, "83.50 s"),
    ],
)
def test_durations(value_s, shown):
    assert duration(value_s) == shown


LONG = RequestError(kind="http", message="http://h said \x1b[31mno\x1b[0m " + "é" * 300)


@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_longer_than_80_columns(ascii_only):
    far = record(
        12_345,
        ttft_s=123_456.7,
        first=2,
        step_s=99.0,
        retries=1,
        counts=TokenCounts(
            prompt_tokens=1_048_576, cached_prompt_tokens=1_048_576, output_tokens=131_072
        ),
    )
    timing = document(
        record(1),
        far,
        record(3, error=LONG),
        conditions=Conditions(
            host_load=1.0, steal=1.0, cpu_pressure=1.0, trusted=False, warnings=("w " * 150,)
        ),
        source=Source(kind="live", where="http://" + "h" * 90, runtime="openai", model="m" * 200),
    )
    lines = [render_row(row, ascii_only=ascii_only) for row in timing.requests]
    lines += [render_heading(), *render_summary(timing, ascii_only=ascii_only).splitlines()]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert "retried 1x" in lines[1]
    if ascii_only:
        assert all(line.encode("ascii", "strict") for line in lines if line and "é" not in line)


def test_a_person_reads_what_the_document_says():
    rows = document(record(1), record(2, first=2, ttft_s=0.25, retries=1))
    first, second = (render_row(row) for row in rows.requests)
    assert first.split() == ["1", "100", "0", "12", "200.0", "ms", "20.0", "ms", "50.0"]
    assert "<250.0 ms" in second
    text = " ".join(render_summary(rows).split())
    assert "1 TTFT marked <" in text
    assert "1 clocks were restarted" in text
    assert "p99 needs 100" in text
    assert "kernel stamps, 12 µs of our own a token, 1.300 ms late at times, 61 MB" in text
    assert "other programs 3 %, stolen 0 %, waiting for a processor 2 %" in text


def test_numbers_that_are_not_to_be_trusted_say_so_first():
    doubt = Conditions(trusted=False, warnings=("Others used 50% of it.",))
    lines = render_summary(document(record(), conditions=doubt), colour=True).splitlines()
    assert "Do not rely on these numbers yet" in lines[1]
    assert "Others used 50% of it." in lines[2]
    assert "\x1b[33m" in lines[1]
