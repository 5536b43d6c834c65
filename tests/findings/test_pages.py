"""The pages of causes: complete, of one form, and in agreement with code, cures and settings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis.strategies import text

from twospeed.cli.command import all_commands
from twospeed.cli.main import build_parser
from twospeed.cures.cure import CURES
from twospeed.findings import batches, clocks, depth, host, prefill, reuse, waits
from twospeed.findings.cause_page import (
    BY_HAND,
    SECTIONS,
    all_pages,
    cause_page,
    causes_meant,
    family,
    suggestions,
)
from twospeed.findings.finding import CAUSES, Certainty, SlowPhase
from twospeed.records import request_record, run
from twospeed.report.build import build_report
from twospeed.runtimes.registry import all_runtimes
from twospeed.sources.engine.settings_table import ALIASES, SETTINGS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "twospeed" / "findings" / "pages"
PAGES = all_pages()
CODE = re.compile(r"`([^`]+)`")
RUNTIME_IDS = {
    "llama-server": "llama-server",
    "Ollama": "ollama",
    "vLLM": "vllm",
    "vLLM on a CPU": "vllm",
    "LM Studio": "lmstudio",
    "SGLang": "sglang",
    "mlx_lm": "mlx_lm",
    "koboldcpp": "koboldcpp",
}
OTHER_PLACES = {"any", "any other", "client", "server", "nginx", "Claude Code", "Open WebUI"} | {
    "Linux",
    "NVIDIA",
    "Windows",
    "Windows, macOS",
}
FURTHER = {
    # Settings that no runtime module declares: spelling by where it was read on 2026-12-01.
    # llama-server: tools/server/README.md, a member of a request and a flag of its router.
    "llama-server": {'"id_slot"', "--models-max"},
    # Ollama: envconfig/config.go.
    "ollama": {"OLLAMA_MAX_LOADED_MODELS", "OLLAMA_SCHED_SPREAD", "num_ctx", "ollama ps"},
    # docs.vllm.ai/en/latest, engine arguments; OpenMP for its CPU build.
    "vllm": {
        "--cpu-offload-gb",
        "--enforce-eager",
        "--gpu-memory-utilization",
        "--pipeline-parallel-size",
        "--speculative-config",
        "--tensor-parallel-size",
        "OMP_NUM_THREADS",
    },
    # lmstudio.ai/docs/cli/load, and its REST API v1 (load).
    "lmstudio": {"lms load --ttl", '"offload_kv_cache_to_gpu"'},
    # sglang 0.5.23, srt/arg_groups/fields.
    "sglang": {
        "--cuda-graph-max-bs-decode",
        "--disable-radix-cache",
        "--enable-hierarchical-cache",
        "--grammar-backend",
        "--mem-fraction-static",
        "--pp-size",
        "--speculative-algorithm",
        "--swa-full-tokens-ratio",
        "--tp-size",
    },
    # mlx-lm 0.32.2, mlx_lm/server.py.
    "mlx_lm": {"--draft-model", "--num-draft-tokens", "--prompt-cache-size"},
    # koboldcpp.py 1.117.1.
    "koboldcpp": {
        "--draftamount",
        "--draftmodel",
        "--jinjathink",
        "--lowvram",
        "--nofastforward",
        "--noswa",
        "--parallelrequests",
        "--reasoningeffort",
        "--smartcache",
        "--swapadding",
        "--tensor_split",
        "--usecuda",
        "--usemlock",
        "--usevulkan",
    },
}


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


NUMBERS = {
    "prompt_cache.disabled": [f"at most {percent(reuse.HARDLY)}"],
    "prompt.large": [f"has {prefill.SMALL_PROMPT_TOKENS} tokens or more"],
    "prefill.batch_too_small": [f"{batches.SMALL_BATCH_TOKENS} tokens or less"],
    "prefill.compute_low": [f"under {prefill.SMALL_PROMPT_TOKENS} tokens", "two thirds"],
    "decode.depth": [percent(depth.MAJOR_SHARE), percent(depth.MEASURED_TO)],
    "host.contention": [f"{percent(host.BUSY)} or more"],
    "server.queue": [f"{percent(waits.NOTABLE_SHARE)} or more"],
    "model.load": [f"{percent(waits.NOTABLE_SHARE)} or more"],
    "network.latency": [f"{percent(waits.NOTABLE_SHARE)} or more"],
    "measurement.artifact": [f"more than {percent(clocks.TOLERANCE)}"],
}


def one_line(text: str) -> str:
    return " ".join(text.split())


def fields_of_records() -> set[str]:
    kinds = [*vars(request_record).values(), *vars(run).values()]
    structs = [k for k in kinds if isinstance(k, type) and issubclass(k, msgspec.Struct)]
    return {name for struct in structs for name in struct.__struct_fields__}


def test_pages_are_packed_with_the_code():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packed = project["tool"]["setuptools"]["package-data"]["twospeed"]
    assert f"{FOLDER.relative_to(ROOT / 'src' / 'twospeed').as_posix()}/*.md" in packed


def test_every_cause_has_its_page_and_every_page_its_cause():
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{c}.md" for c in CAUSES)
    assert [page.cause for page in PAGES] == list(CAUSES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.cause)
class TestPage:
    def test_form(self, page):
        assert tuple(page.sections) == SECTIONS
        assert all(page.sections.values())
        assert page.phase in get_args(SlowPhase)
        lines = page.markdown.splitlines()
        assert 25 <= len(lines) <= 60
        assert max(map(len, lines)) <= 80
        assert page.markdown.isascii(), "shown on any terminal"
        assert page.markdown.endswith("\n")
        assert len(page.meaning) <= 47, "a list of causes fits 80 columns"

    def test_cures_are_of_the_closed_list(self, page):
        assert page.cures
        assert {row.cure for row in page.cures} <= {*CURES, BY_HAND}
        assert all(row.how for row in page.cures)
        named = set(re.findall(r"\*\*([^*]+)\*\*", page.sections["What does not help"]))
        assert named <= set(CURES), "bold in this section is the name of a cure"

    def test_certainties_are_of_the_closed_list(self, page):
        named = re.findall(r"\*\*([^*]+)\*\*", page.sections["How sure that is"])
        assert named
        assert set(named) <= set(get_args(Certainty))

    def test_evidence_is_what_records_hold(self, page):
        codes = CODE.findall(page.sections["How it is recognised"])
        names = {code for code in codes if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", code)}
        assert names <= fields_of_records(), names - fields_of_records()

    def test_numbers_are_those_of_the_code(self, page):
        text = one_line(page.markdown)
        for number in NUMBERS.get(page.cause, []):
            assert number in text, number

    def test_settings_exist(self, page):
        for row in page.cures:
            for place in row.where.split(", ") if row.where not in OTHER_PLACES else ():
                for code in CODE.findall(row.how):
                    assert is_known(RUNTIME_IDS[place], code), (place, code)

    def test_commands_exist(self, page):
        real = {command.name for command in all_commands()}
        planned = {"read", "record", "verify"}
        for code in CODE.findall(one_line(page.markdown)):
            if not code.startswith("twospeed "):
                continue
            words = code.split()[1:]
            assert words[0] in real | planned, code
            if words[0] in real and words[1:]:
                build_parser().parse_args(words)
            if words[0] == "explain":
                assert len(causes_meant(words[1])) == 1, code

    def test_links_lead_somewhere(self, page):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.markdown):
            assert (FOLDER / target).resolve().is_file(), target

    def test_sources_can_be_looked_up(self, page):
        sources = page.sections["Sources"]
        assert sources.startswith("* ")
        issues = re.findall(r"[\w.-]+/[\w.-]+#\d+", sources)
        other = re.findall(r"https://|arXiv \d{4}\.\d{5}|\]\(|\(run\)|RFC \d+|`\w{7}`", sources)
        assert issues or other


def is_known(runtime: str, code: str) -> bool:
    """Whether every setting in a piece of code is one that the runtime has."""
    if any(re.fullmatch(pattern, code) for pattern in declared(runtime)):
        return True
    further = FURTHER.get(runtime, set())
    if any(code == one or code.startswith((f"{one} ", f"{one}=", f"{one}:")) for one in further):
        return True
    flags = re.findall(r"(?<!\S)--[\w-]+", code)
    names = {flag.removeprefix("--") for flag in flags}
    if runtime == "llama-server":
        names = {name.removeprefix("no-") for name in names}
        return bool(names) and names <= {*SETTINGS, *ALIASES, "reasoning-budget"}
    known = {pattern.split("\\ ")[0].replace("\\", "") for pattern in declared(runtime)}
    return bool(flags) and set(flags) <= known | further


def declared(runtime: str) -> list[str]:
    """How the runtime's module spells its settings, as patterns."""
    settings = next(one for one in all_runtimes() if one.id == runtime).settings.values()
    spelled = [s for one in settings for s in (one.flag, one.env, one.request) if s]
    return [re.escape(s).replace(re.escape("{value}"), r"-?[\w./]+") for s in spelled]


