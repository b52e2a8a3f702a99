from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from example_scores import melody, piano
from onnx import TensorProto, helper, numpy_helper

from fusili_mir.arrays import Float32
from fusili_mir.boxes import STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import FusiliError
from fusili_mir.hearing.note_reading import (
    ALTERATIONS,
    LOWEST_MIDDLE,
    N_MIDDLES,
    N_ROWS,
    READING_INPUT,
    READING_OUTPUTS,
    ReadStaff,
    ReadStrips,
    pitches_on_axis,
)
from fusili_mir.model.bundle import default_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import PageImages, Pages, load_pages, render_pages
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis
from fusili_mir.sessions.graph_session import open_session

TREBLE, BASS = 34 - LOWEST_MIDDLE, 22 - LOWEST_MIDDLE  # the middle line is B4, D3


def staff(heads: list[tuple[int, int, int]], middle: int, n_columns: int = 4) -> ReadStaff:
    """One staff with heads (column, steps above the middle line, alteration) that are read for certain."""
    struck = np.zeros((1, n_columns, N_ROWS), np.float32)
    middles = np.zeros((1, n_columns, N_MIDDLES), np.float32)
    alterations = np.zeros((1, n_columns, N_ROWS, len(ALTERATIONS)), np.float32)
    middles[0, :, middle] = 1
    alterations[..., ALTERATIONS.index(0)] = 1
    for column, above, alteration in heads:
        struck[0, column, N_ROWS // 2 - above] = 1
        alterations[0, column, N_ROWS // 2 - above] = np.array(ALTERATIONS) == alteration
    return ReadStaff(struck, middles, alterations)


def names(read: ReadStaff) -> list[tuple[int, int]]:
    return [(int(column), int(pitch) + 21) for column, pitch in np.argwhere(read.pitches() > 0.5)]


@pytest.mark.parametrize(
    ("above", "alteration", "middle", "midi_pitch"),
    [
        (0, 0, TREBLE, 71),  # B4
        (0, -1, TREBLE, 70),
        (-6, 0, TREBLE, 60),  # C4, the first ledger line below
        (1, 1, TREBLE, 73),  # C sharp 5
        (0, 0, BASS, 50),  # D3
        (6, 0, BASS, 60),  # C4, the first ledger line above
        (-5, 2, BASS, 43),  # F double sharp 2
    ],
)
def test_a_head_has_the_pitch_that_row_clef_and_sign_say(
    above: int, alteration: int, middle: int, midi_pitch: int
) -> None:
    assert names(staff([(2, above, alteration)], middle)) == [(2, midi_pitch)]


def test_pitches_beyond_the_piano_are_left_out() -> None:
    assert names(staff([(0, 16, 0)], N_MIDDLES - 1)) == []


def test_a_clef_that_is_not_certain_gives_both_pitches_their_share() -> None:
    read = staff([(1, 0, 0)], TREBLE)
    read.middles[0, :, TREBLE], read.middles[0, :, BASS] = 0.75, 0.25
    pitches = read.pitches()
    assert pitches[1, 71 - 21] == pytest.approx(0.75)
    assert pitches[1, 50 - 21] == pytest.approx(0.25)
    assert pitches.sum() == pytest.approx(1.0)


def test_a_pitch_on_two_staves_is_missing_only_if_it_is_missing_on_both() -> None:
    upper, lower = staff([(0, -6, 0)], TREBLE), staff([(0, 6, 0)], BASS)
    upper.struck[:], lower.struck[:] = 0.5 * upper.struck, 0.8 * lower.struck
    both = ReadStaff(
        np.concatenate((upper.struck, lower.struck)),
        np.concatenate((upper.middles, lower.middles)),
        np.concatenate((upper.alterations, lower.alterations)),
    )
    assert both.pitches()[0, 60 - 21] == pytest.approx(1 - 0.5 * 0.2)


def test_a_head_that_is_tied_to_the_one_before_begins_nothing() -> None:
    heads = np.full((1, 1, N_ROWS), 9.0, np.float32)
    struck = np.full((1, 1, N_ROWS), -9.0, np.float32)
    middles, alterations = np.zeros((1, 1, N_MIDDLES)), np.zeros((1, 1, N_ROWS, len(ALTERATIONS)))
    read = ReadStaff.from_logits(heads, struck, middles.astype(np.float32), alterations.astype(np.float32))
    assert read.struck.max() < 1e-3
    assert read.middles[0, 0] == pytest.approx(1 / N_MIDDLES)


def ink_graph() -> bytes:
    """A head, 20 * (ink - 0.5) logits, in each cell by the share of ink in it; always a treble clef, no signs."""
    kernel = np.full((1, 1, 4, 4), 1 / 16, np.float32)
    middles = np.full((1, 1, N_MIDDLES), -30.0, np.float32)
    middles[..., TREBLE] = 30.0
    signs = np.full((1, 1, 1, len(ALTERATIONS)), -30.0, np.float32)
    signs[..., ALTERATIONS.index(0)] = 30.0
    constants: dict[str, np.ndarray] = {
        "kernel": kernel,
        "channel": np.array([1], np.int64),
        "last": np.array([3], np.int64),
        "half": np.array(0.5, np.float32),
        "slope": np.array(20.0, np.float32),
        "none": np.array(0.0, np.float32),
        "one": np.array(1.0, np.float32),
        "sure": np.array(30.0, np.float32),
        "treble": middles,
        "natural": signs,
        "row": np.array([2], np.int64),
    }
    nodes = [
        helper.make_node("Sub", ["one", "strips"], ["ink"]),
        helper.make_node("Unsqueeze", ["ink", "channel"], ["image"]),
        helper.make_node("Conv", ["image", "kernel"], ["shares"], strides=[4, 4], pads=[2, 0, 2, 0]),
        helper.make_node("Squeeze", ["shares", "channel"], ["grid"]),  # (B, 33, C)
        helper.make_node("Transpose", ["grid"], ["cells"], perm=[0, 2, 1]),
        helper.make_node("Sub", ["cells", "half"], ["over"]),
        helper.make_node("Mul", ["over", "slope"], ["heads"]),
        helper.make_node("Mul", ["cells", "none"], ["nothing"]),
        helper.make_node("Add", ["nothing", "sure"], ["struck"]),
        helper.make_node("ReduceSum", ["nothing", "row"], ["column"], keepdims=1),
        helper.make_node("Add", ["column", "treble"], ["middles"]),
        helper.make_node("Unsqueeze", ["nothing", "last"], ["blank"]),
        helper.make_node("Add", ["blank", "natural"], ["alterations"]),
    ]
    outputs: dict[str, list[str | int | None]] = {
        "heads": ["b", "c", N_ROWS],
        "struck": ["b", "c", N_ROWS],
        "middles": ["b", "c", N_MIDDLES],
        "alterations": ["b", "c", N_ROWS, len(ALTERATIONS)],
    }
    graph = helper.make_graph(
        nodes,
        "ink",
        [helper.make_tensor_value_info("strips", TensorProto.FLOAT, ["b", 128, "w"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Drawn:
    """A page of 400 x 200 pixels with one head on the second line from below of a staff with 10 px a space."""

    def read(self) -> np.ndarray:
        page = np.full((200, 400), 255, np.uint8)
        page[105:115, 200:210] = 0  # around y = 110: 2 steps below the middle line, at y = 100
        return page


def drawn_pages() -> Pages:
    systems = np.array([(0, 0, 1, 50, 80, 350, 120, 10)], SYSTEM_DTYPE)
    staves = np.array([(0, 0, 0, 50, 80, 350, 120, 10)], STAFF_DTYPE)
    return Pages("drawn", PageImages([_Drawn()]), systems, staves)


def axis_of(column_px: float) -> ScoreAxis:
    """Columns of some width on the page over the system, from x = 50 to 350."""
    edges = np.arange(50.0, 350.0 + column_px / 2, column_px)
    columns = np.zeros(len(edges) - 1, COLUMN_DTYPE)
    columns["x0"], columns["x1"], columns["y0"], columns["y1"] = edges[:-1], edges[1:], 80, 120
    return ScoreAxis(columns)


@pytest.mark.parametrize("column_px", [5.0, 10.0, 2.5])  # those of the reader have 5 px
def test_notes_are_read_at_their_place_on_any_axis(column_px: float) -> None:
    axis = axis_of(column_px)
    pitches = pitches_on_axis(reading_with(ink_graph()), drawn_pages(), axis)
    column, pitch = np.unravel_index(pitches.argmax(), pitches.shape)
    assert int(pitch) + 21 == 67  # G4
    begin, end = axis.columns["x0"][column], axis.columns["x1"][column]
    assert begin < 210  # the head reaches from 200 to 210
    assert end > 200
    far = np.abs(axis.columns["x0"] - 205) > 20
    assert pitches[far].max() < 0.01


def reading_with(graph: bytes) -> ReadStrips:
    session = open_session(graph, "cpu", 1)
    return lambda strips: session.run(READING_INPUT, strips, list(READING_OUTPUTS))


def test_columns_beyond_what_is_read_show_nothing() -> None:
    axis = axis_of(5.0)
    longer = axis.columns[-1:].copy()
    longer["x0"], longer["x1"] = 350.0, 700.0
    pitches = pitches_on_axis(
        reading_with(ink_graph()), drawn_pages(), ScoreAxis(np.append(axis.columns, longer))
    )
    assert not pitches[-1].any()


def test_strips_of_many_staves_are_read_a_few_at_a_time() -> None:
    pages = drawn_pages()
    staves = np.repeat(pages.staves, 40)
    staves["staff"], staves["x1"] = np.arange(40), 3000
    systems = pages.systems.copy()
    systems["n_staves"], systems["x1"] = 40, 3000
    read, sizes = reading_with(ink_graph()), []

    def counted(strips: Float32) -> list[Float32]:
        sizes.append(strips.shape)
        return read(strips)

    pitches_on_axis(counted, replace(pages, systems=systems, staves=staves), axis_of(5.0))
    assert sum(size[0] for size in sizes) == 40
    assert max(size[0] * size[2] for size in sizes) <= 4096 * 4


def test_systems_that_are_read_at_once_are_read_as_one_after_another(tmp_path: Path) -> None:
    (tmp_path / "a.musicxml").write_text(melody(40))
    pages = replace(render_pages(tmp_path / "a.musicxml"), score=None)
    assert len(pages.systems) > 3
    alone, together = (Encoder(default_bundle(), "cpu", n).encode_pages(pages).pitches for n in (1, 3))
    assert alone is not None
    assert together is not None
    assert np.array_equal(alone, together)


def test_a_device_on_which_the_network_fails_is_said() -> None:
    def broken(strips: Float32) -> list[Float32]:
        return [np.full_like(output, np.nan) for output in reading_with(ink_graph())(strips)]

    with pytest.raises(FusiliError, match="the network that reads notes fails on this device; choose cpu"):
        pitches_on_axis(broken, drawn_pages(), axis_of(5.0))


def test_pitches_of_symbolic_scores_are_known_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "melody.musicxml").write_text(melody(2))
    encoder = Encoder(default_bundle(), "cpu", 1)
    assert encoder.encode_pages(render_pages(tmp_path / "melody.musicxml")).pitches is None


@pytest.mark.parametrize("n_measures", [8, 24])
def test_notes_of_an_image_are_read(tmp_path: Path, n_measures: int) -> None:
    (tmp_path / "piano.musicxml").write_text(piano(n_measures))
    engraved = render_pages(tmp_path / "piano.musicxml")
    assert engraved.score is not None
    pages = load_pages(list(engraved.images))
    score = Encoder(default_bundle()).encode_pages(pages)
    assert score.pitches is not None
    pitch_of = {note.id: note.midi_pitch for part in engraved.score.parts for note in part.notes_tied}
    heads = engraved.notes
    columns = score.axis.index_in_system(heads["system"], (heads["x0"].astype(float) + heads["x1"]) / 2)
    written = np.zeros(score.pitches.shape, bool)
    for column, head in zip(columns, heads["id"].tolist(), strict=True):
        written[column, pitch_of[head] - 21] = True
    nearby = np.maximum.reduce([np.roll(score.pitches, shift, axis=0) for shift in (-1, 0, 1)])
    assert np.mean(nearby[written] > 0.5) > 0.95
    elsewhere = np.logical_or.reduce([np.roll(written, shift, axis=0) for shift in (-2, -1, 0, 1, 2)])
    assert (score.pitches[~elsewhere] > 0.5).sum() < 0.05 * written.sum()
