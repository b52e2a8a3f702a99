"""Meter, key and clef as MEI states them: as attributes of a scoreDef or staffDef, or as elements in it."""

from __future__ import annotations

from lxml import etree
from partitura import score as ps

__all__ = ["read_clef", "read_key", "read_meter"]

_SYMBOLS = {"common": (4, 4), "cut": (2, 2)}
_LINES = {"G": 2, "F": 4, "C": 3}


def read_meter(definition: etree._Element, _staff: str = "") -> ps.TimeSignature | None:
    """Return the meter that a definition states, if it states one; "3+2" is 5."""
    sign = next(definition.iterchildren("{*}meterSig"), None)
    if sign is None:
        group = next(definition.iterchildren("{*}meterSigGrp"), None)
        sign = None if group is None else next(group.iterchildren("{*}meterSig"), None)
    prefix, source = ("meter.", definition) if sign is None else ("", sign)
    count, unit, symbol = (source.get(prefix + name, "") for name in ("count", "unit", "sym"))
    if unit.isdecimal() and all(part.strip().isdecimal() for part in count.split("+")):
        return ps.TimeSignature(sum(int(part) for part in count.split("+")), int(unit))
    return ps.TimeSignature(*_SYMBOLS[symbol]) if symbol in _SYMBOLS else None


def read_key(definition: etree._Element, _staff: str = "") -> ps.KeySignature | None:
    """Return the key signature that a definition states, if it states one."""
    sign = next(definition.iterchildren("{*}keySig"), None)
    if sign is not None:
        signature, mode = sign.get("sig", ""), sign.get("mode")
    else:
        signature = definition.get("keysig") or definition.get("key.sig") or ""
        mode = definition.get("key.mode")
    if signature == "0":
        return ps.KeySignature(0, mode)
    if not signature[:-1].isdecimal() or signature[-1] not in "sf":
        return None
    return ps.KeySignature(int(signature[:-1]) * (1 if signature[-1] == "s" else -1), mode)


def read_clef(definition: etree._Element, staff: str) -> ps.Clef | None:
    """Return the clef that a definition states, or that a clef element is."""
    inner = next(definition.iterchildren("{*}clef"), None)
    if str(definition.tag).endswith("}clef"):
        prefix, source = "", definition
    else:
        prefix, source = ("clef.", definition) if inner is None else ("", inner)
    shape, line, octaves, place = (
        source.get(prefix + name, "") for name in ("shape", "line", "dis", "dis.place")
    )
    if shape not in ("G", "F", "C", "GG") or source.get("sameas"):
        return None
    change = (int(octaves) // 7 if octaves.isdecimal() else 0) * (-1 if place == "below" else 1) - (
        shape == "GG"
    )
    number = int(staff) if staff.isdecimal() else 1
    return ps.Clef(number, shape[0], int(line) if line.isdecimal() else _LINES[shape[0]], change)
