"""When the tokens of a Humdrum kern file begin, by the definition of Humdrum: a check of how scores are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["kern_onsets"]

_LENGTH = re.compile(r"(\d+)(?:%(\d+))?(\.*)")
_METER = re.compile(r"\*M(\d+)/(\d+)")


@dataclass
class _Spine:
    kind: str
    free: Fraction = Fraction(0)  # when its next token may begin, in quarters


def kern_onsets(text: str) -> dict[tuple[int, int], Fraction]:
    """Return the onsets of kern tokens in quarters, by line and field, both counted from 1.

    Tokens on one line begin together, when the last of their spines is free. Grace notes take no time, and a
    rest without a length lasts for a measure.

    >>> onsets = kern_onsets("**kern\\t**kern\\n4c\\t8e\\n.\\t8f\\n4d\\t4g\\n")
    >>> [(place, str(onset)) for place, onset in onsets.items()]
    [((2, 1), '0'), ((2, 2), '0'), ((3, 2), '1/2'), ((4, 1), '1'), ((4, 2), '1')]
    """
    onsets: dict[tuple[int, int], Fraction] = {}
    spines: list[_Spine] = []
    measure = Fraction(4)
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split("\t")
        if line.startswith("**"):
            spines = [_Spine(kind) for kind in fields]
        elif line.startswith("*"):
            meter = _METER.search(line)
            measure = Fraction(4 * int(meter[1]), int(meter[2])) if meter else measure
            spines = _steered(spines, fields)
        elif line[:1] not in ("", "!", "="):
            own = [
                (field, spine, token)
                for field, (spine, token) in enumerate(zip(spines, fields, strict=True), start=1)
                if spine.kind == "**kern"
            ]
            begun = [(field, spine, token) for field, spine, token in own if token != "."]
            if not begun:
                continue
            time = max(spine.free for _, spine, _ in begun)
            for field, spine, token in begun:
                onsets[number, field] = time
                spine.free = time + _length(token, measure)
            for _, spine, _ in own:
                spine.free = max(spine.free, time)
    return onsets


def _length(token: str, measure: Fraction) -> Fraction:
    """Return how long a token lasts, in quarters."""
    found = _LENGTH.search(token.split(" ")[0])
    if "q" in token:
        return Fraction(0)
    if found is None:
        return measure if "r" in token else Fraction(0)
    digits, divided, dots = found.groups()
    whole = Fraction(4) * 2 ** len(digits) if set(digits) == {"0"} else Fraction(4, int(digits))
    return whole * int(divided or 1) * (2 - Fraction(1, 2 ** len(dots)))


def _steered(spines: list[_Spine], fields: list[str]) -> list[_Spine]:
    """Return the spines after a line of interpretations, which may split, join, exchange or end them."""
    after: list[_Spine] = []
    index = 0
    while index < len(fields):
        spine, field = spines[index], fields[index]
        if field == "*v":
            last = index
            while last + 1 < len(fields) and fields[last + 1] == "*v" and spines[last + 1].kind == spine.kind:
                last += 1
            after.append(_Spine(spine.kind, max(each.free for each in spines[index : last + 1])))
            index = last
        elif field == "*x":
            after += [spines[index + 1], spine]
            index += 1
        elif field == "*^":
            after += [spine, _Spine(spine.kind, spine.free)]
        elif field == "*+":
            after += [spine, _Spine("", spine.free)]
        elif field.startswith("**"):
            after.append(_Spine(field, spine.free))
        elif field != "*-":
            after.append(spine)
        index += 1
    return after
