"""General MIDI programs for the parts of a score, where their names are clear."""

from __future__ import annotations

import re

__all__ = ["midi_program"]

_PIANO = 0
_PROGRAMS = {
    # Names in English, German, French and Italian, as they begin; earlier ones win.
    6: "harpsichord cembalo clavicembalo clavecin",
    8: "celest",
    9: "glockenspiel",
    11: "vibraphon",
    12: "marimba",
    13: "xylophon",
    14: "tubular",
    19: "organ orgel orgue",
    21: "accord akkordeon",
    33: "bass_guitar electric_bass",
    24: "guitar gitarre guitare chitarra lute laute",
    46: "harp harfe arpa",
    47: "timpani pauken kettledrum",
    64: "soprano_sax sopransax",
    66: "tenor_sax tenorsax",
    67: "baritone_sax baritonsax",
    65: "sax alto_sax altsax",
    72: "piccolo ottavino",
    74: "recorder blockfl flauto_dolce",
    73: "flute flöte flote flauto flûte querfl traverso",
    69: "english_horn englischhorn cor_anglais corno_inglese",
    68: "oboe hautbois",
    71: "clarinet klarinette clarinette clarinetto bass_clarinet bassklarinette",
    70: "bassoon fagott basson fagotto contrabassoon kontrafagott",
    56: "trumpet trompete trompette tromba cornet kornett",
    57: "trombon posaune",
    58: "tuba",
    60: "horn corno corni cor_ waldhorn french_horn",
    40: "violin violon_ geige",
    41: "viola bratsche alto_viola",
    42: "cello violoncell",
    43: "contrabass kontrabass double_bass contrebasse contrabbasso violone",
    48: "strings streicher archi",
    52: (
        "voice voix voce vocal singstimme gesang canto chant choir chor coro chorus soprano sopran mezzo alto "
        "alt contralto tenor tenore ténor baritone bariton basso bass basse"
    ),
    _PIANO: "piano klavier pianoforte fortepiano clavier flügel",
}


def midi_program(name: str | None) -> int:
    """Return the General MIDI program of a part, from 0; that of a piano if its name is not clear.

    >>> [midi_program(name) for name in ("Violoncello", "2 Flöten", "Gesang / Voice", "Piano", "?", None)]
    [42, 73, 52, 0, 0, 0]
    """
    words = re.findall(r"[^\W\d_]+", (name or "").lower())
    text = "_".join(words) + "_"
    for program, beginnings in _PROGRAMS.items():
        for beginning in beginnings.split():
            if text.startswith(beginning) or f"_{beginning}" in text:
                return program
    return _PIANO
