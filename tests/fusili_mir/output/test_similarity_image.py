from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_bundles import write_pitch_bundle
from example_performances import perform, record, tune
from PIL import Image

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.similarity_image import draw_similarity, score_labels
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import load_pages, render_pages
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis

SMALL_PAGES = EngravingOptions(page_width_mm=90, page_height_mm=60, header=False)  # few measures per system


@pytest.fixture(scope="module")
def with_score(tmp_path_factory: pytest.TempPathFactory) -> Alignment:
    folder = tmp_path_factory.mktemp("score")
    (folder / "tune.musicxml").write_text(tune())
    pages = render_pages(folder / "tune.musicxml", SMALL_PAGES)
    encoder = Encoder(write_pitch_bundle(folder / "pitch"))
    return align_recording(pages, record(perform(play_pages(pages))), model=encoder)


@pytest.fixture(scope="module")
def of_images(tmp_path_factory: pytest.TempPathFactory, with_score: Alignment) -> Alignment:
    folder: Path = tmp_path_factory.mktemp("images")
    files = [folder / f"{page}.png" for page in range(len(with_score.pages.images))]
    for file, image in zip(files, with_score.pages.images, strict=True):
        Image.fromarray(image).save(file)
    encoder = Encoder(write_pitch_bundle(folder / "pitch"))
    return align_recording(load_pages(files), record(perform(play_pages(with_score.pages))), model=encoder)


def test_systems_are_labelled_at_their_first_stop_and_numbered_by_page(of_images: Alignment) -> None:
    labels = score_labels(of_images)
    course, columns = of_images.similarity.course, of_images.axis.columns
    assert of_images.pages.systems["page"].tolist() == [0, 0, 1]
    assert [label.text for label in labels] == ["page 1 system 1", "page 1 system 2", "page 2 system 1"]
    # Computed independently from the columns of each stop: the first stop that looks at each system.
    systems = [int(columns["system"][course.columns[first]]) for first in course.first[:-1]]
    assert [label.stop for label in labels] == [systems.index(system) for system in range(3)]
    assert labels[1].stop < int(np.flatnonzero(columns["system"][course.columns] == 1)[0])  # not a column


def test_no_label_lies_beyond_the_last_stop(of_images: Alignment, with_score: Alignment) -> None:
    for alignment in (of_images, with_score):
        stops = [label.stop for label in score_labels(alignment)]
        assert stops == sorted(stops)
        assert stops[-1] < len(alignment.similarity.course)


def test_measures_are_labelled_with_their_numbers_where_the_score_is_known(with_score: Alignment) -> None:
    labels = score_labels(with_score)
    assert with_score.played is not None
    assert [label.text for label in labels] == [
        f"measure {number}" for number in with_score.played.measures["number"]
    ]
    start = with_score.similarity.course.start
    assert [start[label.stop] for label in labels] == with_score.played.measures["start_beat"].tolist()


def test_titles_and_legend_stand_around_the_matrix(with_score: Alignment) -> None:
    picture = np.asarray(draw_similarity(with_score))
    above, below, left = picture[:30], picture[-20:], picture[:, :30]
    for margin in (above, below, left):
        assert (margin < 100).all(axis=-1).any(), "nothing is written there"
    assert (picture[:30] == (255, 60, 60)).all(axis=-1).any(), "the legend lacks the colour of the path"


def test_systems_are_named_from_the_top_of_their_page() -> None:
    columns = np.zeros(5, COLUMN_DTYPE)
    columns["system"] = [0, 0, 1, 2, 3]
    columns["page"] = [0, 0, 0, 2, 2]
    columns["x0"] = [0, 1, 0, 0, 0]
    names = ScoreAxis(columns).system_names()
    assert list(names.values()) == [
        "page 1 system 1",
        "page 1 system 2",
        "page 3 system 1",
        "page 3 system 2",
    ]
