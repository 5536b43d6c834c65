"""The documents say what is there: commands, links, runtimes, names and numbers."""

from __future__ import annotations

import re
import shlex
from argparse import Action, ArgumentParser, _SubParsersAction
from datetime import date
from pathlib import Path
from typing import get_args

import pytest

from twospeed.cli.main import build_parser, with_default_command
from twospeed.cures import cure, smaller_quantization
from twospeed.findings import (
    batches,
    bursts,
    clocks,
    comparison,
    depth,
    finding,
    host,
    judgement,
    memory_spill,
    placement,
    prefill,
    reuse,
    signs,
    waits,
)
from twospeed.findings.prompt_cache import REUSABLE_FRAC
from twospeed.fits import curve, observations, phases, plan
from twospeed.limits import normal, probe_child
from twospeed.records import errors, request_record
from twospeed.records.run import Goals, Workload
from twospeed.report.document import SCHEMA
from twospeed.runtimes.registry import all_runtimes
from twospeed.sources.machine import cpu_use

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) if ".tmp" not in page.suffixes
)
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
README, METHOD = TEXTS["README.md"], TEXTS["docs/method.md"]

FENCE = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
MACHINE_PATH = re.compile(
    r"(?<![\w.:/])/(?:home|root|Users|work|tmp|opt|mnt|var|private)/\w|\b[A-Z]:\\"
)


def commands_of(text: str) -> list[list[str]]:
    """Words of every line of a code block that starts with a command of ours, comments left out."""
    lines = "".join(FENCE.findall(text)).splitlines()
    words = [shlex.split(line, comments=True) for line in lines if line.strip()]
    return [line for line in words if line and line[0] in {"twospeed", "make", "python"}]


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return found[1]


