from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from twospeed.cures.cure import CURES
from twospeed.cures.registry import proposers
from twospeed.cures.spelling import (
    Tried,
    change_line,
    context_lines,
    present_value,
    request_line,
    verify_line,
)
from twospeed.findings.observed import observe
from twospeed.records.run import (
    MachineFacts,
    ModelHeader,
    RuntimeFacts,
    ServerProcess,
    Setting,
    Source,
)
from twospeed.runtimes.registry import all_runtimes, settings_of
from twospeed.sources.engine.settings_table import ALIASES, SETTINGS

OF_THE_SERVER_ONLY = {"reasoning-budget", "n", "kvo", "nkvo"}
"""Flags and short forms of llama-server that the engine's table lacks.

Source: llama.cpp common/arg.cpp, as of November 2026.
"""


def served_by(runs, *command: str, **changes):
    machine = MachineFacts(server=ServerProcess(command=command))
    return runs.run_of(runs.HEALTHY, machine=machine, **changes)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ((), "start with --ubatch-size 512 (or LLAMA_ARG_UBATCH=512)"),
        (("llama-server", "--ubatch-size", "8"), "change --ubatch-size 8 to --ubatch-size 512"),
        (("llama-server", "-ub", "8", "-c", "9"), "change -ub 8 to --ubatch-size 512"),
        (("llama-server", "--ubatch-size=8"), "change --ubatch-size=8 to --ubatch-size 512"),
        (("llama-server", "-ub"), "change -ub to --ubatch-size 512"),
        (("x", "-ub", "\x1b[2J" + "9" * 90), "change -ub [2J" + "9" * 21 + " to --ubatch-size 512"),
    ],
)
def test_the_line_names_the_flag_that_is_there(runs, command, line):
    run = served_by(runs, *command)
    assert change_line(run, "n_ubatch", "512", otherwise="?") == line


@pytest.mark.parametrize(
    ("runtime", "setting", "value", "line"),
    [
        ("ollama", "flash_attn", "on", "set OLLAMA_FLASH_ATTENTION=1"),
        ("ollama", "n_batch", "512", 'send "options": {"num_batch": 512}'),
        ("ollama", "keep_loaded", "", 'set OLLAMA_KEEP_ALIVE=-1 or send "keep_alive": -1'),
        ("lmstudio", "gpu_layers", "99", "run `lms load --gpu max`"),
        ("vllm", "n_batch", "2048", "start with --max-num-batched-tokens 2048"),
        ("koboldcpp", "gpu_layers", "99", "start with --gpulayers 99"),
        ("vllm", "threads", "4", "use 4 threads"),
        ("nobody", "threads", "4", "use 4 threads"),
        (None, "threads", "4", "use 4 threads"),
    ],
)
def test_every_runtime_has_its_own_words(runs, runtime, setting, value, line):
    run = runs.run_of(runs.HEALTHY, runtime=runtime)
    assert change_line(run, setting, value, otherwise="use 4 threads") == line


def test_the_embedded_engine_is_set_by_its_own_option(runs):
    run = runs.run_of(runs.HEALTHY, source=Source(kind="engine", where="embedded"))
    assert change_line(run, "n_ubatch", "512", otherwise="?") == (
        "run with --engine ubatch-size=512"
    )
    assert change_line(run, "swa_full", otherwise="?") == "run with --engine swa-full=on"


def test_what_a_request_can_say_needs_no_restart(runs):
    run = runs.run_of(runs.HEALTHY)
    assert request_line(run, "max_output_tokens", "150", otherwise="?") == 'send "max_tokens": 150'
    assert request_line(run, "threads", "2", otherwise="?").startswith("start with --threads 2")


@pytest.mark.parametrize(
    ("command", "value"),
    [(("-t", "8"), "8"), (("--threads=6",), "6"), (("--threads",), None), ((), None)],
)
def test_present_value(runs, command, value):
    assert present_value(served_by(runs, *command), "threads") == value


def test_a_setting_is_checked_by_pairs(runs):
    tried = Tried(setting="n_ubatch", old="8", new="512")
    engine = runs.run_of(runs.HEALTHY, source=Source(kind="engine", where="embedded"))
    assert verify_line(engine, "larger batch", tried) == (
        "twospeed verify --embedded --engine ubatch-size=8 --engine ubatch-size=512"
    )
    live = runs.run_of(runs.HEALTHY)
    assert verify_line(live, "larger batch", tried) == (
        "twospeed verify --before before.jsonl http://127.0.0.1:8080 --cure 'larger batch'"
    )
    shorter = Tried(setting="max_output_tokens", old="300", new="150")
    assert verify_line(live, "shorter answer", shorter) == (
        "twospeed verify http://127.0.0.1:8080 --request max_tokens=300 --request max_tokens=150"
    )


