"""What terminals, loggers, chat programs and copying do to a text must not change what it tells."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable

import pytest
from line_samples import (
    KOBOLD_2025,
    PERF,
    SAMPLES,
    SERVER_2023,
    SERVER_2024,
    SERVER_2025,
    SERVER_2026,
    SERVER_JSON,
    TEXTGEN,
    TIMINGS_V1,
    VLLM_V1,
    WITH_REQUESTS,
)
from told_by_logs import told

from twospeed.records.errors import InputError
from twospeed.sources.logs.reading import read_file, read_text

Change = Callable[[str], str]


def each_line(change: Change) -> Change:
    return lambda text: "".join(change(line) + "\n" for line in text.splitlines())


HARMLESS: dict[str, Change] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "quote marks": each_line(lambda line: f"> {line}"),
    "quoted twice": each_line(lambda line: f"> > {line}"),
    "code fence and prose": lambda text: (
        f"Why is it slow?\n\n```\n{text}```\n\nThanks in advance\n"
    ),
    "indented": each_line(lambda line: f"    {line}"),
    "trailing spaces": each_line(lambda line: f"{line:<240}"),
    "docker compose": each_line(lambda line: f"llm-1  | {line}"),
    "docker time": each_line(lambda line: f"2026-06-01T10:00:05.123456789Z {line}"),
    "journald": each_line(lambda line: f"Jun 01 10:00:05 box llm[4711]: {line}"),
    "journald, German": each_line(lambda line: f"Mär 01 10:00:05 box llm[4711]: {line}"),
    "journald, Japanese": each_line(lambda line: f"3月 01 10:00:05 box llm[4711]: {line}"),
    "journald, French": each_line(lambda line: f"févr. 01 10:00:05 box llm[4711]: {line}"),
    "journald, ISO": each_line(lambda line: f"2026-06-01T10:00:05+0200 box llm[4711]: {line}"),
    "colours": each_line(lambda line: f"\x1b[32m{line}\x1b[0m"),
    "colours without escapes": each_line(lambda line: f"[32m{line}[0m"),
    "bold": each_line(lambda line: f"**{line}** <-----"),
    "blank lines between": each_line(lambda line: f"{line}\n"),
    "NUL bytes at the end": lambda text: text + "\0" * 50,
}
"""What must not change the answer of any format."""


@pytest.mark.parametrize("hazard", HARMLESS)
@pytest.mark.parametrize("name", WITH_REQUESTS)
def test_harmless(name, hazard):
    content = read_text(HARMLESS[hazard](SAMPLES[name].text))
    assert told(content) == SAMPLES[name].requests


SPACES = re.compile(r"(?<=\S) {2,}")
COLLAPSIBLE = [SERVER_2026, SERVER_2025, SERVER_2023, TIMINGS_V1, PERF, KOBOLD_2025]


@pytest.mark.parametrize("text", COLLAPSIBLE)
def test_collapsed_spaces(text):
    collapsed = each_line(lambda line: SPACES.sub(" ", line.lstrip()))
    assert told(read_text(collapsed(text))) == told(read_text(text))


@pytest.mark.parametrize("text", [SERVER_2026, SERVER_2025, SERVER_2023, TIMINGS_V1, PERF])
def test_decimal_commas(text):
    commas = re.sub(r"(?<= )(\d+)\.(\d\d)(?= (?:ms|tokens|t/s|s /))", r"\1,\2", text)
    assert commas != text
    assert told(read_text(commas)) == told(read_text(text))


@pytest.mark.parametrize("text", [SERVER_2025, TIMINGS_V1, PERF, SERVER_2023])
def test_a_lost_first_letter(text):
    assert told(read_text(text[1:])) == told(read_text(text))


def test_a_lost_first_letter_never_makes_the_prompt_an_answer():
    bare = SERVER_2025.split("task 8 | \n")[1].splitlines(keepends=True)
    record = read_text(bare[0][1:] + bare[2]).records
    assert all(one.server is None or one.server.decode_s is None for one in record)


def test_the_router_of_llama_server():
    routed = each_line(lambda line: f"[40123] {line}")(SERVER_2026)
    assert told(read_text(routed)) == SAMPLES["llama-server 2026"].requests


@pytest.mark.parametrize("text", [SERVER_2026, SERVER_2025, TIMINGS_V1, SERVER_2023])
def test_newest_line_first(text):
    prefixed = each_line(lambda line: f"Jun 01 10:00:05 box llm[4711]: {line}")(text)
    turned = "\n".join(reversed(prefixed.splitlines())) + "\n"
    if text is SERVER_2025:  # its header stands before three lines that name no slot
        assert len(read_text(turned).records) == 1
    assert told(read_text(turned)) == told(read_text(text))


def test_two_requests_in_order_are_not_taken_for_reversed():
    later = SERVER_2026.replace("task 71", "task 72").replace("5000 tokens", "4000 tokens")
    requests = told(read_text(SERVER_2026 + later))
    assert [one[2] for one in requests] == [5000, 4000]


def test_a_record_that_the_terminal_wrapped():
    text = TEXTGEN.replace("100 tokens", "100 \n                             tokens")
    assert told(read_text(text)) == SAMPLES["text-generation-webui"].requests


def test_two_records_on_one_line():
    joined = VLLM_V1.replace("\n(APIServer", "(APIServer", 1)
    assert joined.count("\n") == VLLM_V1.count("\n") - 1
    assert read_text(joined).summary == read_text(VLLM_V1).summary


def test_a_pager_cuts_long_lines():
    cut = "".join(
        line if len(line) < 130 else line[:130] + ">\n"
        for line in SERVER_2026.splitlines(keepends=True)
    )
    assert cut != SERVER_2026
    assert told(read_text(cut)) == SAMPLES["llama-server 2026"].requests


@pytest.mark.parametrize("text", [SERVER_2026, SERVER_2024, TIMINGS_V1, PERF, SERVER_JSON])
def test_a_cut_end_loses_only_what_is_missing(text):
    whole = told(read_text(text))[0]
    for end in range(len(text)):
        if (text[end - 1 : end].isdigit() and text[end : end + 1].isdigit()) or text[
            end : end + 1
        ] == ".":
            continue  # in the middle of a number, which reads as another one
        for request in told(read_text(text[:end])):
            for mine, theirs in zip(request, whole, strict=True):
                assert mine is None or mine == theirs, (end, text[max(0, end - 60) : end])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "server.log"
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path.write_bytes(mark + ("Überschrift ±\n" + SERVER_2026).encode(encoding))
    assert told(read_file(str(path))[0]) == SAMPLES["llama-server 2026"].requests


def test_packed(tmp_path):
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(SERVER_2026.encode()))
    assert told(read_file(str(path))[0]) == SAMPLES["llama-server 2026"].requests


@pytest.mark.parametrize("damage", ["cut", "changed", "head only"])
def test_a_damaged_packed_file_is_an_input_error(tmp_path, damage):
    data = gzip.compress((SERVER_2026 * 50).encode())
    middle = len(data) // 2
    broken = {
        "cut": data[:middle],
        "changed": data[:middle] + bytes(256) + data[middle + 256 :],
        "head only": data[:5],
    }
    path = tmp_path / "server.log.gz"
    path.write_bytes(broken[damage])
    with pytest.raises(InputError, match="damaged or cut"):
        read_file(str(path))


@pytest.mark.parametrize("kind", ["folder", "missing"])
def test_what_cannot_be_opened_is_an_input_error(tmp_path, kind):
    path = tmp_path if kind == "folder" else tmp_path / "nothing.log"
    with pytest.raises(InputError, match="Cannot read"):
        read_file(str(path))


def test_prefix_of_json_lines_that_begin_with_the_timings():
    timings = "".join(SERVER_JSON.splitlines(keepends=True)[1:])
    (request,) = told(read_text(timings))
    assert request == (None, None, 410, 101, 0.5055, 4.00075, 100, 4.50625)
