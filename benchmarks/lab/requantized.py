"""The engine's own model once more in a larger number format: the same weights, more bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize, quantize

KINDS = {"F16": GGMLQuantizationType.F16, "Q8_0": GGMLQuantizationType.Q8_0}
WRITTEN_ANEW = ("GGUF.", "general.architecture", "general.file_type")


def requantized(source: Path, kind: str, folder: Path) -> Path:
    """The model with its matrices in this format; vectors stay as they are.

    Args:
        source: a GGUF file.
        kind: "F16" or "Q8_0".
        folder: where it is written, unless it is there already.
    """
    target = folder / f"{source.stem}.{kind}.gguf"
    if target.exists():
        return target
    reader = GGUFReader(source)
    partial = target.with_suffix(".partial")
    architecture = reader.fields["general.architecture"].contents()
    writer = GGUFWriter(partial, architecture)
    for field in reader.fields.values():
        if not field.name.startswith(WRITTEN_ANEW):
            of = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], of)
    wanted = KINDS[kind]
    for tensor in reader.tensors:
        plain = dequantize(tensor.data, tensor.tensor_type)
        if plain.ndim < 2:
            writer.add_tensor(tensor.name, plain.astype(np.float32))
        else:
            writer.add_tensor(tensor.name, quantize(plain, wanted), raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return partial.rename(target)


if __name__ == "__main__":
    print(requantized(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
