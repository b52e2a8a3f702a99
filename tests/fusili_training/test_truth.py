from __future__ import annotations

import json

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.truth import TRUTH_DTYPE, truth_from_json, truth_to_json


def test_truth_survives_json_up_to_its_rounding() -> None:
    row = ("n1", 60, 3, 1, 1.234, 2.0, 3.0, 4.0, 0.123456, 1.5, True)
    truth = np.array([row], dtype=TRUTH_DTYPE)
    again = truth_from_json(json.loads(json.dumps(truth_to_json(truth))))
    assert again["id"][0] == "n1"
    assert again[["pitch", "measure", "staff"]][0].item() == (60, 3, 1)
    assert again["x0"][0] == np.float32(1.23)
    assert again["onset_sec"][0] == 0.12346
    assert again["struck"][0]


def test_no_notes_are_an_empty_array() -> None:
    assert truth_from_json([]).shape == (0,)
    assert truth_from_json([]).dtype == TRUTH_DTYPE


def test_a_note_without_a_pitch_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="pitch"):
        truth_from_json([{"id": "n1"}])