def test_a_nested_request_field_is_not_put_on_a_command_line(runs):
    run = runs.run_of(runs.HEALTHY, runtime="ollama")
    tried = Tried(setting="max_output_tokens", old="300", new="150")
    assert "--before before.jsonl" in verify_line(run, "shorter answer", tried)


def test_an_unknown_present_value_cannot_be_paired(runs):
    run = runs.run_of(runs.HEALTHY, source=Source(kind="engine", where="embedded"))
    tried = Tried(setting="n_ubatch", old=None, new="512")
    assert verify_line(run, "larger batch", tried) == (
        "twospeed verify --before before.jsonl --embedded --cure 'larger batch'"
    )


def test_verify_line_is_safe_to_paste(runs):
    hostile = Source(kind="live", where="http://h/;rm -rf ~\n\x1b[2J'")
    line = verify_line(replace(runs.run_of(runs.HEALTHY), source=hostile), "shorter prompt")
    assert line.startswith("twospeed verify --before before.jsonl 'http://h/;rm-rf~")
    assert line.isprintable()
    log = Source(kind="log", where="a.log")
    line = verify_line(replace(runs.run_of(runs.HEALTHY), source=log), "shorter prompt")
    assert line == "twospeed verify --before before.jsonl URL --cure 'shorter prompt'"


def test_flags_of_llama_server_are_those_of_the_engine():
    known = {*SETTINGS, *ALIASES, *OF_THE_SERVER_ONLY}
    for name, setting in settings_of("llama-server").items():
        words = [setting.flag, *setting.also]
        for word in words:
            flag = re.sub(r"^-{1,2}(no-)?", "", word.split()[0])
            assert flag in known, f"{name}: {word}"


def suffering(runs, runtime):
    """A run with as much to change as one run can have."""
    facts = RuntimeFacts(
        n_ctx=16384,
        slots=1,
        n_ubatch=8,
        threads=8,
        layers_total=32,
        layers_offloaded=20,
        size_bytes=8 * 10**9,
        flash_attn=False,
        quantization="Q8_0",
    )
    machine = MachineFacts(physical_cores=2, clock_hz=1e9, clock_max_hz=3e9)
    header = ModelHeader(file_bytes=8 * 10**9, kv_bytes_per_token_f16=131_072)
    slow = runs.Machine(
        per_token_s=0.004, decode_per_token_s=0.1, reuses=False, queue_s=3.0, reasoning_frac=0.3
    )
    return runs.run_of(slow, facts=facts, machine=machine, header=header, runtime=runtime)


@pytest.mark.parametrize("runtime", [one.id for one in all_runtimes()])
def test_every_change_can_be_said_for_every_runtime(runs, runtime):
    observed = observe(suffering(runs, runtime))
    proposals = [one for propose in proposers() for one in propose(observed)]
    assert len({one.cure for one in proposals}) >= 18
    assert {one.cure for one in proposals} <= set(CURES)
    for proposal in proposals:
        assert proposal.how, proposal.cure
        for line in proposal.how:
            assert line.isprintable()
            assert "{value}" not in line
            assert len(line) < 110
        assert proposal.check.startswith("twospeed verify ")


@pytest.mark.parametrize("runtime", [one.id for one in all_runtimes()])
def test_the_first_line_fits_the_screen(runs, runtime):
    observed = observe(suffering(runs, runtime))
    for propose in proposers():
        for proposal in propose(observed):
            assert len(proposal.how[0]) <= 74, proposal.how[0]


def test_a_setting_without_any_spelling_is_said_in_words(runs):
    run = replace(runs.run_of(runs.HEALTHY), settings={"threads": Setting()})
    assert change_line(run, "threads", "2", otherwise="use 2 threads") == "use 2 threads"


def test_a_context_is_counted_for_each_slot(runs):
    one = runs.run_of(runs.HEALTHY, facts=RuntimeFacts(slots=1))
    assert len(context_lines(one, 4096, "?")) == 1
    four = runs.run_of(runs.HEALTHY, facts=RuntimeFacts(slots=4))
    assert context_lines(four, 4096, "?") == (
        "start with --ctx-size 4096 (or LLAMA_ARG_CTX_SIZE=4096)",
        "that much for each of the 4 slots, where they share it out",
    )