def test_unknown_settings_would_be_noticed():
    assert is_known("llama-server", "--batch-size 2048 --ubatch-size 512")
    assert is_known("llama-server", "--no-kv-offload")
    assert not is_known("llama-server", "--batchsize 2048")
    assert not is_known("vllm", "--gpu-layers 99")
    assert not is_known("ollama", "OLLAMA_NO_SUCH=1")
    assert not is_known("ollama", '"options": {"num_gpus": 99}')


def test_further_settings_are_all_in_use():
    codes = {
        (RUNTIME_IDS.get(place), code)
        for page in PAGES
        for row in page.cures
        for place in row.where.split(", ")
        for code in CODE.findall(row.how)
    }
    for runtime, spellings in FURTHER.items():
        for one in spellings:
            assert any(one in code for place, code in codes if place == runtime), (runtime, one)


def test_every_cure_of_the_closed_list_has_a_page():
    named = {row.cure for page in PAGES for row in page.cures}
    assert set(CURES) <= named, set(CURES) - named


def test_what_is_proposed_for_a_cause_is_on_its_page(runs):
    proposed = [cure for run in runs.all_runs().values() for cure in build_report(run).cures]
    assert proposed
    for cure in proposed:
        named = {row.cure for row in cause_page(cure.for_cause).cures}
        assert cure.cure in named, (cure.for_cause, cure.cure)


