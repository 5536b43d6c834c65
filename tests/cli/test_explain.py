"""`twospeed explain`: lists, pages, families, changes; as text, Markdown and JSON."""

from __future__ import annotations

import io
import json
import re
import resource
import subprocess
import sys

import pytest

from twospeed.cli.main import main
from twospeed.findings.cause_page import all_pages, cause_page
from twospeed.findings.finding import CAUSES
from twospeed.report.cause_text import render_list, render_page

PAGES = all_pages()
COLOUR = re.compile(r"\x1b\[\d+m")


def fits(text: str) -> bool:
    return max(map(len, text.splitlines())) <= 80


def test_without_a_word_every_cause_in_one_line_each(twospeed):
    said = twospeed("explain")
    assert (said.status, said.err) == (0, "")
    assert fits(said.out)
    assert [line.split()[0] for line in said.out.splitlines() if line[:2] == "  "] == list(CAUSES)
    assert all(page.meaning in said.out for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.cause)
def test_a_page_fits_80_columns_and_loses_no_word(page):
    text = render_page(page, colour=False)
    assert fits(text)
    written = re.sub(
        r"\]\([^)]*\)|^\| cure \| where \| how \|$", " ", page.markdown, flags=re.MULTILINE
    )
    assert sorted(re.findall(r"\w+", text)) == sorted(re.findall(r"\w+", written))


def test_colour_changes_nothing_but_colour():
    for page in PAGES:
        coloured = render_page(page, colour=True)
        assert COLOUR.search(coloured)
        assert COLOUR.sub("", coloured) == render_page(page, colour=False)
    assert COLOUR.sub("", render_list(PAGES, colour=True)) == render_list(PAGES, colour=False)


def test_commands_are_not_broken_over_lines():
    text = render_page(cause_page("decode.depth"), colour=False)
    assert "twospeed diagnose URL --prompt-tokens 16000" in text


def test_no_colour_where_nobody_looks(twospeed):
    assert "\x1b" not in twospeed("explain", "decode.depth").out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("options", "environment", "coloured"),
    [
        ([], {}, True),
        (["--no-color"], {}, False),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"TERM": "dumb"}, False),
    ],
)
def test_colour_on_a_terminal(monkeypatch, options, environment, coloured):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for words in ([], ["depth"], ["cures"]):
        assert main(["explain", *words, *options]) == 0
    assert bool(COLOUR.search(terminal.getvalue())) == coloured


def test_a_closed_output_is_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["explain", "depth"]) == 3
    assert capsys.readouterr().err == "twospeed: Cannot write the page: stdout is closed.\n"


def test_several_causes_in_the_order_asked_for(twospeed):
    said = twospeed("explain", "host.threads", "depth", "host.threads")
    titles = re.findall(r"^(\S+\.\S+): ", said.out, re.MULTILINE)
    assert titles == ["host.threads", "decode.depth"]


def test_a_family_is_listed(twospeed):
    said = twospeed("explain", "placement")
    assert said.status == 0
    assert said.out.count("  placement.") == 5
    assert "host." not in said.out


def test_a_misspelling_is_taken_and_told(twospeed):
    said = twospeed("explain", "decode.depht")
    assert said.status == 0
    assert said.out.startswith("decode.depth: ")
    assert said.err == "twospeed: decode.depht: showing decode.depth.\n"


@pytest.mark.parametrize("words", [["depth"], ["DEPTH"], ["kv-cache"], ["kv cache"]])
def test_a_short_or_differently_spaced_name_needs_no_remark(twospeed, words):
    assert twospeed("explain", *words).err == ""


def test_an_unknown_word_is_refused_with_suggestions(twospeed):
    said = twospeed("explain", "decode.d")
    assert said.status == 2
    assert said.complaint == (
        'twospeed: No cause is called "decode.d". '
        "Did you mean decode.depth or decode.draft_rejected?"
    )
    assert twospeed("explain", "wibble").complaint.endswith(f"explain lists all {len(CAUSES)}.")
    assert twospeed("explain", "").status == 2
    assert twospeed("explain", "decode.depth", "wibble").status == 2


def test_escape_sequences_of_a_word_are_not_echoed(twospeed):
    assert "\x1b" not in twospeed("explain", "\x1b[31mred").err


def test_json_of_one_cause(twospeed):
    said = twospeed("explain", "decode.depth", "--json")
    page = json.loads(said.out)
    assert page["schema"] == "twospeed.explanation/1"
    assert (page["cause"], page["phase"]) == ("decode.depth", "decode")
    assert page["meaning"] == cause_page("decode.depth").meaning
    assert list(page["sections"]) == list(cause_page("decode.depth").sections)
    assert {"cure": "flash attention", "where": "llama-server", "how": "`--flash-attn on`"} in page[
        "cures"
    ]


def test_json_of_many(twospeed):
    everything = json.loads(twospeed("explain", "--json").out)
    assert [one["cause"] for one in everything["causes"]] == list(CAUSES)
    two = json.loads(twospeed("explain", "depth", "queue", "--json").out)
    assert [one["cause"] for one in two["causes"]] == ["decode.depth", "server.queue"]
    assert all(one["sections"] for one in two["causes"])


def test_markdown_is_the_file(twospeed):
    assert twospeed("explain", "decode.depth", "--markdown").out == (
        cause_page("decode.depth").markdown
    )
    assert twospeed("explain", "--markdown").out.count("\n") == len(CAUSES)


def test_one_form_only(twospeed):
    assert twospeed("explain", "--json", "--markdown").status == 2


@pytest.mark.parametrize("words", [["larger", "batch"], ["larger batch"], ["Larger", "Batch"]])
def test_a_change_shows_the_causes_it_acts_on(twospeed, words):
    said = twospeed("explain", *words)
    assert said.status == 0
    assert "prefill.batch_too_small" in said.out
    assert "network.latency" not in said.out


def test_all_changes(twospeed):
    said = twospeed("explain", "cures")
    assert fits(said.out)
    assert "by hand" not in said.out
    told = json.loads(twospeed("explain", "cures", "--json").out)["cures"]
    assert all(one["causes"] for one in told)
    assert [one["cure"] for one in told] == [
        line for line in said.out.splitlines() if line and not line.startswith(" ")
    ]
    for one in told:
        assert f"* {one['cure']}: " in twospeed("explain", one["cure"], "--markdown").out


def test_a_page_shows_at_once():
    code = (
        "import sys\n"
        "from twospeed.cli.main import main\n"
        "status = main(['explain', 'decode.depth'])\n"
        "heavy = {'numpy', 'rich', 'asyncio', 'psutil', 'httptools', 'ssl', 'subprocess'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or status)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    used_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert (done.returncode, done.stderr) == (0, "")
    assert used_s < 0.5, "0.07 s when it was written; modules, not time, are what this guards"
