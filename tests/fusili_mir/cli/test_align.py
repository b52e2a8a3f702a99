from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_media import write_media
from example_performances import PITCHES, perform, record, tune
from PIL import Image

from fusili_mir import __version__
from fusili_mir.alignment.played import play_pages
from fusili_mir.cli.main import main
from fusili_mir.pages.pages import render_pages

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, a score, its page as an image, a recording of it, and one of something else."""
    folder = tmp_path_factory.mktemp("align")
    write_pitch_bundle(folder / "bundle")
    (folder / "tune.musicxml").write_text(tune(PITCHES * 2))
    pages = render_pages(folder / "tune.musicxml")
    Image.fromarray(pages.images[0]).save(folder / "page.png")
    Image.fromarray(np.full_like(pages.images[0], 255)).save(folder / "blank.png")
    book = [np.full_like(pages.images[0], 255), pages.images[0]] * 2
    first, *others = (Image.fromarray(page) for page in book)
    first.save(folder / "book.pdf", save_all=True, append_images=others, resolution=72, quality=95)
    performed = perform(play_pages(pages))
    soundfile.write(folder / "tune.wav", record(performed).samples, 16_000)
    performed["pitch"] = np.random.default_rng(0).permutation(performed["pitch"])
    soundfile.write(folder / "other.flac", record(performed).samples, 16_000)
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in the folder, with its model."""
    monkeypatch.chdir(folder)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments), "--model", "bundle"])
        captured = capsys.readouterr()
        return int(str(ended.value.code)), captured.out, captured.err

    return run


def test_a_score_is_aligned_and_everything_is_written(run: Run, tmp_path: Path) -> None:
    code, out, err = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert out.startswith("32 of 32 notes, ")
    assert out.endswith(f" -> {tmp_path / 'out'}\n")
    assert (tmp_path / "out" / "alignment.match").is_file()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "Missing arguments SCORE and AUDIO."),
        (["tune.wav"], "Missing argument SCORE: tune.wav is a recording; give the score before it."),
        (["tune.musicxml"], "Missing argument AUDIO: tune.musicxml is a score; give the recording after it."),
        (["book.pdf"], "Missing argument AUDIO: book.pdf is a score; give the recording after it."),
        (["nowhere"], "Expected two arguments, SCORE and AUDIO; found only nowhere."),
    ],
)
def test_what_is_missing_is_told_by_what_was_given(
    run: Run, tmp_path: Path, given: list[str], message: str
) -> None:
    code, _, err = run("align", *given, "-o", tmp_path / "out")
    assert (code, err.splitlines()[-1]) == (2, f"Error: {message}")


@pytest.mark.parametrize("command", [("align", "-o", "out"), ("point", "--time", "1")])
@pytest.mark.parametrize(("sound", "score"), [("tune.wav", "tune.musicxml"), ("other.flac", "book.pdf")])
def test_a_score_and_a_recording_in_each_others_place_are_told(
    run: Run, command: tuple[str, ...], sound: str, score: str
) -> None:
    code, _, err = run(*command, sound, score)
    assert (code, err) == (
        1,
        f"fusili-mir: score and recording seem to be swapped: {sound} is a recording, and {score} a score; the "
        "score comes first, then the recording\n",
    )


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        (1, ("https://example.org/a.pdf", "tune.wav", "-o", "out")),
        (1, ("tune.musicxml", "https://example.org/a.pdf", "-o", "out")),
        (1, ("tune.musicxml", "tune.wav", "-o", "https://example.org/a.pdf")),
        (2, ("tune.musicxml", "tune.wav", "-o", "out", "--anchors", "https://example.org/a.csv")),
        (2, ("tune.musicxml", "tune.wav", "-o", "out", "--repeats", "https://example.org/a.txt")),
    ],
)
def test_addresses_are_not_opened(run: Run, folder: Path, expected: int, given: tuple[str, ...]) -> None:
    code, _, err = run("align", *given)
    assert code == expected
    assert re.search(r"https://example\.org/a\.\w+: an address, not a file; ", err)
    assert not (folder / "out").exists()
    assert not (folder / "https:").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trio.sib", "a file that only Sibelius reads; export MusicXML from Sibelius"),
        ("trio.Dorico", "a file that only Dorico reads; export MusicXML from Dorico"),
        ("take.aup3", "a file that only Audacity reads; export WAV or FLAC from Audacity"),
        (
            "trio.ly",
            "a LilyPond file, which is not read; give the PDF that LilyPond makes of it, or MusicXML",
        ),
    ],
)
@pytest.mark.parametrize("is_score", [True, False])
def test_files_of_other_programs_are_to_be_exported(
    run: Run, tmp_path: Path, name: str, message: str, is_score: bool
) -> None:
    (tmp_path / name).write_bytes(b"\0\1 whatever it is")
    files = (tmp_path / name, "tune.wav") if is_score else ("tune.musicxml", tmp_path / name)
    code, _, err = run("align", *files, "-o", tmp_path / "out")
    assert (code, err) == (1, f"fusili-mir: {tmp_path / name}: {message}\n")