def test_the_index_of_the_documents_lists_every_page():
    rows = re.findall(r"^\| \[.*$", (ROOT / "docs" / "causes.md").read_text("utf-8"), re.MULTILINE)
    link = "../src/twospeed/findings/pages"
    assert rows == [f"| [`{p.cause}`]({link}/{p.cause}.md) | {p.meaning} |" for p in PAGES]


@pytest.mark.parametrize(
    ("word", "cause"),
    [
        ("decode.depth", "decode.depth"),
        ("DECODE.DEPTH", "decode.depth"),
        ("decode.dep", "decode.depth"),
        ("depth", "decode.depth"),
        ("kv-cache", "placement.kv_cache_off_gpu"),
        ("decode.depht", "decode.depth"),
        ("prompt.lagre", "prompt.large"),
        ("model", "model.load"),
        ("prompt", "prompt.large"),
    ],
)
def test_words_that_mean_one_cause(word, cause):
    assert causes_meant(word) == (cause,)


@pytest.mark.parametrize("cause", CAUSES)
def test_identifiers_mean_themselves_alone(cause):
    assert causes_meant(cause) == (cause,)
    assert causes_meant(cause.partition(".")[2]) == (cause,)


@pytest.mark.parametrize("word", ["prompt_cache", "prompt_cach", "placement"])
def test_a_family_means_its_causes(word):
    found = causes_meant(word)
    assert found == tuple(c for c in CAUSES if family(c).startswith(word))
    assert len(found) > 1


@pytest.mark.parametrize("word", ["", " ", "decode.d", "pre", "wibble", ".", "quantum"])
def test_words_that_mean_nothing_alone(word):
    assert causes_meant(word) == ()


@given(text())
def test_any_word_is_taken_or_refused_in_peace(word):
    assert set(causes_meant(word)) <= set(CAUSES)
    assert len(suggestions(word)) <= 3


def test_suggestions():
    assert suggestions("decode.d") == ("decode.depth", "decode.draft_rejected")
    assert suggestions("wibble") == ()
    assert "host.throttled" in suggestions("throtling")
