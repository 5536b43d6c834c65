"""Hostile, cut and odd GGUF files are refused quickly, in words."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twospeed.limits.ggml_types import FILE_TYPES, TENSOR_TYPES
from twospeed.limits.gguf_file import read_gguf, tensor_bytes
from twospeed.records.errors import InputError


def refused(path, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read_gguf(path)


def test_scalars_short_arrays_and_short_texts_are_kept(writer, tmp_path):
    writer.add("a", "u8", 7)
    writer.add("b", "u64", 1 << 40)
    writer.add("c", "f32", 0.5)
    writer.add("d", "bool", value=True)
    writer.add("e", "str", "word")
    writer.add("f", "u32[]", [3, 1, 2])
    file = read_gguf(writer.write(tmp_path / "m.gguf"))
    assert file.metadata == {
        "a": 7,
        "b": 1 << 40,
        "c": 0.5,
        "d": True,
        "e": "word",
        "f": (3, 1, 2),
    }


def test_long_texts_and_arrays_are_stepped_over(writer, tmp_path):
    writer.add("long text", "str", "x" * 5000)
    writer.add("vocabulary", "strs", ["token", "", "é"] * 100)
    writer.add("long array", "u32[]", range(5000))
    nested = struct.pack("<IIQ", 9, 9, 2) + struct.pack("<IQI", 4, 1, 9) * 2
    writer.add("nested", "raw", nested)
    writer.add("after", "u32", 5)
    assert read_gguf(writer.write(tmp_path / "m.gguf")).metadata == {"after": 5}


def test_version_2_is_read_and_others_are_refused(writer, tmp_path):
    writer.version = 2
    assert read_gguf(writer.write(tmp_path / "m.gguf")).metadata == {}
    writer.version = 1
    refused(writer.write(tmp_path / "m.gguf"), "version 1")
    writer.version = 4
    refused(writer.write(tmp_path / "m.gguf"), "version 4")


def test_big_endian_is_named(writer, tmp_path):
    writer.version = 3 << 24
    refused(writer.write(tmp_path / "m.gguf"), "big-endian")


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "page.gguf"
    path.write_text("<html>", encoding="utf-8")
    refused(path, "does not begin with GGUF")
    path.write_bytes(b"")
    refused(path, "ends inside its header")
    refused(tmp_path / "absent.gguf", "No such file")
    refused(tmp_path, "Cannot read")


@pytest.mark.parametrize("count", [1 << 60, (1 << 64) - 1, 1 << 20])
def test_huge_counts_are_refused(writer, tmp_path, count):
    writer.metadata_count = count
    refused(writer.write(tmp_path / "m.gguf"), "metadata entries")
    writer.metadata_count = None
    writer.tensor_count = count
    refused(writer.write(tmp_path / "t.gguf"), "tensors")


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (struct.pack("<IQ", 8, 1 << 60), "ends inside"),
        (struct.pack("<IIQ", 9, 8, 1 << 60), "claims an array"),
        (struct.pack("<IIQ", 9, 4, 1 << 62), "ends inside"),
        (struct.pack("<IIQ", 9, 4, 1 << 5), "ends inside"),
        (struct.pack("<IIQ", 9, 9, 1 << 60), "claims an array"),
        (struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 40, "nests arrays"),
        (struct.pack("<I", 99), "unknown type 99"),
        (struct.pack("<IIQ", 9, 99, 1), "array of unknown type 99"),
    ],
)
def test_hostile_values_are_refused(writer, tmp_path, value, match):
    writer.add("evil", "raw", value)
    refused(writer.write(tmp_path / "m.gguf"), match)


def test_many_empty_texts_do_not_take_for_ever(tmp_path):
    """A sparse file makes any count plausible: the number of steps is bounded all the same."""
    path = tmp_path / "sparse.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    head += struct.pack("<Q1sIIQ", 1, b"k", 9, 8, 1 << 30)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(1 << 34)
    refused(path, "claims an array of 1073741824")


def test_long_names_and_many_dimensions_are_refused(writer, tmp_path):
    writer.tensor("t", (1,) * 9, 0, 4)
    refused(writer.write(tmp_path / "m.gguf"), "9 dimensions")
    path = tmp_path / "n.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 40) + b"\0" * 64)
    refused(path, "name of 1099511627776 bytes")


def test_tensors_beyond_the_file_are_refused(writer, tmp_path):
    writer.tensor("blk.0.w", (64, 64), 0, 64)
    refused(writer.write(tmp_path / "m.gguf"), "ends before its tensor 'blk.0.w' does")


def test_overlapping_tensors_are_refused(writer, tmp_path):
    for name in "abc":
        writer.tensor(name, (32,), 0, 128)
    header = writer.header().replace(struct.pack("<IQ", 0, 256), struct.pack("<IQ", 0, 0))
    header = header.replace(struct.pack("<IQ", 0, 128), struct.pack("<IQ", 0, 0))
    path = tmp_path / "m.gguf"
    path.write_bytes(header + b"\0" * (-len(header) % 32 + 256))
    refused(path, "overlap")


def test_unknown_type_takes_its_size_from_the_offsets(writer, tmp_path):
    writer.tensor("a", (256,), 42, 96)
    writer.tensor("b", (16,), 0, 64)
    writer.tensor("c", (256,), 777, 160)
    file = read_gguf(writer.write(tmp_path / "m.gguf"))
    assert [tensor.size_bytes for tensor in file.tensors] == [96, 64, 160]


def test_unknown_type_cannot_claim_weights_without_bytes(writer, tmp_path):
    writer.tensor("a", (1 << 62, 1 << 62), 777, 32)
    refused(writer.write(tmp_path / "m.gguf"), "less than one bit")


def test_impossible_alignment_is_refused(writer, tmp_path):
    writer.add("general.alignment", "u32", 0)
    refused(writer.write(tmp_path / "m.gguf"), "alignment")


def outcome(path) -> str:
    try:
        return str(read_gguf(path).file_bytes)
    except InputError as error:
        return error.what


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 400), where=st.integers(0, 400), byte=st.integers(0, 255))
def test_damaged_files_give_an_answer_or_an_input_error(llama, tmp_path, cut, where, byte):
    """Any cut and any single changed byte is either read or refused, never anything else."""
    if not llama.tensors:
        llama.tensor("token_embd.weight", (64, 10), 2, 360)
        llama.tensor("blk.0.attn_norm.weight", (64,), 0, 256)
    path = llama.write(tmp_path / "m.gguf")
    data = bytearray(path.read_bytes())
    data[where % len(data)] = byte
    path.write_bytes(data[: len(data) - cut])
    said = outcome(path)
    assert said == str(len(data) - cut) or str(path) in said


def test_block_sizes_agree_with_the_gguf_package():
    gguf = pytest.importorskip("gguf")
    known = {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    ours = {
        type_id: (kind.block_weights, kind.block_bytes) for type_id, kind in TENSOR_TYPES.items()
    }
    shared = known.keys() & ours.keys()
    assert len(shared) > 30
    assert {key: ours[key] for key in shared} == {key: known[key] for key in shared}
    names = {int(kind): kind.name.removeprefix("MOSTLY_") for kind in gguf.LlamaFileType}
    assert all(
        names.get(key, name).removeprefix("ALL_") == name for key, name in FILE_TYPES.items()
    )


def test_tensor_bytes_rounds_up_to_whole_blocks():
    assert tensor_bytes(2, 64) == 36
    assert tensor_bytes(2, 65) == 54
    assert tensor_bytes(777, 64) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    refused(tmp_path / "pipe.gguf", "not a regular file")


def test_a_folder_is_refused(tmp_path):
    refused(tmp_path, "not a regular file")


@pytest.mark.parametrize("name", ["a\0b", "half \ud800.gguf"])
def test_what_no_file_can_be_called_is_refused_and_not_a_fault_of_ours(tmp_path, name):
    refused(Path(tmp_path / name), "Cannot read")