@pytest.mark.parametrize(
    ("suffix", "writer"), [("capx", "Capella"), ("gp5", "Guitar Pro"), ("mscz", "MuseScore")]
)
def test_without_musescore_the_program_that_wrote_a_file_is_to_export_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, writer: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / f"trio.{suffix}").write_bytes(b"\0\1 whatever it is")
    code, _, err = run("align", tmp_path / f"trio.{suffix}", "tune.wav", "-o", tmp_path / "out")
    assert code == 1
    assert err.endswith(f"install it, or export MusicXML from {writer}\n")


def test_only_the_requested_formats_are_written(run: Run, tmp_path: Path) -> None:
    code, _, _ = run(
        "align", "tune.musicxml", "tune.wav", "-o", tmp_path / "o", "--format", "measures", "--format", "midi"
    )
    assert code == 0
    assert sorted(file.name for file in (tmp_path / "o").iterdir()) == ["measures.csv", "performance.mid"]


def test_images_are_aligned_with_a_cache(run: Run, tmp_path: Path) -> None:
    arguments = ("align", "page.png", "tune.wav", "--cache", tmp_path / "cache", "--cuts")
    assert run(*arguments, "-o", tmp_path / "first")[0] == 0
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".npz"]
    assert run(*arguments, "-o", tmp_path / "second")[0] == 0
    frames = [(tmp_path / name / "frames.csv").read_bytes() for name in ("first", "second")]
    assert frames[0] == frames[1]


def test_anchors_are_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / "anchors.csv").write_text("measure,second\n9,8.9\n")
    asked = ("--anchors", "5=0:04.6", "--anchors", tmp_path / "anchors.csv", "--format", "measures")
    assert run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "out", *asked)[0] == 0
    with (tmp_path / "out" / "measures.csv").open(newline="") as lines:
        start_sec = {row["measure"]: float(row["start_sec"]) for row in csv.DictReader(lines)}
    assert (start_sec["5"], start_sec["9"]) == (4.6, 8.9)


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (
            ["5=4", "7=3"],
            1,
            "measure 5 is anchored at 4 s, measure 7 at 3 s, but it comes later; expected anchors",
        ),
        (
            ["five"],
            2,
            "Invalid value for '--anchors': anchor 'five'; expected MEASURE=SECOND such as 17=42.5",
        ),
    ],
)
def test_impossible_anchors_are_one_clear_line_and_write_nothing(
    run: Run, tmp_path: Path, asked: list[str], code: int, message: str
) -> None:
    anchors = [word for each in asked for word in ("--anchors", each)]
    ended, _, err = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "out", *anchors)
    assert ended == code
    assert message in " ".join(err.split())
    assert not (tmp_path / "out").exists()


def test_a_recording_of_another_piece_is_marked_and_warned_of_in_one_line(run: Run, tmp_path: Path) -> None:
    code, out, err = run("align", "tune.musicxml", "other.flac", "-o", tmp_path / "out")
    assert code == 0
    assert ", LOW -> " in out
    assert err.startswith("fusili-mir: warning: the score hardly explains the recording")
    assert err.count("\n") == 1
    assert '"is_reliable":false' in (tmp_path / "out" / "alignment.json").read_text()


