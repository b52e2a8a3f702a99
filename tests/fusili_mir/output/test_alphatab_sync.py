"""alphaTab takes the sync points; where node and npm are there, alphaTab itself says so."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.alphatab_sync import save_sync_points, sync_points

PACKAGE = "@coderline/alphatab@1.8.4"
SCRIPT = """
import * as at from './package/dist/alphaTab.mjs';
import fs from 'node:fs';
const [scoreFile, pointsFile] = process.argv.slice(2);
const data = new Uint8Array(fs.readFileSync(scoreFile));
const score = at.importer.ScoreLoader.loadScoreFromBytes(data, new at.Settings());
score.applyFlatSyncPoints(JSON.parse(fs.readFileSync(pointsFile)));
const points = at.midi.MidiFileGenerator.generateSyncPoints(score).map(
  (point) => [point.masterBarIndex, point.masterBarOccurence, point.synthTick / 960, point.syncTime]
);
console.log(JSON.stringify(points));
"""


def test_each_measure_has_its_bar_its_occurrence_and_its_milliseconds(repeated: Alignment) -> None:
    starts = [point for point in sync_points(repeated) if point["barPosition"] == 0]
    assert [(point["barIndex"], point["barOccurence"]) for point in starts] == [
        (0, 0), (1, 0), (2, 0), (1, 1), (3, 0)
    ]  # fmt: skip
    seconds = [point["millisecondOffset"] / 1000 for point in starts]
    assert seconds == pytest.approx(repeated.measures["start_sec"].tolist(), abs=1e-3)


def test_times_grow_and_end_with_the_last_measure(duet: Alignment) -> None:
    points = sync_points(duet)
    times = [point["millisecondOffset"] for point in points]
    assert times == sorted(set(times))
    assert points[-1]["barPosition"] == 1
    assert times[-1] / 1000 == pytest.approx(duet.measures["end_sec"][-1], abs=1e-3)
    assert [point["barPosition"] for point in points[:4]] == [0, 0.5, 0, 0.5]  # quarters of 2/4


def test_measures_that_were_not_heard_have_no_point(cut_short: Alignment) -> None:
    heard = np.flatnonzero(np.isfinite(cut_short.measures["start_sec"]))
    assert {point["barIndex"] for point in sync_points(cut_short)} == set(heard.tolist())


def test_of_images_with_measures_the_starts_are_known(of_images: Alignment, cut_short: Alignment) -> None:
    with_measures = replace(of_images, measures=cut_short.measures)
    assert {point["barPosition"] for point in sync_points(with_measures)} == {0.0, 1.0}


@pytest.fixture(scope="module")
def alphatab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with alphaTab's package, from npm or its cache."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    folder: Path = tmp_path_factory.mktemp("alphatab")
    options = ["--prefer-offline", "--fetch-retries=0", "--fetch-timeout=20000", "--silent"]
    try:
        packed = subprocess.run(
            [npm, "pack", PACKAGE, *options], cwd=folder, capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm does not answer")
    if packed.returncode:
        pytest.skip(f"npm has no {PACKAGE} here")
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder, "gztar", filter="data")
    (folder / "read.mjs").write_text(SCRIPT)
    return folder


@pytest.mark.parametrize("name", ["repeated", "duet"])
def test_alphatab_puts_the_points_at_the_places_of_the_score(
    name: str, request: pytest.FixtureRequest, alphatab: Path, tmp_path: Path
) -> None:
    alignment: Alignment = request.getfixturevalue(name)
    save_sync_points(alignment, tmp_path / "points.json")
    command = ["node", "read.mjs", alignment.pages.filename, str(tmp_path / "points.json")]
    done = subprocess.run(command, cwd=alphatab, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    points = sync_points(alignment)
    assert [(bar, occurrence) for bar, occurrence, _, _ in found] == [
        (point["barIndex"], point["barOccurence"]) for point in points
    ]
    assert [time for *_, time in found] == [point["millisecondOffset"] for point in points]
    # The score in alphaTab's own ticks: the quarters at which partitura has the starts of measures.
    starts = [
        quarter for (_, _, quarter, _), point in zip(found, points, strict=True) if not point["barPosition"]
    ]
    beats = alignment.measures["start_beat"] - alignment.measures["start_beat"][0]  # of 2/4: quarters
    assert starts == pytest.approx(beats.tolist(), abs=0.01)
