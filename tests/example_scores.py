"""Small MusicXML scores, put together by the tests that need them."""

from __future__ import annotations

from collections.abc import Sequence

ATTRIBUTES = (
    "<attributes><divisions>2</divisions><key><fifths>0</fifths></key>"
    "<time><beats>2</beats><beat-type>4</beat-type></time>{staves}{clefs}</attributes>"
)
TREBLE = "<clef number='{n}'><sign>G</sign><line>2</line></clef>"
BASS = "<clef number='{n}'><sign>F</sign><line>4</line></clef>"


def note(pitch: str, kind: str = "quarter", extra: str = "", note_id: str = "", staff: int = 1) -> str:
    """One note: pitch as "C5" or "F#4", kind as MusicXML's type; `extra` may hold chord, grace or tie marks."""
    divisions = {"eighth": 1, "quarter": 2, "half": 4}[kind]
    step, octave = pitch[0], pitch[-1]
    alter = {"#": "<alter>1</alter>", "b": "<alter>-1</alter>"}.get(pitch[1], "")
    grace = "<grace/>" in extra
    chord = "<chord/>" in extra
    tied = [kind for kind in ("stop", "start") if f"<tie type='{kind}'/>" in extra]
    identity = f" id='{note_id}'" if note_id else ""
    return (
        f"<note{identity}>"
        + ("<grace/>" if grace else "")
        + ("<chord/>" if chord else "")
        + f"<pitch><step>{step}</step>{alter}<octave>{octave}</octave></pitch>"
        + ("" if grace else f"<duration>{divisions}</duration>")
        + "".join(f"<tie type='{kind}'/>" for kind in tied)
        + f"<voice>{staff}</voice><type>{kind}</type><staff>{staff}</staff>"
        + (
            "<notations>" + "".join(f"<tied type='{kind}'/>" for kind in tied) + "</notations>"
            if tied
            else ""
        )
        + "</note>"
    )


def measure(content: str, number: int | str = 1, first: bool = False, n_staves: int = 1) -> str:
    """One measure; the first of a part carries key, time and clefs."""
    clefs = TREBLE.format(n=1) + (BASS.format(n=2) if n_staves == 2 else "")
    staves = f"<staves>{n_staves}</staves>" if n_staves > 1 else ""
    attributes = ATTRIBUTES.format(staves=staves, clefs=clefs) if first else ""
    return f"<measure number='{number}'>{attributes}{content}</measure>"


def score(*parts: Sequence[str]) -> str:
    """A whole score; each part is the sequence of its measures."""
    names = [f"P{number + 1}" for number in range(len(parts))]
    listed = "".join(f"<score-part id='{n}'><part-name>{n}</part-name></score-part>" for n in names)
    content = "".join(f"<part id='{n}'>{''.join(p)}</part>" for n, p in zip(names, parts, strict=True))
    return (
        "<?xml version='1.0' encoding='UTF-8'?>"
        f"<score-partwise version='4.0'><part-list>{listed}</part-list>{content}</score-partwise>"
    )


def melody(n_measures: int = 4) -> str:
    """One staff of quarter notes: C5 D5 | E5 F5 | C5 D5 | ..."""
    bars = [
        measure(note("CE"[i % 2] + "5") + note("DF"[i % 2] + "5"), i + 1, first=i == 0)
        for i in range(n_measures)
    ]
    return score(bars)


def piano(n_measures: int = 4) -> str:
    """Two staves, two notes each in a measure."""
    return score(_piano_bars(n_measures))


def song(n_measures: int = 4) -> str:
    """A voice above a piano: three staves in two parts."""
    voice = [measure(note("A4") + note("B4"), i + 1, first=i == 0) for i in range(n_measures)]
    return score(voice, _piano_bars(n_measures))


def _piano_bars(n_measures: int) -> list[str]:
    back = "<backup><duration>4</duration></backup>"
    return [
        measure(
            note("G5") + note("E5") + back + note("C3", staff=2) + note("D3", staff=2),
            i + 1,
            first=i == 0,
            n_staves=2,
        )
        for i in range(n_measures)
    ]


VOLTAS = score(
    [
        measure(note("G4"), "0", first=True).replace("<measure ", "<measure implicit='yes' "),
        measure(
            "<barline location='left'><repeat direction='forward'/></barline>"
            + note("D5", "eighth", "<grace/>")
            + note("C5", "half", "<tie type='start'/>"),
            1,
        ),
        measure(
            "<barline location='left'><ending number='1' type='start'/></barline>"
            + note("C5", extra="<tie type='stop'/>")
            + note("E5")
            + "<barline location='right'><ending number='1' type='stop'/>"
            + "<repeat direction='backward'/></barline>",
            2,
        ),
        measure(
            "<barline location='left'><ending number='2' type='start'/></barline>"
            + note("F5", "half")
            + "<barline location='right'><ending number='2' type='stop'/></barline>",
            3,
        ),
    ]
)
"""A pick-up G4 (p0n0); then, repeated: grace D5 (p0n1), C5 (p0n2) tied into the first ending C5 (p0n3) E5 (p0n4);
the second ending F5 (p0n5). In a `ScoreFile` they are n1 to n6."""
