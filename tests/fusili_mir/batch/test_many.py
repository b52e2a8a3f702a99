from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from example_bundles import write_pitch_bundle
from example_performances import PITCHES, perform, record, tune
from example_processes import FusiliCommand, still_there

import fusili_mir
from fusili_mir import InputError, OutputError, align_many, align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.batch.pair_report import PairReport
from fusili_mir.batch.summary_page import summary_html
from fusili_mir.cli.main import main
from fusili_mir.folder_lock import locked_folder
from fusili_mir.pages.pages import render_pages

SHORT = fusili_mir.AlignOptions(end_sec=4)
FORMATS = ("json", "notes")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, two scores, two takes of each, something that is no sound, and a table of pairs."""
    folder = tmp_path_factory.mktemp("many")
    write_pitch_bundle(folder / "bundle")
    for name, pitches in (("up", PITCHES * 2), ("down", [*PITCHES[3:], *PITCHES[:3]] * 2)):
        (folder / f"{name}.musicxml").write_text(tune(pitches))
        performed = perform(play_pages(render_pages(folder / f"{name}.musicxml")))
        for take in (1, 2):
            late = np.pad(record(performed).samples, (8000 * (take - 1), 0))
            soundfile.write(folder / f"{name}{take}.wav", late, 16_000)
    performed["pitch"] = np.random.default_rng(0).permutation(performed["pitch"])
    soundfile.write(folder / "other.wav", record(performed).samples, 16_000)
    (folder / "noise.wav").write_text("no sound at all")
    rows = ["score,recording,name"]
    rows += [f"{name}.musicxml,{name}{take}.wav,{name}{take}" for take in (1, 2) for name in ("up", "down")]
    (folder / "pairs.csv").write_text("\n".join(rows) + "\n")
    return folder


def contents(out: Path, but: tuple[str, ...] = ("report.json",)) -> dict[str, bytes]:
    """Return the files of all results; reports hold processor times."""
    found = (file for file in sorted(out.rglob("*")) if file.is_file() and file.parent != out)
    return {str(file.relative_to(out)): file.read_bytes() for file in found if file.name not in but}


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def expected(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a run that nobody disturbed."""
    out = tmp_path_factory.mktemp("expected") / "out"
    align_many(files / "pairs.csv", out, files / "bundle", jobs=2, formats=FORMATS)
    return out


def test_each_pair_gets_the_result_that_it_gets_alone(files: Path, expected: Path) -> None:
    alone = align_recording(files / "down.musicxml", files / "down2.wav", model=files / "bundle")
    rows = rows_of(expected / "down2" / "notes.csv")
    assert [row["id"] for row in rows] == alone.notes["id"].tolist()
    assert np.allclose([float(row["onset_sec"]) for row in rows], alone.notes["onset_sec"], atol=1e-3)
    result = json.loads((expected / "down2" / "alignment.json").read_text())
    assert result["recording"]["name"] == "down2.wav"


def test_the_summary_is_in_the_order_of_the_table_and_links_to_nothing_outside(expected: Path) -> None:
    rows = rows_of(expected / "summary.csv")
    assert [row["name"] for row in rows] == ["up1", "down1", "up2", "down2"]
    assert {row["status"] for row in rows} == {"aligned"}
    assert all(float(row["reliability"]) > 0.5 for row in rows)
    page = (expected / "index.html").read_text()
    assert "4 aligned" in page
    assert "http://" not in page
    assert "https://" not in page


def test_nothing_is_left_but_results_and_summary(expected: Path) -> None:
    names = {file.name for file in expected.iterdir()}
    assert names == {"index.html", "summary.csv", "up1", "up2", "down1", "down2"}


