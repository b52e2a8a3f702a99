from __future__ import annotations

from pathlib import Path

import example_scores

from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.scores.score_file import read_score_file
from fusili_training.notation.line_breaks import write_line_breaks


def test_lines_end_where_they_are_told_to_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "song.musicxml"
    breaks = "<measure number='2'><print new-page='yes'/>"
    path.write_text(example_scores.song(8).replace("<measure number='2'>", breaks))
    score_file = read_score_file(path)
    write_line_breaks(score_file.root, {0, 3, 4})
    measures = engrave(score_file, EngravingOptions(breaks="line")).measures
    assert measures["system"].tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    assert set(measures["page"]) == {0}
