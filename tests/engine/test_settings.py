"""llama-server's flags in, checked values out, attributes of a stand-in for xllamacpp set."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import pytest

from twospeed.records.errors import UsageError
from twospeed.sources.engine.setting_values import Choice
from twospeed.sources.engine.settings import (
    apply,
    describe,
    parse_settings,
    with_defaults,
)
from twospeed.sources.engine.settings_table import ALIASES, SETTINGS
from twospeed.sources.machine.cores import usable_cores

MODEL = Path("/models/tiny.gguf")


@pytest.mark.parametrize(
    ("pair", "flag", "value"),
    [
        ("threads=2", "threads", 2),
        ("--threads=2", "threads", 2),
        ("-t=2", "threads", 2),
        ("ubatch_size=64", "ubatch-size", 64),
        ("ngl=99", "gpu-layers", 99),
        ("gpu-layers=all", "gpu-layers", -2),
        ("cache-type-k=Q8_0", "cache-type-k", "q8_0"),
        ("flash-attn=on", "flash-attn", "on"),
        ("swa-full", "swa-full", True),
        ("no-warmup", "warmup", False),
        ("--no-warmup=true", "warmup", False),
        ("no-warmup=off", "warmup", True),
        ("warmup=0", "warmup", False),
        ("no-kv-offload", "kv-offload", False),
        ("no-cache-prompt", "cache-prompt", False),
        ("temp=0.5", "temp", 0.5),
        ("seed=random", "seed", 4294967295),
        ("tensor-split=3,1", "tensor-split", [3.0, 1.0]),
        ("override-tensor=exps=CPU", "override-tensor", "exps=CPU"),
        ("mlock", "load-mode", "mlock"),
        ("no-mmap", "load-mode", "none"),
        ("mmap=on", "load-mode", "mmap"),
    ],
)
def test_flags_as_llama_server_spells_them(pair, flag, value):
    assert parse_settings([pair]) == {flag: value}


def test_the_last_one_wins_and_memory_flags_are_joined():
    assert parse_settings(["threads=2", "threads=4"]) == {"threads": 4}
    assert parse_settings(["mlock", "mmap"]) == {"load-mode": "mmap+mlock"}
    assert parse_settings(["mlock", "no-mmap"]) == {"load-mode": "mlock"}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("threads=0", "a whole number from 1 to 512"),
        ("threads=many", "a whole number from 1 to 512"),
        ("threads=", "a whole number"),
        ("gpu-layers=some", "or auto or all"),
        ("batch-size=0", "a whole number"),
        ("parallel=300", "from 1 to 256"),
        ("temp=nan", "a number"),
        ("slot-prompt-similarity=1.5", "from 0.0 to 1.0"),
        ("swa-full=perhaps", "on or off"),
        ("cache-type-k=q4_k", "q8_0"),
        ("flash-attn=maybe", "on, off, auto"),
        ("model=/no/such/file.gguf", "existing file"),
        ("tensor-split=a,b", "a number"),
        ("threads", "needs a value"),
    ],
)
def test_impossible_values_say_what_was_expected(pair, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_settings([pair])
    assert pair in str(caught.value)


@pytest.mark.parametrize(
    ("pair", "close"),
    [("threds=2", "threads"), ("cache-typ-k=q8_0", "cache-type-k"), ("no-warmpu", "warmup")],
)
def test_unknown_flags_name_close_ones(pair, close):
    with pytest.raises(UsageError, match="no such setting") as caught:
        parse_settings([pair])
    assert close in caught.value.hint


def test_no_before_a_number_is_unknown():
    with pytest.raises(UsageError, match="no such setting"):
        parse_settings(["no-threads"])


def test_defaults_are_bounded_and_local():
    settings = with_defaults({}, MODEL)
    assert settings["model"] == str(MODEL)
    assert settings["alias"] == "tiny"
    assert settings["threads"] == settings["threads-batch"] == usable_cores()
    assert settings["ctx-size"] == 4096
    assert settings["parallel"] == 1
    assert settings["cache-ram"] == 256
    assert settings["metrics"] is True
    assert "port" not in settings


def test_asked_values_win_and_batch_threads_follow():
    settings = with_defaults(parse_settings(["threads=1", "ctx-size=512"]), MODEL)
    assert settings["threads"] == settings["threads-batch"] == 1
    assert settings["ctx-size"] == 512
    assert with_defaults(parse_settings(["threads-batch=2", "threads=1"]), MODEL)["threads"] == 1


def test_draft_model_brings_its_method_and_threads(tmp_path):
    draft = tmp_path / "draft.gguf"
    draft.write_bytes(b"")
    settings = with_defaults(parse_settings([f"model-draft={draft}", "threads=1"]), MODEL)
    assert settings["spec-type"] == "draft-simple"
    assert settings["threads-draft"] == 1


def test_own_model_is_made_absolute_and_named(tmp_path, monkeypatch):
    (tmp_path / "Mine.Q8_0.gguf").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    settings = with_defaults(parse_settings(["model=Mine.Q8_0.gguf"]), MODEL)
    assert settings["model"] == str(tmp_path / "Mine.Q8_0.gguf")
    assert settings["alias"] == "Mine.Q8_0"


def test_description_can_be_given_back():
    asked = parse_settings(["threads=2", "no-warmup", "temp=0.25", "tensor-split=3,1", "ctk=f16"])
    written = describe(asked)
    assert ("warmup", "off") in written
    assert ("tensor-split", "3,1") in written
    assert parse_settings([f"{flag}={value}" for flag, value in written]) == asked


class Kind(Enum):
    GGML_TYPE_Q8_0 = 8


class Method(Enum):
    COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE = 6


def stand_in() -> SimpleNamespace:
    return SimpleNamespace(
        cpuparams=SimpleNamespace(n_threads=-1),
        speculative=SimpleNamespace(types=[]),
        no_kv_offload=False,
        cache_type_k=None,
        model_alias=[],
        tensor_split=[0.0] * 128,
    )


def test_values_reach_the_attributes():
    params = stand_in()
    module = SimpleNamespace(ggml_type=Kind, common_speculative_type=Method)
    asked = ["t=3", "no-kv-offload", "ctk=q8_0", "alias=x", "tensor-split=3,1"]
    apply(parse_settings([*asked, "spec-type=ngram-simple"]), params, module)
    assert params.cpuparams.n_threads == 3
    assert params.no_kv_offload is True
    assert params.cache_type_k is Kind.GGML_TYPE_Q8_0
    assert params.model_alias == ["x"]
    assert params.tensor_split == [3.0, 1.0] + [0.0] * 126
    assert params.speculative.types == [Method.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]


def test_every_row_exists_in_xllamacpp():
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    for setting in SETTINGS.values():
        target = params
        for step in setting.attribute.split("."):
            assert hasattr(target, step), setting.flag
            target = getattr(target, step)
        if isinstance(setting.read, Choice):
            enum = getattr(xllamacpp, setting.read.enum)
            assert set(setting.read.members.values()) <= {member.name for member in enum}


def test_aliases_lead_to_settings():
    assert set(ALIASES.values()) <= set(SETTINGS)
    assert not set(ALIASES) & set(SETTINGS)
