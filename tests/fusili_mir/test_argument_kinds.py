"""Arguments of a wrong kind are refused at once and in one line, by every public function and class."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import fusili_mir as fm
from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Float32, Table

MADE_BY_US = {
    *("Alignment", "Bundle", "Index", "IndexReport", "IndexedFile", "IndexedPiece", "Match", "Moment"),
    *("Pages", "PairReport", "PositionMaps", "Spot"),
}
"""What functions return, and nobody makes."""

public: Any = fm
"""For calls that type checkers refuse, too."""

CALLED = [
    name
    for name in fm.__all__
    if name not in MADE_BY_US | {"default_bundle"}
    and not (isinstance(getattr(fm, name), type) and issubclass(getattr(fm, name), Exception))
]


@pytest.mark.parametrize("name", CALLED)
def test_every_public_name_refuses_what_nobody_can_use(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    called = getattr(fm, name)
    parameters = inspect.signature(called).parameters.values()
    needed = [each for each in parameters if each.default is inspect.Parameter.empty] or list(parameters)[:1]
    with pytest.raises(fm.InputError) as refused:
        called(*(object() for _ in needed))
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: public.Encoder(3),
            "bundle is 3; expected the name of a file or folder or a Bundle (see load_bundle)",
        ),
        (lambda: public.Encoder("no-such"), "no-such: not found; expected a bundle"),
        (lambda: public.Encoder(batch_size="8"), "batch_size is '8'; expected a whole number"),
        (
            lambda: public.save_alignment("alignment.json", "out"),
            "alignment is 'alignment.json'; expected an Alignment (see align_recording)",
        ),
        (lambda: public.draw_overlay("scan.pdf", 0), "pages is 'scan.pdf'; expected Pages (see open_pages)"),
        (lambda: public.open_recording(None), "the recording is None; expected a file"),
        (lambda: public.render_pages({}), "found a dict, expected a score: a file"),
        (
            lambda: public.load_pages(object()),
            "images is an object; expected the name of",
        ),
        (lambda: public.AudioSamples([0.0, 0.5], 16_000), "samples is a list; expected an array"),
        (lambda: public.FrameGrid(10, "0.1"), "frame_sec is '0.1'; expected a number"),
        (
            lambda: public.EngravingOptions(font="Comic Sans"),
            "font is 'Comic Sans'; expected one of 'Leipzig', ",
        ),
        (lambda: public.align_many([], "out", jobs=2.5), "jobs is 2.5; expected a whole number"),
        (lambda: public.align_many([], "out", formats="html"), "formats is 'html'; expected a list of names"),
        (lambda: public.build_index([None], "out"), "paths hold None; expected names of files or folders"),
        (
            lambda: public.system_strip(np.zeros(3), 0, 8.0),
            "systems is an array of shape (3,); expected",
        ),
    ],
)
def test_what_was_given_and_what_was_expected_are_named(call: Any, message: str) -> None:
    with pytest.raises(fm.InputError) as refused:
        call()
    assert str(refused.value).startswith(message)


def test_a_model_is_named_by_its_folder_wherever_one_is_needed() -> None:
    folder = fm.default_bundle().folder
    assert fm.Encoder(folder).bundle == fm.Encoder(str(folder)).bundle == fm.Encoder().bundle


def test_a_sound_file_is_named_by_a_text_too() -> None:
    assert public.AudioFile("a.wav") == fm.AudioFile(Path("a.wav"))


@checked
def take(
    whole: int = 0,
    number: float = 0.0,
    file: str | Path | None = None,
    names: Sequence[str] = (),
    choice: Literal["a", "b"] = "a",
    span: tuple[float, float] | None = None,
    array: Float32 | None = None,
    table: Table | None = None,
    options: Mapping[str, str] | None = None,
    anything: Any = None,
) -> None:
    """Take one of each."""


@pytest.mark.parametrize(
    "given",
    [
        {"whole": np.int64(3), "number": np.float32(0.5), "file": Path("a"), "names": ["html", "json"]},
        {"number": 3, "file": "a", "names": ("html",), "choice": "b", "span": [0, 1.5]},
        {
            "array": np.zeros(3),
            "table": np.zeros(2, [("x", "f4")]),
            "options": {"a": "b"},
            "anything": object,
        },
        {"file": None, "span": None, "array": None, "number": np.array(2.0)},
    ],
)
def test_what_means_the_same_is_taken(given: dict[str, Any]) -> None:
    take(**given)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("whole", True, "whole is True; expected a whole number"),
        ("whole", 1.0, "whole is 1.0; expected a whole number"),
        ("number", "3", "number is '3'; expected a number"),
        ("file", b"a", "file is bytes; expected the name of a file or folder"),
        ("names", "html", "names is 'html'; expected a list of names"),
        ("names", [None], "names is a list with None; expected a list of names"),
        ("choice", "c", "choice is 'c'; expected one of 'a', 'b'"),
        ("span", (1.0,), "span is a tuple; expected 2 numbers"),
        ("span", (1.0, "2"), "span is a tuple with '2'; expected 2 numbers"),
        ("array", [1.0], "array is a list; expected an array"),
        ("table", np.zeros(3), "table is an array of shape (3,); expected a structured array"),
        ("options", ["a=b"], "options is a list; expected a dictionary"),
    ],
)
def test_what_does_not_fit_is_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(fm.InputError) as refused:
        take(**{name: value})
    assert str(refused.value) == message


def test_a_missing_argument_is_an_error_of_python_as_usual() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'filename'"):
        public.AudioFile()
