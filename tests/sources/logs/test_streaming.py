"""A long text streams past and tells the same; only a part of it can be asked for."""

from __future__ import annotations

import gzip
import re
import sys
from io import BytesIO, TextIOWrapper

import pytest
from line_samples import OLLAMA_PS, SAMPLES, SERVER_2025, SERVER_2026, TIMINGS_V1, WITH_REQUESTS
from told_by_logs import told

from twospeed.records.errors import InputError, UsageError
from twospeed.sources.logs import collector
from twospeed.sources.logs.collector import Collector
from twospeed.sources.logs.draft import MOST_REPORTS, Draft
from twospeed.sources.logs.reading import read_file
from twospeed.sources.logs.registry import makers, marks_by_sign
from twospeed.sources.logs.sieve import marked_lines
from twospeed.sources.logs.text_input import BLOCK_BYTES, LONGEST_LINE_BYTES, blocks
from twospeed.sources.logs.wanted import Wanted

NOISE = "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200\n"


def streamed(path, text, wanted=None):
    path.write_text(text, encoding="utf-8")
    return read_file(str(path), wanted, most_whole_bytes=0)[0]


@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].text != OLLAMA_PS])
def test_every_format_tells_the_same_in_a_stream(tmp_path, name):
    sample = SAMPLES[name]
    content = streamed(tmp_path / "a.log", NOISE * 9 + sample.text + NOISE * 9)
    whole = read_file(str(tmp_path / "a.log"))[0]
    assert told(content) == told(whole) == sample.requests
    assert (content.facts, content.summary) == (whole.facts, whole.summary)
    assert content.records == whole.records, "numbers of lines too"


def test_requests_over_the_seams_of_blocks(tmp_path):
    spread = SERVER_2026.replace("\n", "\n" + NOISE * 5000)
    assert len(spread) > 4 * BLOCK_BYTES
    content = streamed(tmp_path / "a.log", spread + SERVER_2025)
    assert told(content) == (
        *SAMPLES["llama-server 2026"].requests,
        *SAMPLES["llama-server 2025"].requests,
    )
    assert content.records[0].line == 2 + 5000 + 1 - 1


def test_marks_are_looked_for_beside_their_sign():
    block, sign, mark = (NOISE.encode() * 3, b"eval time", b"x time = 5\n")
    assert [*marked_lines([block, block + mark, block])] == []
    found = [number for number, _ in marked_lines([block + mark, block, sign + b" = 1\n", mark])]
    assert found == [8, 9]


def test_every_format_has_its_sign_in_its_own_sample():
    signs = marks_by_sign()
    for name, sample in WITH_REQUESTS.items():
        assert any(sign.decode() in sample.text for sign in signs), name
    assert len(makers()) >= 13


def test_of_a_very_long_log_the_newest_are_kept():
    log = Collector()
    for line in range(2 * collector.MOST_RECORDS + 5):
        log.add(Draft(told_by="test", line=line, total_s=1.0))
    content = log.finish()
    assert len(content.records) == collector.MOST_RECORDS
    assert content.records[-1].line == 2 * collector.MOST_RECORDS + 4
    assert log.dropped + len(content.records) == 2 * collector.MOST_RECORDS + 5


