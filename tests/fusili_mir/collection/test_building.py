from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from example_collections import NAMES, write_collection

import fusili_mir as fm
from fusili_mir.cli.main import main
from fusili_mir.folder_lock import locked_folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collection")
    write_collection(folder)
    return folder


@pytest.fixture(scope="module")
def built(files: Path) -> Path:
    """An index that nobody disturbed."""
    build(files, files / "built", files / "scores", files / "recordings")
    return files / "built"


def build(files: Path, out: Path, *paths: Path, **options: object) -> fm.IndexReport:
    return fm.build_index(paths, out, model=files / "bundle", **options)  # type: ignore[arg-type]


def copied(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def content(index: fm.Index) -> tuple[object, ...]:
    return index.pieces, index.windows.tobytes(), index.vectors.tobytes()


def statuses(report: fm.IndexReport) -> dict[str, str]:
    return {Path(file.path).name: file.status for file in report.files}


def test_one_bad_file_is_a_line_of_the_report(built: Path) -> None:
    index = fm.open_index(built)
    assert [Path(piece.path).name for piece in index.pieces] == [
        *(f"{name}.musicxml" for name in NAMES),
        "ash.flac",
        "beech.flac",
    ]
    assert [piece.kind for piece in index.pieces] == ["score"] * 4 + ["recording"] * 2
    with (built / "report.csv").open() as table:
        rows = {Path(row["path"]).name: row for row in csv.DictReader(table)}
    assert rows["bad.mxl"]["status"] == "failed"
    assert "not a score that can be read" in rows["bad.mxl"]["message"]
    assert rows["ash.flac"]["status"] == "added"


def test_only_what_is_new_or_changed_is_encoded(files: Path, built: Path, tmp_path: Path) -> None:
    index = copied(built, tmp_path)
    scores = tmp_path / "scores"
    shutil.copytree(files / "scores", scores)
    (scores / "bad.mxl").unlink()
    build(files, index, scores)
    stamps = {file: file.stat().st_mtime_ns for file in index.rglob("*.npz")}
    os.utime(scores / "ash.musicxml")  # the same content at another time
    shutil.copy(scores / "elm.musicxml", scores / "beech.musicxml")
    (scores / "cedar.musicxml").unlink()
    report = build(files, index, scores, remove_missing=True)
    assert statuses(report) == {
        "ash.musicxml": "unchanged",
        "beech.musicxml": "changed",
        "elm.musicxml": "unchanged",
        "cedar.musicxml": "removed",
    }
    written = {file for file in index.rglob("*.npz") if stamps.get(file) != file.stat().st_mtime_ns}
    assert len(written) == 1
    assert len(stamps) - len(list(index.rglob("*.npz"))) == 1
    assert len(report.index) == 6 + 3


def test_a_file_that_has_moved_is_not_encoded_again_and_one_that_is_gone_is_named(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, index = tmp_path / "scores", tmp_path / "index"
    scores.mkdir()
    for name in NAMES[:3]:
        shutil.copy(files / "scores" / f"{name}.musicxml", scores)
    before = build(files, index, scores).index
    (scores / "sub folder").mkdir()
    (scores / "ash.musicxml").rename(scores / "sub folder" / "Äsche.musicxml")
    (scores / "beech.musicxml").unlink()
    monkeypatch.setattr("fusili_mir.collection.encoding_tasks.encode_file", None)  # nothing can be encoded
    report = build(files, index, scores)
    assert statuses(report) == {
        "Äsche.musicxml": "moved",
        "beech.musicxml": "missing",
        "cedar.musicxml": "unchanged",
    }
    assert {Path(piece.path).name for piece in report.index.pieces} == set(statuses(report))
    ash = next(place for place, piece in enumerate(before.pieces) if "ash" in piece.path)
    moved = next(place for place, piece in enumerate(report.index.pieces) if "sche" in piece.path)
    rows = [
        index.vectors[index.windows["piece"] == place]
        for index, place in ((before, ash), (report.index, moved))
    ]
    assert np.array_equal(*rows)
    assert statuses(build(files, index, remove_missing=True)) == {"beech.musicxml": "removed"}
    assert len(fm.open_index(index)) == 2
    assert len(list(index.rglob("*.npz"))) == 2


def test_a_file_that_is_gone_is_named_although_its_copy_is_still_there(files: Path, tmp_path: Path) -> None:
    scores, index = tmp_path / "scores", tmp_path / "index"
    scores.mkdir()
    for name in ("ash", "copy"):
        shutil.copy(files / "scores" / "ash.musicxml", scores / f"{name}.musicxml")
    build(files, index, scores)
    (scores / "copy.musicxml").unlink()
    report = build(files, index, scores)
    assert statuses(report) == {"ash.musicxml": "unchanged", "copy.musicxml": "missing"}
    assert len(report.index.pieces) == 2
    assert len(build(files, index, scores, remove_missing=True).index.pieces) == 1


def test_the_command_says_what_failed_and_what_is_missing(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    song, out = tmp_path / "song.musicxml", ["-o", str(tmp_path / "index"), "--model", str(files / "bundle")]
    shutil.copy(files / "scores" / "ash.musicxml", song)
    bad = str(files / "scores" / "bad.mxl")
    for arguments, code, said in (
        ([], 2, "no PATHS"),
        ([str(tmp_path)], 0, "1 added; 1 pieces"),
        ([bad, f"{tmp_path}/../{tmp_path.name}/song.musicxml"], 1, "1 unchanged, 1 failed; 1 pieces"),
        (["--repair"], 0, "no files; 1 pieces"),
        (["--remove-missing"], 0, "1 removed; 0 pieces"),
    ):
        if "--remove-missing" in arguments:
            song.unlink()
        with pytest.raises(SystemExit) as ended:
            main(["index", *arguments, *out])
        printed = capsys.readouterr()
        assert (ended.value.code, said in printed.out + printed.err) == (code, True), printed


def test_a_folder_without_music_is_one_line_and_makes_no_index(files: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(fm.InputError, match="empty: no scores or recordings; expected files such as"):
        build(files, tmp_path / "index", tmp_path / "empty")
    assert not (tmp_path / "index").exists()


def test_an_index_inside_the_folder_that_it_indexes_is_not_indexed(files: Path, tmp_path: Path) -> None:
    shutil.copy(files / "scores" / "ash.musicxml", tmp_path)
    build(files, tmp_path / "index", tmp_path)
    assert statuses(build(files, tmp_path / "index", tmp_path)) == {"ash.musicxml": "unchanged"}


def test_processes_and_a_cluster_build_the_same_index(files: Path, built: Path, tmp_path: Path) -> None:
    expected = content(fm.open_index(built))
    two = build(files, tmp_path / "two", files / "scores", files / "recordings", jobs=2)
    assert content(two.index) == expected
    listed = [*sorted((files / "scores").iterdir()), *sorted((files / "recordings").iterdir())]
    assert [file.path for file in two.files] == [str(path) for path in listed]  # whichever was done first
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        paths = (files / "scores", files / "recordings")
        far = build(files, tmp_path / "far", *paths, dask=cluster.scheduler_address)
    assert content(far.index) == expected


PLAIN = """
import sys
import fusili_mir as fm
print("begin", flush=True)
report = fm.build_index(sys.argv[1:3], "index", model=sys.argv[3], jobs=2)
print(sorted(file.status for file in report.files))
"""


def test_a_script_without_a_guard_uses_several_processes(files: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    paths = (files / "scores", files / "recordings", files / "bundle")
    program = [sys.executable, "plain.py", *map(str, paths)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        program, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.stdout == f"begin\n{['added'] * 6 + ['failed']}\n", done.stderr
    assert done.stderr == ""


def test_a_cluster_that_does_not_answer_is_one_line(files: Path, tmp_path: Path) -> None:
    with pytest.raises(fm.InputError, match="no Dask scheduler answers"):
        build(files, tmp_path / "index", files / "scores", dask="nonsense://nowhere:1")


def command(files: Path, out: Path, *paths: Path, jobs: int = 1) -> subprocess.Popen[str]:
    arguments = ["index", *paths, "-o", out, "--model", files / "bundle", "--jobs", jobs]
    program = [sys.executable, "-c", "from fusili_mir.cli.main import main; main()", *map(str, arguments)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def wait_for_pieces(out: Path, number: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and len(list(out.glob("pieces/*/*.npz"))) < number:
        time.sleep(0.005)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_is_killed_goes_on_where_it_was(
    files: Path, built: Path, tmp_path: Path, jobs: int
) -> None:
    paths, out = (files / "scores", files / "recordings"), tmp_path / "index"
    killed = command(files, out, *paths, jobs=jobs)
    wait_for_pieces(out, 2, killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert fm.open_index(out).pieces == []
    stamps = {file: file.stat().st_mtime_ns for file in out.glob("pieces/*/*.npz")}
    assert 2 <= len(stamps) < 6
    report = build(files, out, *paths)
    assert content(report.index) == content(fm.open_index(built))
    assert {file: file.stat().st_mtime_ns for file in stamps} == stamps


def test_a_kill_while_adding_leaves_the_old_index_whole(files: Path, built: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    build(files, out, files / "recordings")
    before = content(fm.open_index(out))
    killed = command(files, out, files / "scores")
    wait_for_pieces(out, 4, killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert content(fm.open_index(out)) == before
    assert content(build(files, out, files / "scores").index) == content(fm.open_index(built))


def test_of_two_writers_one_says_so_in_a_line(files: Path, built: Path, tmp_path: Path) -> None:
    out = copied(built, tmp_path)
    with locked_folder(out):
        late = command(files, out, files / "cedar.flac")
        said, warned = late.communicate()
    assert (late.returncode, said) == (1, "")
    assert warned.startswith(f"fusili-mir: {out}: another process is writing into it")
    assert len(warned.splitlines()) == 1


@pytest.mark.parametrize("name", ["score-1.faiss", "windows-1.npy", "vectors-1.npy", "pieces"])
def test_damaged_files_are_one_line_and_can_be_repaired(
    files: Path, built: Path, tmp_path: Path, name: str
) -> None:
    out = copied(built, tmp_path)
    broken = next((out / name).rglob("*.npz")) if name == "pieces" else out / name
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    with pytest.raises(fm.InputError, match=rf"{broken.name}: .*--repair"):
        fm.search(out, files / "cedar.flac", model=files / "bundle")
    report = build(files, out, files / "scores", files / "recordings", repair=True)
    assert content(report.index) == content(fm.open_index(built))
    assert fm.search(out, files / "elm.flac", model=files / "bundle", top=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "index the files again into another folder"),
        ('{"format": 99}', "an index of format 99, expected 1"),
        ('{"format": 1}', "manifest.json"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_one_line(
    built: Path, tmp_path: Path, text: str, said: str
) -> None:
    out = copied(built, tmp_path)
    (out / "manifest.json").write_text(text)
    with pytest.raises(fm.InputError, match=said):
        fm.open_index(out)


def test_a_folder_that_is_no_index_is_left_alone(files: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(fm.OutputError, match="a folder that is not an index"):
        build(files, tmp_path, files / "scores")
    with pytest.raises(fm.InputError, match="not an index"):
        fm.open_index(tmp_path)
    with pytest.raises(fm.InputError, match="not found"):
        build(files, tmp_path / "index", files / "nothing")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_runs_leave_that_are_killed_at_the_beginning_or_the_end_is_in_nobodys_way(
    files: Path, built: Path, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    for name in (".lock", ".manifest.json.1.part"):
        (begun / name).write_text("")
    build(files, begun, files / "scores" / f"{NAMES[0]}.musicxml")
    ended = copied(built, tmp_path)
    for name in ("pieces-0.json", "windows-0.npy", ".vectors-1.npy.1.part"):
        (ended / name).write_text("of the generation before")
    report = build(files, ended, files / "scores", files / "recordings")
    assert set(statuses(report).values()) == {"unchanged", "failed"}
    for index in (begun, ended):
        names = {file.name for file in index.iterdir()}
        tables = {"pieces-1.json", "windows-1.npy", "vectors-1.npy", "score-1.faiss", "recording-1.faiss"}
        assert names == {"manifest.json", "report.csv", "pieces", *tables}
