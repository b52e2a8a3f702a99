"""Numbers that no score has and that would cost gigabytes or minutes: refused before anything is made of them."""

from __future__ import annotations

from collections import Counter

from lxml import etree

from fusili_mir.errors import InputError

__all__ = ["check_score_numbers"]

MOST_NOTES = 500_000
"""Mahler's Eighth in full score has about 200,000."""

MOST_MEASURES = 20_000
"""Of all parts together it is parts x measures that count; of one part, the longest operas have under 10,000."""

MOST_QUARTERS = 4096.0
"""Length of one note, rest or step: a measure of senza misura by Satie or Ives stays far below."""

_MOST = {
    # MusicXML
    "staves": 64,  # of one part; an organ has 3
    "staff-lines": 32,
    "divisions": 10_000_000,  # programs write up to 1,000,000
    "multiple-rest": 10_000,
    "measure-repeat": 10_000,
    "actual-notes": 10_000,
    "normal-notes": 10_000,
    "tremolo": 64,
}
_MOST_IN_MEI = {
    "lines": 32,
    "num": 10_000,  # measures of a rest, notes of a tuplet
    "numbase": 10_000,
    "dots": 16,
    "meter.count": 100_000,
    "meter.unit": 100_000,
    "ppq": 10_000_000,
    "dur.ppq": 1_000_000_000,
}
_MOST_STAFF_NUMBER = 999


def check_score_numbers(root: etree._Element, filename: str) -> None:
    """Refuse a score with more notes or measures than there are, or with numbers out of all proportion.

    Parameters
    ----------
    root : etree._Element
        MusicXML (partwise or timewise) or MEI.
    filename : str
        For the message.
    """
    counts: Counter[str] = Counter()
    divisions = 1.0
    for element in root.iter(etree.Element):
        name = etree.QName(element).localname
        counts[name] += 1
        if name in _MOST:
            _check(filename, f"<{name}>", element.text, _MOST[name])
        if name == "divisions":
            divisions = max(_number(element.text), 1e-9)
        elif name == "duration" and _number(element.text) / divisions > MOST_QUARTERS:
            raise InputError(
                f"{filename}: a <duration> of {_short(element.text)} at {divisions:g} divisions, expected at "
                f"most {MOST_QUARTERS:g} quarter notes; is the file damaged?"
            )
        elif name == "staff" and not len(element):
            _check(filename, "<staff>", element.text, _MOST["staves"])
        for attribute, most in _MOST_IN_MEI.items():
            if attribute in element.attrib:
                _check(filename, f"{name}/@{attribute}", element.get(attribute), most)
        if name in ("staff", "staffDef", "layer"):
            _check(filename, f"{name}/@n", element.get("n"), _MOST_STAFF_NUMBER)
    for name, most in (("note", MOST_NOTES), ("measure", MOST_MEASURES)):
        n_parts = max(1, counts["part"]) if name == "measure" else 1
        if counts[name] / n_parts > most:
            raise InputError(f"{filename}: {counts[name]} <{name}>, expected at most {most * n_parts}")


def _check(filename: str, where: str, text: str | None, most: float) -> None:
    if abs(_number(text)) > most:
        raise InputError(
            f"{filename}: {where} is {_short(text)}, expected at most {most:g}; is the file damaged?"
        )


def _number(text: str | None) -> float:
    """Return the number that a text is; 0 if it is none, which others complain of."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def _short(text: str | None) -> str:
    return (text or "").strip()[:20]
