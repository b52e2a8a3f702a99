from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_mir.untrusted_json import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=50)
@given(VALUES)
def test_what_json_can_say_is_read_as_it_is(value) -> None:
    try:
        text = json.dumps(value)
        text.encode()
    except UnicodeEncodeError:
        return
    assert parse_json(text, "a.json", "expected JSON") == value


@given(st.binary())
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes) -> None:
    said = ""
    try:
        parse_json(data, "a.json", "expected JSON")
    except InputError as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 64 + "]" * 64, None),
        ("[" * 65 + "]" * 65, "65 levels of nested JSON, expected at most 64"),
        ("[" * 100_000, "nested too deeply"),
        ('"\\ud834\\udd1e"', None),
        ('{"a": ["x\\ud800"]}', "holds half a character"),
        ('{"\\udfff": 1}', "holds half a character"),
    ],
)
def test_nesting_and_halves_of_characters_are_refused(text: str, said: str | None) -> None:
    if said is None:
        parse_json(text, "a.json", "expected JSON")
        return
    with pytest.raises(InputError, match=said):
        parse_json(text, "a.json", "expected JSON")