def test_speeds_within_answers_are_kept_for_the_newest_only():
    log = Collector()
    for line in range(2 * collector.MOST_WINDOWS // MOST_REPORTS):
        draft = Draft(told_by="test", line=line, total_s=1.0)
        for tokens in range(MOST_REPORTS):
            draft.add_window(tokens, 20.0)
        log.add(draft)
    records = log.finish().records
    assert sum(len(one.signs.decode_windows) for one in records if one.signs) <= (
        collector.MOST_WINDOWS
    )
    assert 0 < log.dropped < line
    assert records[-1].line == line


def test_reports_of_an_endless_answer_are_thinned_out():
    draft = Draft(told_by="test", line=1)
    for tokens in range(100_000):
        draft.add_window(tokens, 20.0)
        draft.add_step(tokens)
    assert len(draft.windows) <= MOST_REPORTS
    assert len(draft.steps) <= MOST_REPORTS
    assert draft.windows[-1].output_tokens == 99_999


def test_blocks_are_whole_lines_and_nothing_is_lost():
    data = (b"x" * 700_000 + b"\n") * 4 + b"y" * (LONGEST_LINE_BYTES + 9 * BLOCK_BYTES) + b"\nend"
    got = [*blocks(BytesIO(data), "here")]
    assert b"".join(got) == data
    assert all(one.endswith(b"\n") for one in got[:2])
    assert max(map(len, got)) <= LONGEST_LINE_BYTES + 2 * BLOCK_BYTES


def test_words_and_times_choose_lines(tmp_path):
    lines = "".join(
        f"2026-06-01T1{hour}:00:00.5Z {line}\n"
        for hour in range(3)
        for line in TIMINGS_V1.replace("5000.50", f"500{hour}.50").splitlines()
    )
    path = tmp_path / "a.log"
    path.write_text(lines)

    def prefills(**wanted):
        return [
            [
                one.server.prefill_s
                for one in read_file(str(path), Wanted(**wanted), size)[0].records
            ]
            for size in (0, 1 << 20)
        ]

    assert prefills() == [[5.0005, 5.0015, 5.0025]] * 2
    assert prefills(since="2026-06-01T11") == [[5.0015, 5.0025]] * 2
    assert prefills(grep=re.compile("T12:")) == [[5.0025]] * 2


def test_documents_are_chosen_from_as_well(tmp_path):
    path = tmp_path / "answers.ndjson"
    line = (
        '{{"model": "{}", "done": true, "prompt_eval_count": 50, "prompt_eval_duration": '
        '1000000000, "eval_count": {}, "eval_duration": 2000000000}}\n'
    )
    path.write_text(line.format("heron", 20) + line.format("egret", 30))
    content, _ = read_file(str(path), Wanted(grep=re.compile("egret")))
    assert [one.counts.output_tokens for one in content.records] == [30]


def test_a_time_is_refused_where_no_line_carries_one(tmp_path):
    path = tmp_path / "a.log"
    path.write_text(SERVER_2026)
    with pytest.raises(UsageError, match="carries a date"):
        read_file(str(path), Wanted(since="2026-06-01"))


def test_stdin_is_read_and_left_open(monkeypatch):
    stdin = TextIOWrapper(BytesIO(gzip.compress(SERVER_2026.encode())))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert told(read_file("-")[0]) == SAMPLES["llama-server 2026"].requests
    assert not stdin.closed
    assert read_file("-")[0].records == []


def test_a_closed_stdin_is_an_input_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="closed"):
        read_file("-")


FAKE_ZSTD = """
import zlib
class ZstdError(Exception): pass
class Opened:
    def __init__(self, file): self.file, self.once = file, False
    def read(self, size):
        data, self.once = (b"" if self.once else self.file.read()[4:]), True
        try:
            return zlib.decompress(data) if data else b""
        except zlib.error as error:
            raise ZstdError("bad frame") from error
def open(file, mode): return Opened(file)
"""


def test_zstd_by_any_of_its_modules(tmp_path, monkeypatch):
    path = tmp_path / "a.log.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + gzip.zlib.compress(SERVER_2026.encode()))
    with pytest.raises(InputError, match="zstd -dc"):
        read_file(str(path))
    (tmp_path / "zstandard.py").write_text(FAKE_ZSTD)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert told(read_file(str(path))[0]) == SAMPLES["llama-server 2026"].requests
        path.write_bytes(b"\x28\xb5\x2f\xfdnoise")
        with pytest.raises(InputError, match="bad frame"):
            read_file(str(path))
    finally:
        sys.modules.pop("zstandard", None)
