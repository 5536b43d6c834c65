"""Bytes, operations and cache sizes against sums done by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twospeed.limits.gguf_header import read_header
from twospeed.records.errors import InputError
from twospeed.sources.engine.model import cached_model

F32, Q8_0 = 0, 8


def add_weights(writer, *, tied: bool) -> None:
    writer.tensor("token_embd.weight", (64, 100), F32, 25600)
    writer.tensor("blk.0.attn_q.weight", (64, 64), Q8_0, 4352)
    writer.tensor("blk.1.attn_q.weight", (64, 64), Q8_0, 4352)
    writer.tensor("blk.0.attn_norm.weight", (64,), F32, 256)
    if not tied:
        writer.tensor("output.weight", (64, 100), Q8_0, 6800)


def test_untied_embedding_is_not_read(llama, tmp_path):
    add_weights(llama, tied=False)
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.read_bytes_per_token == 4352 * 2 + 256 + 6800
    assert header.parameters == 6400 + 2 * 4096 + 64 + 6400
    assert header.active_parameters == 2 * 4096


def test_tied_embedding_is_read(llama, tmp_path):
    add_weights(llama, tied=True)
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.read_bytes_per_token == 25600 + 4352 * 2 + 256
    assert header.active_parameters == 2 * 4096


def test_cache_and_width_by_default_head_size(llama, tmp_path):
    add_weights(llama, tied=True)
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.kv_bytes_per_token_f16 == 2 * 2 * (16 + 16) * 2
    assert header.attention_width == 64
    assert header.layers == 2
    assert header.architecture == "llama"
    assert header.sliding_window is None


def test_explicit_head_sizes_and_window(llama, tmp_path):
    llama.add("llama.attention.key_length", "u32", 32)
    llama.add("llama.attention.value_length", "u32", 24)
    llama.add("llama.attention.sliding_window", "u32", 512)
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.kv_bytes_per_token_f16 == 2 * 2 * (32 + 24) * 2
    assert header.attention_width == 4 * 32
    assert header.sliding_window == 512


def test_heads_per_layer_with_recurrent_layers(writer, tmp_path):
    writer.add("general.architecture", "str", "hybrid")
    writer.add("hybrid.block_count", "u32", 4)
    writer.add("hybrid.embedding_length", "u32", 64)
    writer.add("hybrid.attention.head_count", "u32", 4)
    writer.add("hybrid.attention.head_count_kv", "u32[]", [0, 0, 0, 2])
    header = read_header(writer.write(tmp_path / "m.gguf"))
    assert header.kv_bytes_per_token_f16 == 2 * 32 * 2


@pytest.mark.parametrize("bad", [[1.0, float("nan"), 2.0, 3.0], [1.0]])
def test_nonsense_head_counts_are_unknown(writer, tmp_path, bad):
    writer.add("general.architecture", "str", "x")
    writer.add("x.block_count", "u32", 4)
    writer.add("x.embedding_length", "u32", 64)
    writer.add("x.attention.head_count", "u32", 4)
    writer.add("x.attention.head_count_kv", "f32[]", bad)
    assert read_header(writer.write(tmp_path / "m.gguf")).kv_bytes_per_token_f16 is None


def mixture(writer) -> None:
    writer.tensor("blk.0.ffn_up_exps.weight", (64, 32, 8), F32, 65536)
    writer.tensor("blk.0.ffn_up_shexp.weight", (64, 32), F32, 8192)
    writer.tensor("blk.0.ffn_gate.3.weight", (64, 8), F32, 2048)
    writer.tensor("output.weight", (64, 8), F32, 2048)


def test_only_active_experts_count(llama, tmp_path):
    mixture(llama)
    llama.add("llama.expert_count", "u32", 8)
    llama.add("llama.expert_used_count", "u32", 2)
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.read_bytes_per_token == 65536 // 4 + 8192 + 2048 // 4 + 2048
    assert header.active_parameters == 16384 // 4 + 2048 + 512 // 4


def test_experts_without_a_used_count_are_unknown(llama, tmp_path):
    mixture(llama)
    llama.add("llama.expert_count", "u32", 8)
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.read_bytes_per_token is None
    assert header.active_parameters is None
    assert header.parameters == 16384 + 2048 + 512 + 512


def deepseek(writer, *, heads_kv: int, mla: bool) -> None:
    writer.add("general.architecture", "str", "deepseek2")
    for key, value in (
        ("block_count", 3),
        ("embedding_length", 2048),
        ("attention.head_count", 16),
        ("attention.head_count_kv", heads_kv),
        ("attention.kv_lora_rank", 512),
        ("attention.key_length", 576 if mla else 192),
        ("attention.value_length", 512 if mla else 128),
        ("rope.dimension_count", 64),
    ):
        writer.add(f"deepseek2.{key}", "u32", value)
    if mla:
        writer.add("deepseek2.attention.key_length_mla", "u32", 192)


def test_latent_cache_holds_rank_and_rope_once(writer, tmp_path):
    deepseek(writer, heads_kv=1, mla=True)
    header = read_header(writer.write(tmp_path / "m.gguf"))
    assert header.kv_bytes_per_token_f16 == 3 * (512 + 64) * 2


def test_old_latent_conversion_is_cached_head_by_head(writer, tmp_path):
    deepseek(writer, heads_kv=16, mla=False)
    header = read_header(writer.write(tmp_path / "m.gguf"))
    assert header.kv_bytes_per_token_f16 == 3 * 16 * (192 + 128) * 2


def test_layers_that_only_draft_and_lookup_tables_are_not_read(llama, tmp_path):
    llama.add("llama.nextn_predict_layers", "u32", 1)
    llama.tensor("blk.0.attn_q.weight", (64, 64), F32, 16384)
    llama.tensor("blk.1.attn_q.weight", (64, 64), F32, 16384)
    llama.tensor("per_layer_token_embd.weight", (64, 64), F32, 16384)
    llama.tensor("output.weight", (64, 8), F32, 2048)
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.read_bytes_per_token == 16384 + 2048
    assert header.kv_bytes_per_token_f16 == 1 * 2 * 32 * 2


def test_quantization_is_the_file_type_or_the_dominant_type(llama, tmp_path):
    add_weights(llama, tied=True)
    assert read_header(llama.write(tmp_path / "m.gguf")).quantization == "F32"
    llama.add("general.file_type", "u32", 15)
    assert read_header(llama.write(tmp_path / "m.gguf")).quantization == "Q4_K_M"


def split(writer_class, tmp_path):
    first, second = writer_class(), writer_class()
    first.add("general.architecture", "str", "llama")
    first.add("llama.block_count", "u32", 1)
    first.add("split.no", "u32", 0)
    first.tensor("blk.0.attn_q.weight", (64, 64), F32, 16384)
    second.add("split.no", "u32", 1)
    second.tensor("output.weight", (64, 8), F32, 2048)
    return (
        first.write(tmp_path / "m-00001-of-00002.gguf"),
        second.write(tmp_path / "m-00002-of-00002.gguf"),
    )


def test_all_parts_of_a_split_file_are_read(writer, tmp_path):
    paths = split(type(writer), tmp_path)
    for path in paths:
        header = read_header(path)
        assert header.read_bytes_per_token == 16384 + 2048
        assert header.layers == 1
        assert header.file_bytes == sum(each.stat().st_size for each in paths)


def test_missing_part_leaves_sums_unknown(writer, tmp_path):
    first, second = split(type(writer), tmp_path)
    second.unlink()
    header = read_header(first)
    assert header.read_bytes_per_token is None
    assert header.parameters is None
    assert header.layers == 1
    first.unlink()
    with pytest.raises(InputError, match="no such file"):
        read_header(first)


def test_header_without_tensors_is_unknown_not_zero(llama, tmp_path):
    header = read_header(llama.write(tmp_path / "m.gguf"))
    assert header.parameters is None
    assert header.read_bytes_per_token is None
    assert header.quantization is None


def test_real_model_agrees_with_the_gguf_package():
    gguf = pytest.importorskip("gguf")
    real = os.environ.get("TWOSPEED_TEST_GGUF") or cached_model()
    if real is None:
        pytest.skip("the model is not in the cache")
    reader = gguf.GGUFReader(real)
    header = read_header(Path(real))
    # Tied: no output.weight, so that every tensor of this model is read.
    assert header.read_bytes_per_token == sum(int(t.n_bytes) for t in reader.tensors)
    assert header.parameters == sum(int(t.n_elements) for t in reader.tensors)
    assert header.active_parameters == sum(
        int(t.n_elements)
        for t in reader.tensors
        if len(t.shape) > 1 and t.name != "token_embd.weight"
    )
    assert header.kv_bytes_per_token_f16 == 30 * 3 * (64 + 64) * 2
    assert header.quantization == "Q4_1"