def test_a_given_pitch_is_said_and_written_and_0_is_not_worth_a_word(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(
        "align",
        "tune.musicxml",
        "tune.wav",
        "-o",
        tmp_path / "lower",
        "--transpose",
        "-2",
        "--format",
        "json",
    )
    assert code == 0
    assert "; sounds 2 semitones below the score (A = 392.0 Hz); " in out
    pitch = json.loads((tmp_path / "lower" / "alignment.json").read_text())["pitch"]
    assert (pitch["cents"], pitch["a4_hz"], pitch["source"], pitch["curve"]) == (-200.0, 392.0, "given", None)
    code, out, _ = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "off", "--transpose", "0")
    assert code == 0
    assert "sounds" not in out
    assert '"source":"off"' in (tmp_path / "off" / "alignment.json").read_text()


def read_table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_several_images_are_aligned_in_the_given_order(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said, _ = run("align", "page.png", "blank.png", "tune.wav", "-o", out, "--format", "frames")
    assert (code, said[-5:]) == (0, "/out\n")
    assert {row["page"] for row in read_table(out / "frames.csv")} == {"0"}
    code, _, _ = run("align", "blank.png", "page.png", "tune.wav", "-o", out, "--force", "--format", "frames")
    assert code == 0
    assert {row["page"] for row in read_table(out / "frames.csv")} == {"1"}


@pytest.mark.parametrize(
    "score",
    [("book.pdf", "--pages", "2"), ("book.pdf#2",), ("book.pdf", "--pages", "2,4"), ("book.pdf#2-3",)],
)
def test_a_range_of_a_pdf_is_aligned(run: Run, tmp_path: Path, score: tuple[str, ...]) -> None:
    name, *options = score
    code, _, _ = run(
        "align", name, "tune.wav", "-o", tmp_path / "o", "--format", "frames", "--dpi", 72, *options
    )
    assert code == 0
    assert {row["page"] for row in read_table(tmp_path / "o" / "frames.csv")} == {"0"}


def test_an_excerpt_has_the_seconds_of_the_whole_recording(run: Run, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    formats = ("--format", "notes", "--format", "frames", "--format", "json")
    assert run("align", "tune.musicxml", "tune.wav", "-o", whole, *formats)[0] == 0
    arguments = ("align", "tune.musicxml", "tune.wav", "--start", "0:05.24", "--end", "10.3", "-o", part)
    assert run(*arguments, *formats)[0] == 0
    expected = {row["id"]: float(row["onset_sec"]) for row in read_table(whole / "notes.csv")}
    found = {row["id"]: float(row["onset_sec"]) for row in read_table(part / "notes.csv") if row["onset_sec"]}
    assert set(found) == {note for note, second in expected.items() if 5.24 < second < 10.3}
    assert max(abs(found[note] - expected[note]) for note in found) < 0.02
    seconds = [float(row["onset_sec"]) for row in read_table(part / "frames.csv")]
    assert (seconds[0], round(seconds[-1], 2)) == (5.24, 10.28)


def test_point_answers_within_an_excerpt(run: Run) -> None:
    stretch = ("--start", "5", "--end", "10")
    whole = run("point", "tune.musicxml", "tune.wav", "--time", "0:07.2", "--top", "1")[1]
    assert run("point", "tune.musicxml", "tune.wav", "--time", "7.2", "--top", "1", *stretch)[1] == whole
    _, x, y, *_ = whole.splitlines()[1].split()
    out = run("point", "tune.musicxml", "tune.wav", "--at", f"1:{x},{y}", "--top", "1", *stretch)[1]
    assert float(out.splitlines()[1].split()[0]) == pytest.approx(7.2, abs=0.05)
    code, _, err = run("point", "tune.musicxml", "tune.wav", "--time", "3", *stretch)
    assert code == 1
    assert "3 s is outside the recording (5 to 10.00 s)" in err


def test_a_recording_comes_from_standard_input(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "tune.wav").open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        code, out, _ = run("align", "tune.musicxml", "-", "-o", tmp_path / "out", "--format", "notes")
    assert code == 0
    assert out.startswith("32 of 32 notes, ")


def test_a_video_is_aligned_by_its_sound(run: Run, folder: Path, tmp_path: Path) -> None:
    samples, rate_hz = soundfile.read(folder / "tune.wav", dtype="float32")
    write_media(tmp_path / "concert.mp4", samples, rate_hz, video=True)
    code, out, _ = run(
        "align", "tune.musicxml", tmp_path / "concert.mp4", "-o", tmp_path / "out", "--format", "notes"
    )
    assert code == 0
    assert out.startswith("32 of 32 notes, ")


def test_quiet_prints_nothing_but_errors(run: Run, tmp_path: Path) -> None:
    assert run("align", "tune.musicxml", "other.flac", "-o", tmp_path / "out", "-q") == (0, "", "")
    code, out, err = run("align", "tune.musicxml", "none.wav", "-o", tmp_path / "other", "--quiet")
    assert (code, out) == (1, "")
    assert err == "fusili-mir: none.wav: not found; expected a sound file\n"
    code, out, err = run("point", "tune.musicxml", "tune.wav", "--time", "1", "-q")
    assert (code, err) == (0, "")
    assert out.startswith("page ")  # what was asked for


def test_verbose_says_what_is_done_and_how_long_it_takes(run: Run, tmp_path: Path) -> None:
    code, out, err = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "out", "-v")
    assert code == 0
    assert out.startswith("32 of 32 notes, ")
    lines = err.splitlines()
    assert lines[0].startswith(f"fusili-mir: fusili-mir {__version__}, Python ")
    assert any(line.startswith("fusili-mir: model: bundle, ") for line in lines)
    assert any(line.startswith("fusili-mir: recording: tune.wav, 16000 Hz") for line in lines)
    for stage in (
        "listening",
        "engraving",
        "encoding the recording",
        "reading the score",
        "decoding",
        "writing",
    ):
        assert any(re.fullmatch(rf"fusili-mir: {stage}: \d+\.\d s", line) for line in lines), stage
    assert lines[-1].startswith("fusili-mir: all together: ")
    assert (
        run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "silent")[2] == ""
    )  # and only when asked


