"""Damaging files: bytes for any format, and tokens, numbers and members where the format is known."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable

from fusili_mir.scores.score_formats import DAMAGED_ARCHIVE

__all__ = ["MUTATORS", "mutate", "shrink"]

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_TAG = re.compile(rb"<[^<>]{1,200}>")
_NUMBERS = (b"0", b"-1", b"1e9", b"999999999", b"4294967296", b"1e308", b"nan", b"0.0000001", b"", b"1/0")
_TEXTS = (
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"&#0;",
    b"<!--",
    b"]]>",
    b"../../x",
    b"%n%n",
    b"\xf0\x9f\x8e\xb5",
)


def mutate(data: bytes, kind: str, rng: random.Random) -> bytes:
    """Damage a file in one to four ways that suit its kind: "bytes", "text", "xml" or "zip"."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = rng.choice(MUTATORS[kind])(data, rng)
    return data


def shrink(data: bytes, still_fails: Callable[[bytes], bool], most_tries: int = 200) -> bytes:
    """Leave out parts, ever smaller ones, as long as the rest still fails."""
    size, tries = len(data) // 2, 0
    while size >= 1 and tries < most_tries:
        start = 0
        while start < len(data) and tries < most_tries:
            tries += 1
            less = data[:start] + data[start + size :]
            if still_fails(less):
                data = less
            else:
                start += size
        size //= 2
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 8, 64))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice((0, 255, 127, rng.randrange(256)))
    return bytes(changed)


def _flip_start(data: bytes, rng: random.Random) -> bytes:
    """Damage the first bytes, where headers are."""
    head = min(len(data), 128)
    return _flip(data[:head], rng) + data[head:]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _remove(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randrange(1, 1 + max(1, len(data) // 8)) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    part = data[start : start + rng.randrange(1, 2000)]
    return data[:start] + part * rng.choice((2, 3, 50)) + data[start:]


def _insert(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(_TEXTS) + data[start:]


def _number(data: bytes, rng: random.Random) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.start()] + rng.choice(_NUMBERS) + data[chosen.end() :]


def _swap_tags(data: bytes, rng: random.Random) -> bytes:
    found = list(_TAG.finditer(data))
    if len(found) < 2:
        return data
    first, second = sorted(rng.sample(found, 2), key=lambda match: match.start())
    between = data[first.end() : second.start()]
    return data[: first.start()] + second[0] + between + first[0] + data[second.end() :]


def _remove_tag(data: bytes, rng: random.Random) -> bytes:
    found = list(_TAG.finditer(data))
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.start()] + data[chosen.end() :]


def _nest(data: bytes, rng: random.Random) -> bytes:
    found = list(_TAG.finditer(data))
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.end()] + chosen[0] * rng.choice((10, 1000)) + data[chosen.end() :]


def _members(data: bytes, rng: random.Random) -> bytes:
    """Damage a member of a zip archive, its name, or what is said of it, and pack it again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except DAMAGED_ARCHIVE:
        return _flip(data, rng)
    if not members:
        return data
    name = rng.choice(sorted(members))
    way = rng.randrange(4)
    if way == 0:
        members[name] = mutate(members[name], "xml", rng)
    elif way == 1:
        members[rng.choice(("../x.xml", "x" * 300, "\u266b.xml", "META-INF/container.xml"))] = members[name]
    elif way == 2:
        del members[name]
    else:
        members[name] = b"<score-partwise>" + b" " * rng.choice((10, 10_000_000))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return stream.getvalue()


_BYTES = (_flip, _flip_start, _truncate, _remove, _repeat)
_TEXT = (*_BYTES, _insert, _number, _number, _number)

MUTATORS: dict[str, tuple[Callable[[bytes, random.Random], bytes], ...]] = {
    "bytes": _BYTES,
    "text": _TEXT,
    "xml": (*_TEXT, _number, _swap_tags, _remove_tag, _nest),
    "zip": (*_BYTES, _members, _members),
}
"""Kind of file -> ways to damage it."""
