from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from example_scores import VOLTAS, piano
from PIL import Image

from fusili_mir.cli.main import main


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


def test_a_symbolic_score_becomes_images_overlays_and_boxes(tmp_path: Path, capsys) -> None:
    (tmp_path / "voltas.musicxml").write_text(VOLTAS)
    out = tmp_path / "out"
    assert run("pages", tmp_path / "voltas.musicxml", "-o", out, "--page-size-mm", "120", "80") == 0
    assert capsys.readouterr().out == f"1 page, 1 system, 1 staff, 4 measures, 6 note heads -> {out}\n"
    assert sorted(file.name for file in out.iterdir()) == ["overlay-001.png", "page-001.png", "pages.json"]
    content = json.loads((out / "pages.json").read_text())
    assert content["format"] == 1
    assert content["score"] == "voltas.musicxml"
    assert [note["notated_id"] for note in content["notes"]] == [f"p0n{i}" for i in range(6)]
    assert content["measures"][0]["number"] == "0"
    page, overlay = (np.asarray(Image.open(out / name)) for name in ("page-001.png", "overlay-001.png"))
    assert page.shape == (content["pages"][0]["height_px"], content["pages"][0]["width_px"])
    head = content["notes"][4]
    x, y = round((head["x0"] + head["x1"]) / 2), round((head["y0"] + head["y1"]) / 2)
    assert page[y, x] < 60
    red, _, blue = overlay[y, x]
    assert red > blue + 80  # the heads of the first staff are orange


def test_an_image_score_has_systems_and_no_notes(tmp_path: Path, capsys) -> None:
    (tmp_path / "piano.musicxml").write_text(piano(8))
    run("pages", tmp_path / "piano.musicxml", "-o", tmp_path / "engraved")
    capsys.readouterr()
    assert run("pages", tmp_path / "engraved" / "page-001.png", "-o", tmp_path / "found") == 0
    assert capsys.readouterr().out.startswith(
        "1 page, 1 system, 2 staves, 8 measures, 0 repeats, 0 endings -> "
    )
    content = json.loads((tmp_path / "found" / "pages.json").read_text())
    assert content["notes"] == []
    assert [measure["number"] for measure in content["measures"]] == [str(number) for number in range(1, 9)]
    assert content["repeats"]["ends"] == []
    assert {line["kind"] for line in content["bar_lines"]} <= {"single", "final"}
    assert len(content["staves"]) == 2


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("text.musicxml", b"hello"),
        ("cut.mxl", b"PK\x03\x04cut"),
        ("empty.pdf", b""),
        ("noise.png", b"\x89PNG...."),
    ],
)
def test_bad_input_is_one_line_on_standard_error_and_exit_code_1(tmp_path: Path, capsys, name, data) -> None:
    (tmp_path / name).write_bytes(data)
    assert run("pages", tmp_path / name, "-o", tmp_path / "out") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fusili-mir: ")
    assert captured.err.count("\n") == 1
    assert name in captured.err
    assert not (tmp_path / "out").exists()


def test_existing_output_is_kept_without_force(tmp_path: Path, capsys) -> None:
    (tmp_path / "piano.musicxml").write_text(piano(2))
    assert run("pages", tmp_path / "piano.musicxml", "-o", tmp_path) == 1
    assert "not empty" in capsys.readouterr().err
    assert run("pages", tmp_path / "piano.musicxml", "-o", tmp_path, "--force") == 0


def test_wrong_usage_is_exit_code_2(capsys) -> None:
    assert run("pages") == 2
    assert run("pages", "x.musicxml", "-o", "y", "--font", "Comic") == 2
    assert run("nothing") == 2
    assert "No such command" in capsys.readouterr().err


def test_an_option_out_of_range_is_one_line(tmp_path: Path, capsys) -> None:
    (tmp_path / "piano.musicxml").write_text(piano(2))
    assert run("pages", tmp_path / "piano.musicxml", "-o", tmp_path / "out", "--dpi", "9999") == 1
    assert capsys.readouterr().err == "fusili-mir: dpi is 9999, expected 20 to 1200\n"


def test_help_lists_the_commands_without_importing_them() -> None:
    code = (
        "import sys; from fusili_mir.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'numpy', 'partitura', 'verovio', 'PIL'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pages" in done.stdout


def test_pages_without_music_are_named(tmp_path: Path, capsys) -> None:
    (tmp_path / "piano.musicxml").write_text(piano(8))
    run("pages", tmp_path / "piano.musicxml", "-o", tmp_path / "book")
    (tmp_path / "book" / "overlay-001.png").unlink()
    Image.new("L", (400, 400), 255).save(tmp_path / "book" / "page-002.png")
    capsys.readouterr()
    assert run("pages", tmp_path / "book", "-o", tmp_path / "out") == 0
    assert capsys.readouterr().out.startswith(
        "2 pages, 1 system, 2 staves, 8 measures, 0 repeats, 0 endings (no music found on page 2) -> "
    )


def test_a_name_that_no_file_can_have_is_one_line(tmp_path: Path, capsys) -> None:
    (tmp_path / "piano.musicxml").write_text(piano(2))
    assert run("pages", tmp_path / "piano.musicxml", "-o", tmp_path / ("q" * 300)) == 1
    assert "cannot be written (File name too long)" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="names are valid Unicode there")
def test_a_name_in_another_encoding_is_read_and_written_with_marks(tmp_path: Path, capsys) -> None:
    score = tmp_path / "pr\udce9lude.musicxml"  # in Latin-1, as it comes from old archives
    score.write_text(VOLTAS)
    assert run("pages", score, "-o", tmp_path / "out\udcff") == 0
    assert capsys.readouterr().out.endswith("out?\n")
    content = json.loads((tmp_path / "out\udcff" / "pages.json").read_text())
    assert content["score"] == "pr?lude.musicxml"
