"""Reading protobuf messages, such as ONNX files, without the packages for them.

A message is a list of fields (number, wire type, value), where wire type 2 stands for bytes, text, packed numbers
or a nested message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["BYTES", "VARINT", "Field", "fields_of", "varints_of"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """A field of a message.

    Attributes
    ----------
    number, wire_type : int
    value : int
        Value of a varint.
    start, stop : int
        First byte of the value, and the one after its last.
    """

    number: int
    wire_type: int
    value: int
    start: int
    stop: int


def fields_of(graph: bytes, start: int, stop: int) -> Iterator[Field]:
    """Yield the fields of the message between two bytes; a damaged one raises a ValueError."""
    place = start
    while place < stop:
        key, place = _varint(graph, place, stop)
        number, wire_type, value = key >> 3, key & 7, 0
        if wire_type == BYTES:
            length, place = _varint(graph, place, stop)
            end = place + length
        elif wire_type == VARINT:
            value, end = _varint(graph, place, stop)
        elif wire_type in (FIXED64, FIXED32):
            end = place + (8 if wire_type == FIXED64 else 4)
        else:
            raise ValueError(f"wire type {wire_type} at byte {place}")
        if end > stop or number == 0:
            raise ValueError(f"a damaged field at byte {place}")
        yield Field(number, wire_type, value, place, end)
        place = end


def varints_of(data: bytes) -> list[int]:
    """Return numbers that are packed one after the other."""
    values, place = [], 0
    while place < len(data):
        value, place = _varint(data, place, len(data))
        values.append(value)
    return values


def _varint(graph: bytes, place: int, stop: int) -> tuple[int, int]:
    """Return a number stored as 7 bits per byte, lowest first, and the place after it."""
    if place < stop and graph[place] < 0x80:  # most numbers have one byte
        return graph[place], place + 1
    value = 0
    for shift in range(0, 70, 7):
        if place >= stop:
            raise ValueError("truncated")
        byte = graph[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
    raise ValueError(f"an overlong number at byte {place}")
