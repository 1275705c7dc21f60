"""The arrays that a file in ONNX form holds, read without onnxruntime.

The form is a protocol buffer: a message is a row of fields, each a number that says which field it is and
how it is written, then its value. Only what weights need is read:
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

GRAPH: Final = 7  # of a model
TENSOR: Final = 5  # of a graph
SHAPE, KIND, NAME, BYTES = 1, 2, 8, 9  # of a tensor
KINDS: Final[Mapping[int, np.dtype[Any]]] = {1: np.dtype("<f4"), 3: np.dtype("i1")}
SEVEN_BITS: Final = 0x7F
VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5


def arrays_of(file: Path) -> Mapping[str, npt.NDArray[Any]]:
    """All arrays of 32-bit floats and of signed bytes, by their names; views into the bytes that were read.

    Args:
        file: One that is known to be whole, such as by its SHA-256: nothing here is checked.
    """
    found = {}
    for field, graph in _fields(memoryview(file.read_bytes())):
        if field != GRAPH:
            continue
        for part, tensor in _fields(graph):
            if part != TENSOR:
                continue
            shape = [value for name, value in _fields(tensor) if name == SHAPE]
            said = dict(_fields(tensor))
            kind = KINDS.get(said[KIND])
            if kind is not None and BYTES in said:
                found[str(said[NAME], "utf-8")] = np.frombuffer(said[BYTES], kind).reshape(shape)
    return found


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Each field's number, and its value: a number, or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        field, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = _varint(message, at)
            yield field, value
            continue
        length = {EIGHT_BYTES: 8, FOUR_BYTES: 4}.get(wire)
        if length is None:
            length, at = _varint(message, at)
        yield field, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Read a variable-length integer (seven bits a byte, lowest first); also returns the next position."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & SEVEN_BITS) << shift
        at, shift = at + 1, shift + 7
        if byte <= SEVEN_BITS:
            return number, at
