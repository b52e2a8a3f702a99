from __future__ import annotations

from fusili_mir.alignment.played import play_pages
from fusili_mir.demo.example import load_example
from fusili_mir.pages.pages import render_pages


def test_endings_written_in_the_first_part_only_apply_to_all_parts() -> None:
    pages = render_pages(load_example().score)  # its endings are written in the voice only
    once, twice = (play_pages(pages, unfold) for unfold in ("minimal", "maximal"))
    assert [str(number) for number in once.measures["number"][-3:]] == ["17", "19", "20"]
    assert len(once.notes) == 268
    assert len(twice.notes) == 529  # 268, the first ending, and what is repeated
