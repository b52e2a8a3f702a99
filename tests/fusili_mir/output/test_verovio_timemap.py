from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import verovio

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.mei_recording import save_mei
from fusili_mir.output.verovio_timemap import save_timemap, timemap


def test_every_note_that_was_heard_begins_and_ends_once(repeated: Alignment) -> None:
    events = timemap(repeated)
    for name in ("on", "off"):
        ids = [head for event in events for head in event.get(name, [])]
        assert sorted(ids) == sorted(repeated.notes["notated_id"].tolist())
    stamps = [event["tstamp"] for event in events]
    assert stamps == sorted(set(stamps))


def test_events_have_milliseconds_of_the_recording_and_quarters_of_the_unfolded_score(
    duet: Alignment,
) -> None:
    events = [event for event in timemap(duet) if "on" in event]
    first = [event["qstamp"] for event in events if event["on"][0] in set(duet.notes["notated_id"][::3])]
    assert set(first) <= set(range(16))
    onset = dict(zip(duet.notes["notated_id"].tolist(), duet.notes["onset_sec"].tolist(), strict=True))
    for event in events:
        for head in event["on"]:
            assert event["tstamp"] / 1000 == pytest.approx(onset[head], abs=1e-3)


def test_the_tempo_is_that_of_each_measure(duet: Alignment) -> None:
    tempos = [event["tempo"] for event in timemap(duet) if "tempo" in event]
    lengths = duet.measures["end_sec"] - duet.measures["start_sec"]
    assert tempos == pytest.approx((60 * 2 / lengths).tolist(), abs=0.01)
    assert tempos[0] > tempos[-2] + 5  # each beat is a bit longer than the last


def test_verovio_finds_every_id_and_its_own_timemap_has_the_same_form(
    duet: Alignment, tmp_path: Path
) -> None:
    save_mei(duet, tmp_path / "recording.mei")
    save_timemap(duet, tmp_path / "timemap.json")
    events = json.loads((tmp_path / "timemap.json").read_text())
    toolkit = verovio.toolkit()
    verovio.enableLog(verovio.LOG_OFF)
    assert toolkit.loadFile(str(tmp_path / "recording.mei"))
    theirs = toolkit.renderToTimemap()
    assert set().union(*events) == set().union(*theirs)
    struck = [set(event["on"]) for event in theirs if "on" in event]
    ours = [set(event["on"]) for event in events if "on" in event]
    assert set().union(*ours) == set().union(*struck)
    svg = toolkit.renderToSVG(1)
    assert all(f'id="{head}"' in svg for head in np.unique(duet.notes["notated_id"]))