def test_everything_fast_is_checked_before_anything_slow(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: object, **__: object) -> None:
        pytest.fail("something slow was done before a mistake was found")

    monkeypatch.setattr("fusili_mir.pages.pages.render_pages", too_late)
    monkeypatch.setattr("fusili_mir.pages.pages.load_pages", too_late)
    monkeypatch.setattr("fusili_mir.model.encoder.Encoder.encode_pages", too_late)
    for score in ("tune.musicxml", "page.png"):
        for bad in (write_bad(tmp_path, "text"), write_bad(tmp_path, "silent"), "none.wav"):
            assert run("align", score, bad, "-o", tmp_path / "out")[0] == 1
        assert run("align", score, "tune.wav", "-o", tmp_path / "out", "--format", "pdf")[0] == 1
        assert run("align", score, "tune.wav", "-o", tmp_path / "out", "--device", "abacus")[0] == 1
        assert run("align", score, "tune.wav", "-o", tmp_path / "out", "--start", "2:00")[0] == 1
        assert run("align", score, "tune.wav", "-o", tmp_path)[0] == 1
    monkeypatch.setattr("fusili_mir.audio.opening.AudioFile", too_late)
    assert run("align", "none.png", "tune.wav", "-o", tmp_path / "out")[0] == 1
    assert run("align", "book.pdf", "tune.wav", "-o", tmp_path / "out", "--pages", "7")[0] == 1


def write_bad(folder: Path, name: str) -> Path:
    file = folder / f"{name}.wav"
    samples = {
        "silent": np.zeros(16_000),
        "three": np.array([0.1, -0.1, 0.1]),
        "nan": np.array([0.1, np.nan] * 8000),
        "nothing": np.zeros(0),
    }
    if name in samples:
        soundfile.write(file, samples[name], 16_000, subtype="FLOAT")
    else:
        file.write_bytes(b"" if name == "empty" else b"This is not audio.")
    return file


