"""The record file: what is written comes back, and nothing else is taken for one."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twospeed.records import run_file
from twospeed.records.errors import InputError
from twospeed.records.request_record import (
    ClientTimes,
    Probe,
    RequestError,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.records.run import (
    Blind,
    Conditions,
    Goals,
    MachineProbe,
    ModelHeader,
    Run,
    RuntimeFacts,
    Setting,
    Source,
    Workload,
)
from twospeed.records.run_file import RunWriter, looks_like_run, read_run, write_run


def request(number: int = 1, **more: Any) -> RequestRecord:
    return RequestRecord(
        number=number,
        step="curve",
        probe=Probe(step="curve", prompt_tokens=500, output_tokens=24),
        counts=TokenCounts(prompt_tokens=503, output_tokens=24),
        client=ClientTimes(ttft_s=1.25, finish_s=2.5),
        server=ServerTimes(told_by="timings", prefill_s=1.2, prefill_tokens=500),
        arrivals=(TextArrival(at_s=1.25, kind="answer", chars=4, coalesced=False),),
        **more,
    )


def a_run(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "source": Source(kind="live", where="http://127.0.0.1:8080", runtime="llama-server"),
        "workload": Workload(prompt_tokens=2000, output_tokens=300),
        "goals": Goals(),
        "made_at": "2026-11-30T12:00:00Z",
        "twospeed_version": "1.0.0",
        "facts": RuntimeFacts(n_ctx=4096, layers_total=30, flash_attn=False),
        "records": (request(1), request(2, error=RequestError(kind="http", message="no é"))),
        "round_trip_s": 0.0007,
        "loading_s": 4.5,
        "probe": MachineProbe(memory_bandwidth_bytes_per_s=3.6e10),
        "header": ModelHeader(file_bytes=98_000_000, architecture="llama"),
        "conditions": Conditions(host_load=0.5, trusted=False, warnings=("busy",)),
        "unknown": (Blind(what="cached tokens", needs="a newer runtime"),),
        "settings": {"threads": Setting(flag="--threads {value}", also=("-t",))},
    }
    return Run(**(fields | changes))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_run_comes_back_whole(tmp_path: Path):
    write_run(tmp_path / "run.jsonl", a_run())
    assert read_run(tmp_path / "run.jsonl") == a_run()


def test_the_first_line_names_the_schema_and_what_was_asked(tmp_path: Path):
    write_run(tmp_path / "run.jsonl", a_run())
    first, *rest = lines_of(tmp_path / "run.jsonl")
    assert first["schema"] == "twospeed.records/1"
    assert first["workload"]["prompt_tokens"] == 2000
    assert {line["type"] for line in rest} == {
        *("request", "facts", "probe", "header", "round_trip", "loading", "settings"),
        *("conditions", "unknown", "end"),
    }


def test_each_line_is_on_disk_before_the_next_thing_happens(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    writer = RunWriter(path)
    run = a_run()
    writer.begin(
        source=run.source,
        workload=run.workload,
        goals=run.goals,
        made_at=run.made_at,
        twospeed_version=run.twospeed_version,
    )
    writer.add(request(1))
    unfinished = read_run(path)  # the writer is still open, as after kill -9
    assert unfinished.records == (request(1),)
    assert not unfinished.complete
    writer.end()
    assert read_run(path).complete
    writer.close()


def test_the_last_facts_and_conditions_count(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run(complete=False))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type":"facts","value":{"n_ctx":8192}}\n')
    assert read_run(path).facts == RuntimeFacts(n_ctx=8192)


def test_only_the_owner_can_read_it(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    write_run(path, a_run())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_cut_gives_a_partial_run_or_says_that_there_is_none(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    data = path.read_bytes()
    head = data.index(b"\n")
    ends = [i for i, byte in enumerate(data) if byte == ord("\n")]
    request_ends = [data[:at] for at in ends if b'"type":"request"' in data[:at].splitlines()[-1]]
    end = len(data) - 1  # only the last newline missing: nothing is lost
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        if cut < head:
            with pytest.raises(InputError):
                read_run(path)
            continue
        run = read_run(path)
        assert run.complete == (cut >= end)
        whole = sum(cut >= len(line) for line in request_ends)
        assert run.records == a_run().records[:whole]


def test_unknown_lines_and_fields_of_a_later_version_are_passed_over(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    lines = lines_of(path)
    for line in lines:
        line["later"] = {"a": [1]}
        if isinstance(line.get("value"), dict):
            line["value"]["later"] = 1
    lines.insert(1, {"type": "weather", "value": "rain"})
    lines[-1]["value"] = {"reason": "settled"}
    path.write_text("\n\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    assert read_run(path) == a_run()


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b""])
def test_a_file_that_passed_through_windows_is_still_read(tmp_path: Path, prefix: bytes):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    path.write_bytes(prefix + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_run(path) == a_run()


def test_a_newer_schema_is_refused_with_the_remedy(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    path.write_bytes(path.read_bytes().replace(b"twospeed.records/1", b"twospeed.records/2"))
    with pytest.raises(InputError, match=r"newer twospeed.*records/2.*Upgrade"):
        read_run(path)


def test_an_older_schema_passes_through_its_migration(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    old = path.read_bytes().replace(b"twospeed.records/1", b"twospeed.records/0")
    path.write_bytes(old.replace(b'"round_trip","value"', b'"rtt","value"'))
    with pytest.raises(InputError, match="unknown version"):
        read_run(path)

    def renamed(line: dict[str, Any]) -> dict[str, Any]:
        return line | {"type": "round_trip"} if line.get("type") == "rtt" else line

    assert read_run(path, migrations={0: renamed}) == a_run()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"\x00" * 4000, "not a twospeed record file"),
        (b"\x7fELF\x02\x01\x01\xff\xfe\n\n", "not a twospeed record file"),
        (b'{"schema":"twospeed.report/1"}\n', "not a twospeed record file"),
        (b"[1, 2, 3]\n", "not a twospeed record file"),
        (b"llama_perf: prompt eval time = 1 ms\n", "not a twospeed record file"),
        (b'{"schema":"twospeed.records/1"}\n', "Line 1 of .* is damaged"),
        (b'{"schema":"twospeed.records/1","source":' + b"[" * 100_000, "Line 1 of .* is damaged"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, data: bytes, says: str):
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        read_run(path)
    assert "\n" not in str(caught.value)


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b'{"type":"request","value":{"number":"one"}}\n'
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"Line 4 of .*number"):
        read_run(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("client", {"ttft_s": -0.001}),
        ("client", {"end_s": 1e300}),
        ("counts", {"prompt_tokens": -1}),
        ("counts", {"output_tokens": 10**30}),
        ("server", {"told_by": "x", "decode_s": -1.0}),
        ("arrivals", [[-1.0, "answer", 1, False]]),
    ],
)
def test_times_and_counts_that_cannot_be_are_refused(tmp_path: Path, field: str, value: object):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    line = json.dumps({"type": "request", "value": {"number": 9, field: value}}) + "\n"
    path.write_text(path.read_text("utf-8") + line, "utf-8")
    with pytest.raises(InputError, match="is damaged: Expected"):
        read_run(path)


@pytest.mark.parametrize("goal", [0, -1, -1e308])
def test_goals_that_cannot_be_are_refused(tmp_path: Path, goal: float):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    head, rest = path.read_text("utf-8").split("\n", 1)
    opening = json.loads(head)
    opening["goals"]["wait_s"] = goal
    path.write_text(json.dumps(opening, separators=(",", ":")) + "\n" + rest, "utf-8")
    with pytest.raises(InputError, match=r"Line 1 of .* is damaged"):
        read_run(path)


def test_missing_files_and_folders_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="Cannot read"):
        read_run(tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match="Cannot read"):
        read_run(tmp_path)
    with pytest.raises(InputError, match="Cannot write"):
        RunWriter(tmp_path / "no" / "folder.jsonl")


def test_an_overlong_line_is_not_read_into_memory(tmp_path: Path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(run_file.LINE_LIMIT_BYTES * 40)  # sparse: takes no room on disk
    with pytest.raises(InputError, match="longer than 64 MiB"):
        read_run(path)


def test_a_foreign_file_is_never_overwritten(tmp_path: Path):
    path = tmp_path / "thesis.txt"
    path.write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match="not overwritten"):
        RunWriter(path)
    assert path.read_text(encoding="utf-8") == "years of work"


def test_an_earlier_run_stays_until_the_next_one_begins(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run())
    RunWriter(path).close()
    assert read_run(path) == a_run()
    write_run(path, a_run(records=()))
    assert read_run(path) == a_run(records=())


def test_an_empty_file_may_be_filled(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    path.touch()
    write_run(path, a_run())
    assert read_run(path) == a_run()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_instead_of_blocking(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        RunWriter(tmp_path / "pipe")


def test_a_file_name_that_is_not_utf8_does_not_lose_the_run(tmp_path: Path):
    facts = RuntimeFacts(model_path="/models/caf\udce9.gguf", n_ctx=10)
    write_run(tmp_path / "run.jsonl", a_run(facts=facts))
    assert read_run(tmp_path / "run.jsonl").facts == RuntimeFacts(
        model_path="/models/caf?.gguf", n_ctx=10
    )


def test_a_file_is_recognised_by_its_first_bytes():
    assert looks_like_run(b'{"schema":"twospeed.records/1","sou')
    assert looks_like_run(b'\xef\xbb\xbf{ "schema": "twospeed.records/12", ')
    assert not looks_like_run(b'{"schema":"twospeed.report/1"')


seconds = st.none() | st.floats(0, 1e6)
tokens = st.none() | st.integers(0, 2**40)
records = st.builds(
    RequestRecord,
    number=st.integers(1, 10**6),
    step=st.sampled_from(["warmup", "curve", "reuse", "user"]),
    model=st.none() | st.text(max_size=20),
    counts=st.builds(TokenCounts, prompt_tokens=tokens, output_tokens=tokens),
    client=st.builds(ClientTimes, ttft_s=seconds, end_s=seconds),
    server=st.none() | st.builds(ServerTimes, told_by=st.text(max_size=8), prefill_s=seconds),
    arrivals=st.lists(
        st.builds(
            TextArrival,
            at_s=st.floats(0, 1e6),
            kind=st.sampled_from(["answer", "reasoning", "tool"]),
            chars=st.integers(0, 10**6),
            coalesced=st.booleans(),
        ),
        max_size=4,
    ).map(tuple),
    repeats=tokens,
    other_requests=tokens,
    line=tokens,
)
runs = st.builds(
    a_run,
    records=st.lists(records, max_size=4).map(tuple),
    round_trip_s=seconds,
    loading_s=seconds,
    probe=st.none() | st.builds(MachineProbe, cpu_s=seconds),
    complete=st.booleans(),
    ignore_timings=st.booleans(),
    unknown=st.lists(st.builds(Blind, what=st.text(), needs=st.text()), max_size=2).map(tuple),
)


@given(run=runs)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_run_comes_back_as_it_was(tmp_path: Path, run: Run):
    write_run(tmp_path / "run.jsonl", run)
    assert read_run(tmp_path / "run.jsonl") == run


@given(data=st.binary(max_size=300))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_after_a_good_head_is_refused_or_cut_but_never_crashes(tmp_path: Path, data: bytes):
    path = tmp_path / "run.jsonl"
    write_run(path, a_run(records=(), complete=False))
    good = path.read_bytes()
    path.write_bytes(good + data)
    try:
        run = read_run(path)
    except InputError:
        return
    assert run.facts == a_run().facts
