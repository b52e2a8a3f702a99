"""Datasets as they lie on disk, in small hand-made trees whose right answers are known."""

from __future__ import annotations

import shutil
from pathlib import Path

import mido
import numpy as np
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_datasets import (
    MELODIES,
    SAMPLE_RATE_HZ,
    MungObject,
    write_engraved_msmd,
    write_mung,
    write_performance,
    write_shards,
    write_table,
)
from PIL import Image

from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_mir.model.bundle import ImageSpec
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.listed_pairs import ListedPairs
from fusili_training.evaluation.msmd import MsmdTree
from fusili_training.evaluation.recordings import play_midi
from fusili_training.evaluation.shard_dataset import ShardDataset
from fusili_training.evaluation.sources import open_source
from fusili_training.evaluation.split_lists import read_split_lists
from fusili_training.placed_notes import place_notes

AS_WRITTEN, SLOW = "Tune_tempo-1000_piano", "Tune_tempo-0500_piano"
MELODY = MELODIES["Tune"]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ImageSpec:
    return write_pitch_bundle(tmp_path_factory.mktemp("bundle") / "pitch").image


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A page of 500 x 900 px with four systems: seven notes, notes over 25 s, none, and one note of 80 ms."""
    score = tmp_path / "msmd" / "Tune" / "scores" / "Tune_ly"
    (score / "img").mkdir(parents=True)
    Image.fromarray(np.full((900, 500), 255, np.uint8)).save(score / "img" / "01.png")
    events = np.array(
        [[1 + 0.5 * k, 60 + k, 0.5, 0, 0] for k in range(7)]
        + [[30, 70, 1, 0, 0], [54, 71, 1, 0, 0], [56, 72, 0.08, 0, 0]]
    )

    def head(number: int, x: float, y: float, system: int, event: int) -> MungObject:
        data = (
            (f"{AS_WRITTEN}_onset_seconds", events[event, 0]),
            (f"{AS_WRITTEN}_note_event_idx", event),
            (f"{SLOW}_onset_seconds", 2 * events[event, 0]),
            (f"{SLOW}_note_event_idx", event),
        )
        return MungObject(number, "notehead-full", (x - 4, y - 4, 8, 8), (99, system), data)

    objects = [
        MungObject(2, "staff", (26, 300, 448, 80)),  # systems come in any order in the file
        MungObject(1, "staff", (26, 60, 448, 80)),
        MungObject(3, "staff", (26, 600, 448, 80)),
        MungObject(4, "staff", (26, 760, 448, 80)),
        *(head(10 + k, 26 + 64 * k + 32, 140 if k == 6 else 100, 1, k) for k in range(7)),
        MungObject(30, "notehead-full", (300, 100, 8, 8), (1,), (("tied", 1),)),  # continued by another head
        MungObject(31, "stem", (300, 100, 2, 40), (1,)),
        head(20, 100, 340, 2, 7),
        head(21, 400, 340, 2, 8),
        head(22, 100, 800, 4, 9),
    ]
    write_mung(score / "mung" / "01.xml", objects)
    performances = tmp_path / "msmd" / "Tune" / "performances"
    ramp = np.arange(60 * SAMPLE_RATE_HZ, dtype=np.float32) / (60 * SAMPLE_RATE_HZ)
    write_performance(performances, AS_WRITTEN, events, ramp)
    write_performance(performances, SLOW, events * [2, 1, 2, 1, 1], None)  # type: ignore[arg-type]
    return tmp_path / "msmd"


def test_a_system_of_msmd_is_a_square_with_its_notes_and_its_part_of_the_sound(tree: Path) -> None:
    source = open_source(tree, None)
    assert isinstance(source, MsmdTree)
    (pair,) = source.read_piece("Tune")
    assert pair.image.shape == (224, 224)
    # 448 px become 224: the middle of head k goes from 26 + 64 k + 32 to 32 k + 16. The system is assumed to be
    # 20 spaces of 4 px high, and shown with 3 spaces above and below: 52 px in the middle of 224, from 86 on.
    # So y 100 goes to 86 + (100 - 48) / 2, and y 140 to 132.
    assert ((pair.truth["x0"] + pair.truth["x1"]) / 2).tolist() == [32 * k + 16 for k in range(7)]
    assert ((pair.truth["y0"] + pair.truth["y1"]) / 2).tolist() == [112] * 6 + [132]
    assert pair.truth["onset_sec"] == pytest.approx([0.5 * k for k in range(7)])
    assert pair.truth["offset_sec"] == pytest.approx([0.5 * k + 0.5 for k in range(7)])
    assert pair.truth["pitch"].tolist() == list(range(60, 67))
    # From the first onset, 1 s, to the last offset, 4.5 s.
    assert len(pair.waveform) == 3.5 * SAMPLE_RATE_HZ
    assert pair.waveform[0] == pytest.approx(1 / 60)
    placed = place_notes(pair.truth, PatchGrid(7, 7, 32, 32), FrameGrid(256, 20 / 256))
    assert placed.patch.tolist() == [21, 22, 23, 24, 25, 26, 34]
    assert placed.first_frame.tolist() == [int(0.5 * k * 256 / 20) for k in range(7)]


def test_systems_over_20_s_under_100_ms_and_without_notes_are_dropped_and_counted(tree: Path) -> None:
    source = MsmdTree(tree)
    assert len(list(source.read_piece("Tune"))) == 1
    assert source.dropped == {"over 20 s": 1, "no notes": 1, "too short": 1}


def test_the_performance_at_the_tempo_of_the_score_is_used(tree: Path) -> None:
    for folder in (tree / "Tune" / "performances").glob(AS_WRITTEN):
        shutil.rmtree(folder)
    with pytest.raises(InputError, match=r"no recording and no MIDI; expected Tune_tempo-0500_piano\.midi"):
        list(MsmdTree(tree).read_piece("Tune"))


def test_a_split_file_chooses_the_pieces(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree / "Tune", tree / "Other")
    lists = tmp_path / "split.yaml"
    lists.write_text("# by composer\ntest:\n- Tune\ntrain:\n- 'Other'  # one\nvalid: []\n")
    assert read_split_lists(lists) == {"test": ["Tune"], "train": ["Other"], "valid": []}
    assert MsmdTree(tree, None, ["test"], lists).pieces == ["Tune"]
    assert MsmdTree(tree, None, ["test", "train"], lists).pieces == ["Other", "Tune"]
    assert MsmdTree(tree).pieces == ["Other", "Tune"]
    with pytest.raises(InputError, match=r"no split 'dev'; it has test, train, valid"):
        MsmdTree(tree, None, ["dev"], lists)
    with pytest.raises(InputError, match="needs its split file"):
        MsmdTree(tree, None, ["test"])
    lists.write_text("test:\n- Missing\n")
    with pytest.raises(InputError, match="1 pieces of the split are missing, such as Missing"):
        MsmdTree(tree, None, ["test"], lists)
    lists.write_text("pieces = 3\n")
    with pytest.raises(InputError, match="line 1 is 'pieces = 3'"):
        read_split_lists(lists)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("scores/Tune_ly/mung/01.xml", b"<CropObj", "cannot be read"),
        ("scores/Tune_ly/mung/01.xml", b"<a><CropObject><Id>1</Id></CropObject></a>", "without ClassName"),
        (f"performances/{AS_WRITTEN}/features/{AS_WRITTEN}_notes.npy", b"", "cannot be read"),
        ("scores/Tune_ly/img/01.png", b"nothing", "01.png"),
    ],
)
def test_damaged_files_are_named(tree: Path, file: str, content: bytes, message: str) -> None:
    (tree / "Tune" / file).write_bytes(content)
    with pytest.raises(InputError, match=message) as raised:
        list(MsmdTree(tree).read_piece("Tune"))
    assert Path(file).name in str(raised.value)


def test_mung_and_features_that_do_not_go_together_are_refused(tree: Path) -> None:
    notes = tree / "Tune" / "performances" / AS_WRITTEN / "features" / f"{AS_WRITTEN}_notes.npy"
    np.save(notes, np.zeros((3, 5)))
    with pytest.raises(InputError, match="do not go together"):
        list(MsmdTree(tree).read_piece("Tune"))


@pytest.mark.usefixtures("soundfont")
def test_without_audio_the_midi_is_played(tmp_path: Path) -> None:
    track = mido.MidiTrack()
    track.append(mido.Message("note_on", note=69, velocity=100, time=480))  # A4 after half a second
    track.append(mido.Message("note_off", note=69, time=960))
    mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(tmp_path / "a.midi")
    sound = play_midi(tmp_path / "a.midi")
    assert np.abs(sound.cut(0, 0.45).samples).max() < 1e-3
    heard = sound.cut(0.6, 1.1).samples
    spectrum = np.abs(np.fft.rfft(heard))
    assert spectrum.argmax() / 0.5 == pytest.approx(440, abs=4)


def test_a_missing_midi_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not found; expected a MIDI file"):
        play_midi(tmp_path / "a.midi")


@pytest.fixture(scope="module")
def engraved_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("engraved")
    write_engraved_msmd(root, "Tune", MELODY)
    return root


@pytest.fixture(scope="module")
def strips(engraved_tree: Path, spec: ImageSpec) -> list[Pair]:
    return list(MsmdTree(engraved_tree, spec).read_piece("Tune"))


def test_staff_strips_are_cut_where_staves_are_found(strips: list[Pair], spec: ImageSpec) -> None:
    assert len(strips) >= 2
    assert sum(len(pair.truth) for pair in strips) == len(MELODY)
    for pair in strips:
        assert pair.image.shape[0] == pair.strip_height_px == spec.height_px
        assert pair.truth["onset_sec"][0] == 0
        # Ink, not paper, in the middle of every head.
        x = ((pair.truth["x0"] + pair.truth["x1"]) / 2).astype(int)
        y = ((pair.truth["y0"] + pair.truth["y1"]) / 2).astype(int)
        assert pair.image[y, x].max() < 100


def test_a_page_without_staves_gives_no_strips(tree: Path, spec: ImageSpec) -> None:
    source = MsmdTree(tree, spec)
    assert list(source.read_piece("Tune")) == []
    assert source.dropped["no staves found"] == 1


# --- tables of pairs


def write_pairs(folder: Path, lengths_sec: list[float]) -> Path:
    rows = []
    for number, length_sec in enumerate(lengths_sec):
        image = np.full((112, 224), 255, np.uint8)
        image[:, 32 * number : 32 * (number + 1)] = 0
        Image.fromarray(image).save(folder / f"{number}.png")
        soundfile.write(folder / f"{number}.wav", np.full(round(8000 * length_sec), 0.1), 8000)
        rows.append([f"{number}.png", f"{number}.wav"])
    write_table(folder / "ytsv.csv", ["image_filename", "audio_filename"], rows)
    return folder / "ytsv.csv"


def test_listed_images_are_scaled_into_the_middle_of_squares(tmp_path: Path) -> None:
    source = open_source(write_pairs(tmp_path, [2.0, 3.0]), None)
    assert isinstance(source, ListedPairs)
    assert source.pieces == ["row-1", "row-2"]
    (pair,) = source.read_piece("row-2")
    assert pair.image.shape == (224, 224)
    assert (pair.image[56:168, 32:64] == 0).all()
    assert (pair.image[:56] == 255).all()
    assert (pair.image[168:] == 255).all()
    assert (pair.image[:, :32] == 255).all()
    assert len(pair.waveform) == 3 * 8000


def test_recordings_over_20_s_are_dropped(tmp_path: Path) -> None:
    source = ListedPairs(write_pairs(tmp_path, [20.0, 20.5]))
    assert [len(list(source.read_piece(piece))) for piece in source.pieces] == [1, 0]
    assert source.dropped == {"over 20 s": 1}


def test_a_column_says_which_rows_are_one_piece(tmp_path: Path) -> None:
    write_pairs(tmp_path, [1.0, 1.0, 1.0])
    rows = [["a", "0.png", "0.wav"], ["b", "1.png", "1.wav"], ["a", "2.png", "2.wav"]]
    write_table(tmp_path / "pdmx.csv", ["piece", "image_filename", "audio_filename"], rows)
    source = ListedPairs(tmp_path / "pdmx.csv")
    assert source.pieces == ["a", "b"]
    assert [pair.key for pair in source.read_piece("a")] == ["a.listed.1", "a.listed.3"]


def test_listed_images_become_strips_where_staves_are_found(
    tmp_path: Path, engraved_tree: Path, spec: ImageSpec
) -> None:
    page = next(engraved_tree.glob("*/scores/*/img/01.png"))
    shutil.copy(page, tmp_path / "page.png")
    write_pairs(tmp_path, [1.0])
    write_table(
        tmp_path / "t.csv", ["image_filename", "audio_filename"], [["page.png", "0.wav"], ["0.png", "0.wav"]]
    )
    source = ListedPairs(tmp_path / "t.csv", spec)
    (pair,) = source.read_piece("row-1")
    assert pair.image.shape[0] == spec.height_px
    assert pair.image.shape[1] > 500  # all lines of the page, end to end
    assert list(source.read_piece("row-2")) == []
    assert source.dropped == {"no staves found": 1}


def test_the_error_says_why_a_table_cannot_be_used(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    write_table(table, ["image", "audio_filename"], [["a", "b"]])
    with pytest.raises(InputError, match="has no column image_filename; found image, audio_filename"):
        ListedPairs(table)
    write_table(table, ["image_filename", "audio_filename"], [])
    with pytest.raises(InputError, match="no rows"):
        ListedPairs(table)
    write_table(table, ["image_filename", "audio_filename"], [["a.png", ""]])
    with pytest.raises(InputError, match="row 1 lacks"):
        ListedPairs(table)
    write_table(table, ["image_filename", "audio_filename"], [["a.png", "b.wav"]])
    with pytest.raises(InputError, match=r"row 1 names .*a\.png, which does not exist"):
        ListedPairs(table)
    with pytest.raises(InputError, match="not found; expected a folder written by"):
        open_source(tmp_path / "nowhere", None)


# --- shards


def renamed(pair: Pair, key: str, mutant_of: str | None = None) -> Pair:
    return Pair(
        key, mutant_of, pair.image, pair.waveform, pair.truth, pair.strip_height_px, pair.sample_rate_hz
    )


def test_shards_give_originals_by_layout_in_the_order_of_the_score(
    tmp_path: Path, strips: list[Pair], spec: ImageSpec
) -> None:
    pair = strips[0]
    keys = ["a.whole.10", "a.whole.2", "a.piano.0", "b.whole.0"]
    pairs = [*(renamed(pair, key) for key in keys), renamed(pair, "a.whole.2.mutant", "a.whole.2")]
    write_shards(tmp_path / "shards", pairs)
    source = open_source(tmp_path / "shards", spec)
    assert isinstance(source, ShardDataset)
    assert source.pieces == ["a.piano", "a.whole", "b.whole"]
    assert [each.key for each in source.read_piece("a.whole")] == ["a.whole.2", "a.whole.10"]


def test_shards_of_another_shape_than_the_bundles_are_refused(tmp_path: Path, strips: list[Pair]) -> None:
    from example_bundles import write_ink_bundle

    write_shards(tmp_path / "shards", [renamed(strips[0], "a.whole.0")])
    squares = write_ink_bundle(tmp_path / "ink").image
    with pytest.raises(InputError, match="shards of staff strips, but the bundle takes squares"):
        ShardDataset(tmp_path / "shards", ["test"], squares)
    with pytest.raises(InputError, match="no pairs for 'valid'"):
        ShardDataset(tmp_path / "shards", ["valid"])