def rows_of(text: str) -> list[list[str]]:
    """Cells of the body rows of every table."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = {i for i, row in enumerate(cells) if set("".join(row)) <= {"-"}}
    return [row for i, row in enumerate(cells) if not {i, i + 1} & rules]


def codes_in(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def anchors_of(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def parsers() -> list[ArgumentParser]:
    top = build_parser()
    nested = [a for a in top._actions if isinstance(a, _SubParsersAction)]
    return [top, *(sub for action in nested for sub in action.choices.values())]


def actions() -> list[Action]:
    return [action for parser in parsers() for action in parser._actions]


README_COMMANDS = [words for words in commands_of(README) if words[0] == "twospeed"]


def test_readme_is_short_and_begins_with_a_sentence_a_picture_and_a_command():
    lines = README.splitlines()
    assert len(lines) < 150
    paragraphs = README.split("\n\n")
    assert paragraphs[1].rstrip().endswith(".")
    assert paragraphs[1].count(". ") == 0, "one sentence"
    assert re.match(r"!\[.{20,}\]\(docs/\w+\.svg\)$", paragraphs[2])
    first = next(i for i, line in enumerate(lines, 1) if re.match(r"(make|twospeed) ?\w*", line))
    assert first <= 25


def test_two_commands_set_everything_up():
    assert commands_of(section(README, "Set up")) == [["make", "diagnose"], ["make", "test"]]


@pytest.mark.parametrize("words", README_COMMANDS, ids=" ".join)
def test_commands_of_the_readme_are_understood(words: list[str]):
    args = build_parser().parse_args(with_default_command(words[1:]))
    assert args.command.name


def test_the_readme_shows_commands_at_all():
    assert len(README_COMMANDS) > 5


def test_options_of_the_readme_exist():
    known = {option for action in actions() for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", README))
    assert named <= known, named - known


def test_defaults_in_the_readme_are_those_of_the_code():
    goals, work = Goals(), Workload(prompt_tokens=2000, output_tokens=300)
    assert f"`--wait-goal` ({goals.wait_s:g} s)" in README
    assert f"({goals.stream_tps:g} tok/s)" in README
    assert f"{work.prompt_tokens:,} tokens in and {work.output_tokens} out" in README
    budget = next(action for action in actions() if "--budget" in action.option_strings)
    assert f"about {budget.default:g} s (`--budget`" in README


def test_make_targets_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for name, text in TEXTS.items():
        named = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", text, re.MULTILINE))
        assert {one or other for one, other in named} <= targets, name


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_links_resolve(name: str):
    here = (ROOT / name).parent
    for link in LINK.findall(FENCE.sub("", TEXTS[name])):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (here / path).resolve() if path else ROOT / name
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_files_that_are_named_exist(name: str):
    for code in codes_in(FENCE.sub("", TEXTS[name])):
        if re.fullmatch(r"(src|tests|docs|benchmarks)/[\w/.-]+", code) and "NAME" not in code:
            assert (ROOT / code).exists(), code


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("docs/*.svg"))], ids=lambda p: p.name)
def test_no_path_of_a_single_machine_is_shown(page: Path):
    assert not MACHINE_PATH.findall(page.read_text(encoding="utf-8"))


def test_a_machine_path_would_be_noticed():
    assert MACHINE_PATH.search("kept in /home/ada/models")
    assert not MACHINE_PATH.search("http://127.0.0.1/work/v1 and docs/work/x and `/v1/models`")


def test_the_picture_is_small_and_loads_nothing():
    picture = (ROOT / "docs" / "verdict.svg").read_text(encoding="utf-8")
    assert len(picture) < 60_000
    assert picture.startswith("<svg")
    assert not re.search(r"@import|@font-face|url\(h|<script|href=|src=", picture)


def test_every_exit_status_is_explained():
    told = {int(row[0]) for row in rows_of(section(README, "Exit status"))}
    raised = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.TwospeedError)
    }
    assert told == raised | {0, 1, 4, 130}


def test_the_schema_that_is_named_is_the_one_that_is_written():
    assert SCHEMA in README
    links = [link for link in LINK.findall(README) if link.endswith(".json")]
    assert links
    for link in links:
        assert f'"{SCHEMA}"' in (ROOT / link).read_text(encoding="utf-8")


def test_every_runtime_has_its_row_and_every_row_its_runtime():
    rows = rows_of(TEXTS["docs/runtimes.md"])
    ids = [re.findall(r"`([^`]+)`", row[0]) for row in rows]
    assert sorted(one for found in ids for one in found) == sorted(r.id for r in all_runtimes())
    ports = {found[0]: row[1] for found, row in zip(ids, rows, strict=True)}
    for runtime in all_runtimes():
        assert ports[runtime.id] == (", ".join(map(str, runtime.ports)) or "–"), runtime.id
    assert all(len(row) == 5 and all(row) for row in rows)


def test_the_readme_names_every_runtime():
    told = section(README, "Runtimes")
    for runtime in all_runtimes():
        assert runtime.name.removesuffix(" 0.3") in told, runtime.name


def test_changelog_grammar():
    lines = TEXTS["CHANGELOG.md"].splitlines()
    assert lines[0] == "# Changelog"
    heads = [line for line in lines if line.startswith("## ")]
    found = [re.fullmatch(r"## (\d+)\.(\d+)\.(\d+) \((unreleased|[\d-]+)\)", h) for h in heads]
    assert heads
    assert all(found), heads
    versions = [tuple(map(int, head.groups()[:3])) for head in found if head]
    assert versions == sorted(set(versions), reverse=True), "newest first, each once"
    when = [head[4] for head in found if head]
    assert "unreleased" not in when[1:]
    days = [date.fromisoformat(day) for day in when if day != "unreleased"]
    assert days == sorted(days, reverse=True)
    kinds = {line[4:] for line in lines if line.startswith("### ")}
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_words_of_the_glossary_are_words_of_the_code():
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.py"))
    rows = rows_of(section(METHOD, "Words"))
    assert len(rows) > 8
    for row in rows:
        assert re.search(rf"\b{row[1].strip('`')}\b", code), row[1]


def test_every_origin_and_certainty_is_explained():
    assert set(get_args(request_record.Origin)) <= codes_in(section(METHOD, "Words"))
    told = section(METHOD, "Findings")
    assert all(f"*{word}*" in told for word in get_args(finding.Certainty))


def causes_that_can_be_found() -> set[str]:
    """Identifiers that the finding modules hold, besides the closed list itself."""
    modules = (ROOT / "src/twospeed/findings").glob("*.py")
    lists = {"finding.py", "registry.py"}
    code = "\n".join(p.read_text(encoding="utf-8") for p in modules if p.name not in lists)
    return {cause for cause in finding.CAUSES if f'"{cause}"' in code}


def test_the_method_names_exactly_the_causes_that_can_be_found():
    rows = rows_of(section(METHOD, "Findings"))
    assert {code for row in rows for code in codes_in(row[0])} == causes_that_can_be_found()


def test_the_method_names_exactly_the_changes_that_can_be_proposed():
    modules = (ROOT / "src/twospeed/cures").glob("*.py")
    code = "\n".join(p.read_text(encoding="utf-8") for p in modules if p.name != "cure.py")
    proposed = {name for name in cure.CURES if f'cure="{name}"' in code}
    told = {name for row in rows_of(section(METHOD, "Savings")) for name in row[0].split(", ")}
    assert told == proposed


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


NUMBERS = {
    "Time": [
        f"{reuse.MOSTLY * 100:.0f} % of the reusable tokens",
        f"*no* up to {percent(reuse.HARDLY)}",
        f"at least {reuse.SHORTEST_TELLING_S} s",
        f"more than {phases.LATE_HEADERS_S} s and more than {percent(phases.LATE_HEADERS_FRAC)}",
        f"from {observations.FEWEST_UNCACHED_TOKENS} uncached tokens up",
        f"needs {observations.FEWEST_STEPS} steps",
    ],
    "Curves": [
        f"more than {curve.WILD_DEVIATIONS:.0f} robust standard deviations",
        f"an assumption of {percent(curve.NOISE_PRIOR_FRAC)}",
        f"at most {percent(curve.WILD_SHARE)} of all",
        f"{curve.RESAMPLES} resampled sets",
        f"by {percent(curve.BEYOND_FRAC_PER_DOUBLING)} for each doubling",
    ],
    "Experiment": [
        f"{plan.WARMUP_PROMPT_TOKENS} tokens in and {plan.WARMUP_OUTPUT_TOKENS} out",
        f"more than {percent(plan.ROUND_SHARE)}",
        f"as {plan.DECODE_TARGET_S} s of decode",
        f"between {plan.LEAST_OUTPUT_TOKENS} and {plan.MOST_OUTPUT_TOKENS} tokens",
        f"({plan.TIGHT_OUTPUT_TOKENS} where time is short, {plan.HIDDEN_OUTPUT_TOKENS} for",
        f"up to {plan.OVERRUN} times as much",
        f"or {2 + plan.MOST_ROUNDS * plan.MOST_RUNGS} requests",
    ],
    "Limits": [
        f"{probe_child.WANTED_BYTES // 10**6} MB",
        f"least {probe_child.LEAST_BYTES // 10**6} MB",
        *(
            f"| {one.low:.2f} to {one.high:.2f} |"
            for one in (
                normal.CPU_DECODE_SMALL,
                normal.CPU_DECODE_MIDDLE,
                normal.CPU_DECODE_LARGE,
                normal.CPU_DECODE_K_LOW_BIT,
                normal.CPU_DECODE_I_LOW_BIT,
                normal.CPU_PREFILL_SMALL,
            )
        ),
        f"{normal.CACHE_READ_LOW} to {normal.CACHE_READ_HIGH} of the bandwidth",
    ],
    "Findings": [
        f"differ by more than {percent(clocks.TOLERANCE)}",
        f"others used {percent(host.BUSY)} or more",
        f"is {percent(waits.NOTABLE_SHARE)} or more of a slow wait",
        f"is {batches.SMALL_BATCH_TOKENS} tokens or less",
        f"steps under {batches.SMALL_STEP_TOKENS}",
        f"under {prefill.SMALL_PROMPT_TOKENS} tokens",
        f"less than {prefill.GPU_BATCH_GAIN:g} times as fast",
        f"depth takes {percent(depth.MAJOR_SHARE)} or more",
        f"not measured to {percent(depth.MEASURED_TO)}",
        f"under {percent(signs.LOW_ACCEPTANCE)} of the drafted tokens",
        f"{percent(signs.SAMPLING_FRAC)} of decode or more",
        f"at least {judgement.LONG_ANSWER_S:g} s",
        f"{judgement.LONG_ANSWER_TOKENS:,} tokens",
        f"{bursts.FEWEST_TEXTS} texts or more",
        f"{percent(memory_spill.FULL_FRAC)} of the graphics memory",
        f"{comparison.APART:g} times slower",
    ],
    "Savings": [
        f"{percent(REUSABLE_FRAC.likely)} of a follow-up prompt is cached",
        f"({REUSABLE_FRAC.low * 100:.0f} to {percent(REUSABLE_FRAC.high)})",
        f"{percent(smaller_quantization.PROPORTIONAL.likely)} (60 to 95 %)",
        f"{percent(smaller_quantization.BELOW_FOUR_BITS.likely)} (40 to 70 %)",
        f"below {smaller_quantization.SMALL_BITS:g} bits per weight",
        f"{placement.SLOWER.likely:g} times ({placement.SLOWER.low:g} to",
        f"to {placement.SLOWER.high:g} times) slower",
    ],
    "Conditions": [
        f"Above {percent(cpu_use.MOST_FOREIGN_LOAD)}",
        f"more than {percent(cpu_use.MOST_STEAL)} of processor time",
    ],
}


@pytest.mark.parametrize("number", [one for group in NUMBERS.values() for one in group])
def test_numbers_of_the_method_are_those_of_the_code(number: str):
    assert number in " ".join(METHOD.split()), "the code has changed: so must docs/method.md"