@pytest.mark.parametrize("name", ["silent", "three", "nan", "nothing", "empty", "text"])
def test_a_recording_that_cannot_be_used_is_one_line_and_no_folder(
    run: Run, tmp_path: Path, name: str
) -> None:
    code, out, err = run("align", "tune.musicxml", write_bad(tmp_path, name), "-o", tmp_path / "out")
    assert (code, out) == (1, "")
    assert err.startswith("fusili-mir: ")
    assert f"{name}.wav" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.musicxml", "tune.wav"), "none.musicxml"),
        (("tune.musicxml", "none.wav"), "none.wav"),
        (("page.png", "tune.wav", "--format", "match"), "a score of images has no notes to write as match"),
        (
            ("tune.musicxml", "tune.wav", "--repeats", "1-99"),
            "repeats name measure 99; the measures of the score",
        ),
        (("page.png", "tune.wav", "--repeats", "8-1"), "repeats '8-1' go backwards"),
        (("tune.musicxml", "tune.wav", "--format", "pdf"), "format 'pdf', expected some of"),
        (("tune.musicxml", "page.png", "tune.wav"), "a symbolic score, given with 1 more; expected it alone"),
        (
            ("tune.musicxml", "tune.wav", "--pages", "2"),
            "a symbolic score, which has no pages to choose from",
        ),
        (("tune.musicxml#2", "tune.wav"), "a symbolic score, which has no pages to choose from"),
        (("book.pdf", "tune.wav", "--pages", "3-9"), "page 9 does not exist: book.pdf has 4 pages"),
        (("book.pdf#5", "tune.wav"), "page 5 does not exist: book.pdf has 4 pages"),
        (
            ("page.png", "tune.wav", "--start", "99"),
            "s long, expected it to last longer than the start of 99 s",
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line_and_leaves_no_folder(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = run("align", *arguments, "-o", tmp_path / "out")
    assert code == 1
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_existing_result_is_found_before_any_work_is_done(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = run("align", "tune.musicxml", "none.wav", "-o", tmp_path)
    assert code == 1
    assert "--force" in err
    code, _, _ = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path, "--force", "--format", "notes")
    assert code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.txt", "notes.csv"]


def test_an_interruption_leaves_nothing_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fusili_mir.alignment.encoded_alignment.decode_path", interrupted)
    code, out, err = run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "out")
    assert (code, out) == (130, "")
    assert err.strip() == "fusili-mir: interrupted"
    assert list(tmp_path.iterdir()) == []


def test_point_answers_both_ways(run: Run) -> None:
    code, out, _ = run("point", "tune.musicxml", "tune.wav", "--time", "1.0", "--top", "1")
    assert code == 0
    page, x, y, number, similarity = out.splitlines()[1].split()
    assert (page, number, similarity) == ("1", "1", "1.000")
    code, out, _ = run("point", "tune.musicxml", "tune.wav", "--at", f"1:{x},{y}", "--top", "1")
    assert code == 0
    assert float(out.splitlines()[1].split()[0]) == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--time", "1", "--at", "1:2,3"),
        ("--at", "0:2,3"),
        ("--at", "1:2"),
        ("--at", "1:2.2.2,3"),
        ("--time", "x"),
        ("--time", "1", "--transpose", "up"),
        ("--time", "1", "--transpose", "nan"),
        ("--time", "1", "--a4", "41"),
        ("--time", "1", "--pages", "two"),
        ("--time", "1", "--start", "9", "--end", "8"),
        ("--time", "1", "--repeats", "1", "--cuts"),
    ],
)
def test_a_wrong_question_is_refused_with_the_usage(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run("point", "tune.musicxml", "tune.wav", *arguments)
    assert (code, out) == (2, "")
    assert "Usage: fusili-mir point" in err


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("--time", "1000"), "1000 s is outside the recording (0 to "),
        (("--time", "-0.1"), "-0.1 s is outside the recording (0 to "),
        (("--at", "1:-4,300"), "-4,300 is off page 1, which is "),
        (("--at", "1:300,90000"), "300,90000 is off page 1, which is "),
        (("--at", "2:300,300"), "page 2 does not exist: tune.musicxml has 1 page"),
    ],
)
def test_a_question_outside_the_recording_or_off_the_pages_is_one_line(
    run: Run, question: tuple[str, ...], message: str
) -> None:
    code, out, err = run("point", "tune.musicxml", "tune.wav", *question)
    assert (code, out) == (1, "")
    assert err.startswith(f"fusili-mir: {message}")
    assert err.count("\n") == 1


def test_strict_tells_scripts_that_a_recording_is_of_something_else(run: Run, tmp_path: Path) -> None:
    code, _, err = run("align", "tune.musicxml", "other.flac", "-o", tmp_path / "other", "--strict")
    assert code == 3
    assert err.count("\n") == 1
    assert json.loads((tmp_path / "other" / "alignment.json").read_text())["is_reliable"] is False
    assert run("align", "tune.musicxml", "tune.wav", "-o", tmp_path / "tune", "--strict", "-q")[0] == 0