def test_a_second_run_does_nothing_again_but_what_failed(files: Path, expected: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(expected, out)
    table = files / "more.csv"
    table.write_text((files / "pairs.csv").read_text() + "up.musicxml,noise.wav,bad\n")
    stamps = {file: file.stat().st_mtime_ns for file in out.rglob("*.json")}
    for _ in range(2):
        *good, bad = align_many(table, out, files / "bundle", jobs=1, formats=FORMATS)
        assert [report.status for report in good] == ["aligned"] * 4
        assert bad.status == "failed"
        assert "noise.wav: not a sound file" in bad.message
    assert {file: file.stat().st_mtime_ns for file in out.rglob("*.json")} == stamps
    assert not (out / "bad").exists()


def test_other_options_are_refused_unless_results_may_be_replaced(
    files: Path, expected: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(expected, out)
    (out / "up1" / "report.json").write_text("{")
    with pytest.raises(OutputError, match=r"1 of the results \(up1 first\) were made from other files"):
        align_many(files / "pairs.csv", out, files / "bundle", formats=FORMATS)
    before = contents(out)
    with pytest.raises(OutputError, match=r"4 of the results \(up1 first\)"):
        align_many(
            files / "pairs.csv",
            out,
            files / "bundle",
            formats=FORMATS,
            options=SHORT,
        )
    assert contents(out) == before
    reports = align_many(
        files / "pairs.csv",
        out,
        files / "bundle",
        formats=FORMATS,
        options=SHORT,
        force=True,
    )
    assert {report.recording_sec for report in reports} == {4.0}


def test_a_folder_that_is_not_ours_is_left_alone(files: Path, tmp_path: Path) -> None:
    (tmp_path / "up1").mkdir()
    (tmp_path / "up1" / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="exists, but is no result of align-many"):
        align_many(files / "pairs.csv", tmp_path, files / "bundle", force=True)
    assert (tmp_path / "up1" / "thesis.tex").read_text() == "years of work"


def test_a_page_of_somebody_else_is_left_alone(files: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("my homepage")
    with pytest.raises(OutputError, match=r"index\.html: exists, but is no summary of align-many"):
        align_many(files / "pairs.csv", tmp_path, files / "bundle", force=True)
    assert (tmp_path / "index.html").read_text() == "my homepage"


def test_a_name_with_a_null_character_is_a_line_of_its_own(files: Path, tmp_path: Path) -> None:
    (report,) = align_many([("up\0.musicxml", files / "up1.wav")], tmp_path / "out", files / "bundle", jobs=1)
    assert report.status == "failed"
    assert "null" in report.message


def test_two_runs_on_one_folder_are_one_too_many(files: Path, tmp_path: Path) -> None:
    with locked_folder(tmp_path / "out"), pytest.raises(OutputError, match="another process is writing"):
        align_many(files / "pairs.csv", tmp_path / "out", files / "bundle")


def test_without_a_terminal_each_pair_has_a_line_as_it_ends(files: Path, tmp_path: Path) -> None:
    now = "from fusili_mir import progress; progress._LEAST_BETWEEN_SEC = 0.0"  # not after ten seconds
    arguments = [files / "pairs.csv", "-o", tmp_path / "out", "--model", files / "bundle", "--format", "json"]
    for options, expected in (((), 4), (("--force", "--quiet", "--end", "4"), 0)):
        command = FusiliCommand("align-many", *arguments, "--jobs", "1", *options, prelude=now)
        _, said = command.end()
        counted = re.findall(
            r"fusili-mir: aligning: (\d) of 4 \(\d+ %\), (\w+) aligned, \d+ s so far(, about \d+ s left)?\n",
            said,
        )
        assert command.process.returncode == 0, said
        assert len(counted) == expected
        if expected:
            assert [number for number, _, _ in counted] == ["1", "2", "3", "4"]
            assert sorted(name for _, name, _ in counted) == ["down1", "down2", "up1", "up2"]
            assert [bool(left) for _, _, left in counted] == [True, True, True, False]
        else:
            assert said == ""


def run(files: Path, out: Path) -> subprocess.Popen[str]:
    arguments = ["align-many", files / "pairs.csv", "-o", out, "--model", files / "bundle", "--jobs", "1"]
    arguments += [word for name in FORMATS for word in ("--format", name)]
    code = (  # a shell that runs the tests in the background disables Ctrl-C
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from fusili_mir.cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def wait_for(condition: Path, process: subprocess.Popen[str]) -> None:
    for _ in range(6000):
        if condition.exists() or process.poll() is not None:
            return
        time.sleep(0.01)


def children(pid: int) -> Iterator[int]:
    """Yield the processes that a process started (Linux)."""
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, tasks.read_text().split())


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find processes")
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_whole_results_and_goes_on(
    files: Path, expected: Path, tmp_path: Path, signal_number: int
) -> None:
    out = tmp_path / "out"
    killed = run(files, out)
    wait_for(out / "up1", killed)
    workers = list(children(killed.pid))
    killed.send_signal(signal_number)
    killed.communicate()
    whole = contents(expected)
    assert contents(out).items() <= {**whole, **drafts(out)}.items()
    assert still_there(workers) == []
    again = run(files, out)
    said, warned = again.communicate()
    assert again.returncode == 0
    assert "warning" not in warned
    assert said == f"4 aligned -> {out / 'index.html'}\n"
    assert contents(out) == whole
    assert not (out / ".drafts").exists()


def drafts(out: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(out, but=()).items() if name.startswith(".drafts")}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find processes")
def test_a_pair_whose_process_dies_is_a_line_and_the_others_go_on(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    going = run(files, out)
    wait_for(out / "up1", going)
    (worker,) = children(going.pid)
    os.kill(worker, signal.SIGKILL)
    said, warned = going.communicate()
    assert going.returncode == 1
    assert "the process that aligned it was killed (signal 9, SIGKILL), perhaps for lack of memory" in warned
    assert "use fewer processes (--jobs)" in warned
    assert said.startswith("3 aligned, 1 failed -> ")


def test_ctrl_c_keeps_what_is_done(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stopped = run(files, out)
    wait_for(out / "up2", stopped)  # by then, the result before it has been reported
    stopped.send_signal(signal.SIGINT)
    _, warned = stopped.communicate()
    assert stopped.returncode == 130
    assert warned.splitlines()[-1] == "fusili-mir: interrupted; repeat the command to go on"
    assert "up1" in (out / "summary.csv").read_text()
    assert not (out / ".drafts").exists()


def test_a_dask_cluster_gives_the_same_results(files: Path, expected: Path, tmp_path: Path) -> None:
    import distributed

    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster:
        reports = align_many(
            files / "pairs.csv",
            tmp_path / "out",
            files / "bundle",
            dask=cluster.scheduler_address,
            formats=FORMATS,
        )
    assert [report.status for report in reports] == ["aligned"] * 4
    assert contents(tmp_path / "out") == contents(expected)


def test_a_cluster_that_does_not_answer_is_one_line(files: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        align_many(files / "pairs.csv", tmp_path / "out", files / "bundle", dask="nonsense://nowhere:1")


def test_bad_settings_are_refused_before_anything_is_written(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="0 processes"):
        align_many(files / "pairs.csv", out, files / "bundle", jobs=0)
    with pytest.raises(InputError, match="format 'pdf'"):
        align_many(files / "pairs.csv", out, files / "bundle", formats=["pdf"])
    assert not out.exists()


def test_what_comes_from_files_is_escaped_on_the_page(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    report = PairReport(evil, evil, evil, "failed", repeats=evil, pitch=evil, message=evil)
    assert "<script" not in summary_html([report], 1, tmp_path)


def test_the_command_says_what_failed_and_ends_with_1(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = files / "bad.csv"
    table.write_text("score,recording\nup.musicxml,noise.wav\n")
    with pytest.raises(SystemExit) as ended:
        main(["align-many", str(table), "-o", str(tmp_path / "out"), "--model", str(files / "bundle")])
    said, warned = capsys.readouterr()
    assert ended.value.code == 1
    assert warned.startswith("fusili-mir: up--noise: ")
    assert warned.count("\n") == 1
    assert said == f"1 failed -> {tmp_path / 'out' / 'index.html'}\n"


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 3)])
def test_a_recording_of_something_else_is_doubtful(
    files: Path, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    table = files / "wrong.csv"
    table.write_text("score,recording,options\nup.musicxml,other.wav,\n")
    arguments = ["align-many", str(table), "-o", str(tmp_path / "out"), "--model", str(files / "bundle")]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--format", "notes", *options])
    assert ended.value.code == code
    assert rows_of(tmp_path / "out" / "summary.csv")[0]["status"] == "doubtful"


def test_it_is_a_public_name() -> None:
    assert fusili_mir.align_many is align_many
