"""What may be said about the pitch of a recording."""

from typing import Any

import pytest

from fusili_mir.alignment.pitch_options import check_pitch
from fusili_mir.errors import InputError


def test_a_number_for_transpose_means_440_hz() -> None:
    assert check_pitch("auto", None) == (None, None)
    assert check_pitch("-2", None) == (-2.0, 440.0)
    assert check_pitch(0, "auto") == (0.0, None)
    assert check_pitch("auto", "415") == (None, 415.0)


@pytest.mark.parametrize(
    ("transpose", "tuning", "message"),
    [
        ("up", None, "transpose is 'up', expected auto or -24 to 24 semitones"),
        ("", None, "transpose is '', expected"),
        (None, None, "transpose is None, expected"),
        ([1], None, "transpose is .1., expected"),
        (True, None, "transpose is True, expected"),
        (30, None, "transpose is 30, expected auto or -24 to 24 semitones"),
        (float("nan"), None, "transpose is nan"),
        ("inf", None, "transpose is 'inf'"),
        ("auto", "baroque", "tuning is 'baroque', expected auto or 220 to 880 Hz for A"),
        ("auto", 41.5, "tuning is 41.5, expected auto or 220 to 880 Hz for A"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(transpose: Any, tuning: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_pitch(transpose, tuning)
