from __future__ import annotations

import itertools

import example_scores
import numpy as np
from lxml import etree

from fusili_training.notation.fingerings import FingeringStyle, write_fingerings

EVERYTHING = FingeringStyle(share=1.0, run=1.0, all_heads=1.0)


def _digits(score: etree._Element) -> list[int]:
    return [int(str(element.text)) for element in score.iter("fingering")]


def _fingered(score: str, style: FingeringStyle = EVERYTHING, seed: int = 0) -> etree._Element:
    return write_fingerings(etree.fromstring(score.encode()), style, np.random.default_rng(seed))


def _bar(*notes: str) -> str:
    return example_scores.score([example_scores.measure("".join(notes), first=True)])


def test_a_copy_is_fingered_and_the_score_is_left_alone() -> None:
    score = etree.fromstring(example_scores.piano(4).encode())
    before = etree.tostring(score)
    fingered = write_fingerings(score, EVERYTHING, np.random.default_rng(0))
    assert etree.tostring(score) == before
    for element in list(fingered.iter("notations")):
        parent = element.getparent()
        assert parent is not None
        parent.remove(element)
    assert etree.tostring(fingered) == before  # and nothing but fingerings was added


def test_every_note_has_a_digit_from_1_to_5_where_all_are_fingered() -> None:
    fingered = _fingered(example_scores.piano(8))
    assert len(_digits(fingered)) == len(list(fingered.iter("note")))
    assert set(_digits(fingered)) <= {1, 2, 3, 4, 5}


def test_the_right_hand_is_fingered_above_its_staff_and_the_left_below() -> None:
    for note in _fingered(example_scores.piano(4)).iter("note"):
        mark = note.find("notations/technical/fingering")
        assert mark is not None
        assert mark.get("placement") == ("above" if note.findtext("staff") == "1" else "below")


def test_a_rising_line_is_played_by_one_finger_after_the_other_and_then_the_thumb() -> None:
    rising = [example_scores.note(f"{step}5", "eighth") for step in "CDEFGAB"]
    digits = _digits(_fingered(_bar(*rising)))
    assert all(after == before % 5 + 1 for before, after in itertools.pairwise(digits))


def test_higher_heads_of_a_chord_have_higher_fingers_in_the_right_hand() -> None:
    chord = example_scores.note("C5"), *(example_scores.note(p, extra="<chord/>") for p in ("E5", "G5"))
    for seed in range(10):
        digits = _digits(_fingered(_bar(*chord), seed=seed))
        assert digits == sorted(set(digits))
        assert len(digits) == 3


def test_grace_notes_and_the_ends_of_ties_have_no_digits() -> None:
    fingered = _fingered(
        _bar(
            example_scores.note("C5", extra="<grace/>", note_id="grace"),
            example_scores.note("D5", extra="<tie type='start'/>", note_id="struck"),
            example_scores.note("D5", extra="<tie type='stop'/>", note_id="held"),
        )
    )
    with_digits = [note.get("id") for note in fingered.iter("note") if note.find(".//fingering") is not None]
    assert with_digits == ["struck"]


def test_voices_with_words_and_notes_with_fingerings_stay_as_they_are() -> None:
    words = "<lyric><text>la</text></lyric></note>"
    sung = _bar(example_scores.note("C5")).replace("</note>", words)
    own = "<notations><technical><fingering>4</fingering></technical></notations></note>"
    assert _digits(_fingered(sung)) == []
    assert _digits(_fingered(_bar(example_scores.note("C5")).replace("</note>", own))) == [4]


def test_about_the_share_of_the_style_is_fingered_the_same_way_for_the_same_seed() -> None:
    style = FingeringStyle(share=0.3, run=2.0, all_heads=1.0)
    first, again = (_digits(_fingered(example_scores.melody(500), style, seed=5)) for _ in range(2))
    assert first == again
    assert 0.2 < len(first) / 1000 < 0.4
