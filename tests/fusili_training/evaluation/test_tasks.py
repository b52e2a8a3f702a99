"""Whole evaluations of bundles with known embeddings, and their output."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from example_bundles import write_ink_bundle
from example_datasets import write_melodies, write_table
from example_models import TINY_CLIP_CLAP

from fusili_export.checkpoints import load_trained
from fusili_export.exporting import export_bundle
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.cli.main import main
from fusili_mir.errors import InputError
from fusili_mir.model import encoder as encoder_module
from fusili_mir.model.bundle import load_bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.sessions.graph_session import GraphSession, open_session
from fusili_training.data.batch import collate
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.evaluating import TaskOptions, evaluate_bundle
from fusili_training.evaluation.local_store import LocalStore
from fusili_training.evaluation.onset_errors import errors_of_piece
from fusili_training.evaluation.pair_encoder import encode_pairs
from fusili_training.evaluation.report import Report
from fusili_training.evaluation.reproduce import fill_table
from fusili_training.evaluation.sinkhorn_ranking import compare_all_pairs, rerank_shortlists
from fusili_training.evaluation.whole_pieces import ScoredPieces
from fusili_training.loop.checkpoint import Checkpoint, Progress, save_checkpoint
from fusili_training.loop.recipe import Recipe
from fusili_training.losses.sinkhorn import fusili_similarity
from fusili_training.model.model import FusiliModel, ModelOptions
from fusili_training.truth import TRUTH_DTYPE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that reads melodies, and melodies as MSMD, shards and a table of scores."""
    folder = tmp_path_factory.mktemp("evaluate")
    write_melodies(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    from fusili_mir.model.bundle import load_bundle

    return Encoder(load_bundle(folder / "bundle"), n_threads=1)


@pytest.fixture(scope="module")
def report(folder: Path, encoder: Encoder) -> Report:
    options = TaskOptions(rankings=("pooled", "sinkhorn", "reranked"), n_shortlist=3)
    return evaluate_bundle(encoder, folder / "msmd", options).report


def test_a_bundle_that_is_right_is_far_above_chance_and_shuffled_frames(report: Report) -> None:
    (top1,) = [
        m for m in report.measurements if (m.task, m.variant, m.metric) == ("local", "paper's grid", "top-1")
    ]
    assert top1.found.value > 0.8  # in the gaps between notes it sees nothing
    assert top1.baselines["chance"] == pytest.approx(1 / 7)
    assert top1.baselines["shuffled"] < 0.5
    assert top1.baselines["straight line"] < 0.6


def test_each_line_finds_its_recording_in_the_order_of_its_notes(report: Report) -> None:
    assert report.n_pieces == 2
    assert report.n_pairs == report.measurements[4].n > 6
    for ranking in ("pooled", "sinkhorn", "reranked"):
        assert report.find("retrieval", "R@1", "A2I", ranking) == 1


def test_a_finer_grid_is_judged_twice(report: Report) -> None:
    variants = {each.variant for each in report.measurements if each.task in ("local", "point")}
    assert variants == {"own grid", "paper's grid"}
    assert report.find("point", "top-1", "I2A", "own grid") == 1


def test_whole_pieces_are_found_to_a_frame_from_images_alone(report: Report) -> None:
    assert report.find("onsets", "median ms", "") < 40  # type: ignore[operator]
    assert report.find("onsets", "within 250 ms", "") == 1


def test_a_table_of_scores_is_measured_with_and_without_the_score(folder: Path, encoder: Encoder) -> None:
    report = evaluate_bundle(encoder, folder / "scored" / "scores.csv", TaskOptions()).report
    # Sines start abruptly, and are seen a little early.
    assert report.find("onsets", "median ms", "", "pieces, with score") < 20  # type: ignore[operator]
    assert report.find("onsets", "within 50 ms", "", "pieces, with score") == 1
    assert report.find("onsets", "median ms", "", "pieces, images alone") < 40  # type: ignore[operator]
    with pytest.raises(InputError, match="for the task onsets only"):
        evaluate_bundle(encoder, folder / "scored" / "scores.csv", TaskOptions(tasks=("local",)))


def test_all_notes_are_lost_where_nothing_of_the_score_is_heard(folder: Path, encoder: Encoder) -> None:
    source = ScoredPieces(folder / "scored" / "scores.csv")
    whistle = np.sin(2.9 * np.arange(64_000, dtype=np.float32)) / 2  # 7.4 kHz, above all notes
    with source.open(source.pieces[0], "score") as piece:
        whistled = replace(piece, recording=AudioSamples(whistle, 16_000, "whistle"))
        assert np.isinf(errors_of_piece(whistled, encoder).model).all()


def test_shards_give_the_figures_of_the_same_segments_of_msmd(
    folder: Path, encoder: Encoder, report: Report
) -> None:
    shards = evaluate_bundle(encoder, folder / "shards", TaskOptions(tasks=("local", "onsets"))).report
    for variant in ("own grid", "paper's grid"):
        for metric in ("top-1", "PPL"):
            expected = report.find("local", metric, "A2I", variant)
            assert shards.find("local", metric, "A2I", variant) == pytest.approx(expected, abs=1e-3)
    assert shards.find("onsets", "within 100 ms", "", "segments") == 1


def test_clips_of_squares_are_20_s_long_with_silence_at_their_end(tmp_path: Path) -> None:
    encoder = Encoder(write_ink_bundle(tmp_path / "ink"), n_threads=1)
    rng = np.random.default_rng(0)
    image = np.full((224, 224), 255, np.uint8)
    pairs = [
        Pair(
            f"a.x.{i}",
            None,
            image,
            (rng.normal(size=16_000 * length) / 9).astype(np.float32),
            np.zeros(0, TRUTH_DTYPE),
            224,
            16_000,
        )
        for i, length in enumerate((3, 25))
    ]
    short, long = encode_pairs(encoder, pairs)
    assert len(short.frame_grid) == len(long.frame_grid) == 500
    assert len(short.patch_grid) == 49
    assert np.linalg.norm(short.audio_embedding) == pytest.approx(1)


def test_squares_hear_their_20_s_as_training_does(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = FusiliModel(ModelOptions("clip-clap", TINY_CLIP_CLAP)).eval()
    recipe = Recipe("squares", model=model.options)
    checkpoint = tmp_path / "best.pt"
    save_checkpoint(Checkpoint(recipe, Progress(), model.state_dict()), checkpoint)
    export_bundle(load_trained(checkpoint), tmp_path / "bundle")
    rng = np.random.default_rng(0)
    waveform = (rng.normal(size=14 * 48_000) / 90).astype(np.float32)  # quiet, and shorter than 20 s
    waveform[5 * 48_000 :] *= 0.1
    image = rng.integers(0, 256, (224, 224)).astype(np.uint8)
    pair = Pair("a.x.0", None, image, waveform, np.zeros(0, TRUTH_DTYPE), 224, 48_000)
    (found,) = encode_pairs(Encoder(load_bundle(tmp_path / "bundle"), n_threads=1), [pair])
    batch = collate([pair], 20 * 48_000)
    with torch.no_grad():
        expected = model(batch.images, batch.waveforms)
    assert len(found.frames) == 64  # two windows of 32, not three that overlap
    assert found.audio_embedding @ expected.recordings.pooled[0].numpy() == pytest.approx(1, abs=1e-4)
    cosines = (found.frames * expected.recordings.local[0].numpy()).sum(axis=1)
    assert cosines == pytest.approx(1, abs=1e-3)
    assert found.image_embedding @ expected.images.pooled[0].numpy() == pytest.approx(1, abs=1e-4)


def test_squares_are_judged_on_49_patches(folder: Path, tmp_path: Path) -> None:
    encoder = Encoder(write_ink_bundle(tmp_path / "ink"), n_threads=1)
    options = TaskOptions(tasks=("local", "point"))
    measured = evaluate_bundle(encoder, folder / "msmd", options).report.measurements
    assert {each.variant for each in measured} == {"paper's grid"}
    top1, perplexity, _, _ = measured
    assert top1.baselines["chance"] == pytest.approx(1 / 49, rel=0.1)  # sometimes two patches sound
    assert perplexity.baselines["chance"] == pytest.approx(49)
    assert perplexity.found.value == pytest.approx(49, abs=1)  # ink says nothing about pitch


def test_images_of_another_size_are_refused(tmp_path: Path) -> None:
    encoder = Encoder(write_ink_bundle(tmp_path / "ink"), n_threads=1)
    pair = Pair(
        "a.x.0",
        None,
        np.zeros((128, 300), np.uint8),
        np.ones(16_000, np.float32),
        np.zeros(0, TRUTH_DTYPE),
        128,
        16_000,
    )
    with pytest.raises(
        InputError, match=r"a\.x\.0: an image of 300 x 128 px .* takes strips or squares of 224"
    ):
        list(encode_pairs(encoder, [pair]))


# --- ranking by the Sinkhorn similarity


@pytest.fixture
def tokens() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Seven images and seven recordings of different lengths, partners alike."""
    rng = np.random.default_rng(2)
    images = [rng.normal(size=(rng.integers(3, 6), 8)).astype(np.float32) for _ in range(7)]
    recordings = [
        np.repeat(image, 2, axis=0) + rng.normal(size=(2 * len(image), 8)).astype(np.float32)
        for image in images
    ]
    return images, recordings


def slow_similarities(images: list[np.ndarray], recordings: list[np.ndarray]) -> np.ndarray:
    similarities = [
        [
            float(fusili_similarity(torch.from_numpy(i)[None], torch.from_numpy(r)[None], torch.tensor(10.0)))
            for r in recordings
        ]
        for i in images
    ]
    return np.array(similarities, dtype=np.float32)


def test_sinkhorn_ranks_are_those_of_similarities_one_by_one(
    tokens: tuple[list[np.ndarray], list[np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusili_training.evaluation.sinkhorn_ranking._BLOCK", 3)
    similarities = slow_similarities(*tokens)
    with LocalStore() as patches, LocalStore() as frames:
        for store, arrays in zip((patches, frames), tokens, strict=True):
            for array in arrays:
                store.append(array)
        np.testing.assert_allclose(compare_all_pairs(patches, frames, 10.0), similarities, rtol=1e-4)

        pooled = [np.stack([array.mean(axis=0, dtype=np.float32) for array in arrays]) for arrays in tokens]
        whole = rerank_shortlists(pooled[0], pooled[1], patches, frames, 10.0, 7)
        for found, expected in zip(whole, (similarities, similarities.T), strict=True):
            assert found.argsort(axis=1).tolist() == expected.argsort(axis=1).tolist()
        cosines = pooled[0] @ pooled[1].T
        shortest, _ = rerank_shortlists(pooled[0], pooled[1], patches, frames, 10.0, 1)
        assert shortest.argsort(axis=1).tolist() == cosines.argsort(axis=1).tolist()
        short, _ = rerank_shortlists(pooled[0], pooled[1], patches, frames, 10.0, 3)
        for row, by_cosine, by_sinkhorn in zip(short, cosines, similarities, strict=True):
            first = np.argsort(-by_cosine)[:3]
            reranked = [*first[np.argsort(-by_sinkhorn[first])], *np.argsort(-by_cosine)[3:]]
            assert np.argsort(-row).tolist() == reranked


def test_stored_embeddings_are_read_back_unchanged() -> None:
    arrays = [np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((1, 2), np.float32)]
    with LocalStore() as store:
        for array in arrays:
            store.append(array)
        assert [store.read(number).tolist() for number in (1, 0)] == [arrays[1].tolist(), arrays[0].tolist()]
        padded = store.read_padded([0, 1])
    assert padded.tokens.shape == (2, 3, 2)
    assert padded.mask.tolist() == [[True] * 3, [True, False, False]]


# --- the command line

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(folder)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", *map(str, arguments)])
        captured = capsys.readouterr()
        return int(str(ended.value.code)), captured.out, captured.err

    return run


def test_a_bundle_is_measured_from_the_command_line(run: Run, tmp_path: Path) -> None:
    code, out, err = run("bundle", "shards", "--task", "local", "--format", "json", "--plots", tmp_path / "p")
    assert (code, err) == (0, "")
    assert json.loads(out)["measurements"][0]["metric"] == "top-1"
    assert len(list((tmp_path / "p").glob("similarity-*.png"))) == 3


def test_batch_size_and_options_of_the_device_reach_the_model(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    def spy(graph: bytes, *arguments: object) -> GraphSession:
        asked.append(arguments)
        return open_session(graph, "cpu", 1)

    monkeypatch.setattr(encoder_module, "open_session", spy)
    chosen = ["--device", "cuda:1", "--batch", 3, "--device-option", "use_tf32=1"]
    code, out, err = run("bundle", "shards", "--task", "local", "--format", "csv", *chosen)
    assert (code, err) == (0, "")
    assert out
    assert {str(each[:3]) for each in asked} == {str(("cuda:1", None, {"use_tf32": "1"}))}
    code, out, err = run("bundle", "shards", "--device-option", "use_tf32")
    assert code
    assert "'use_tf32'; expected KEY=VALUE" in err


def test_retrieval_is_among_as_many_segments_as_were_asked_for(run: Run) -> None:
    code, out, err = run(
        "bundle", "shards", "--task", "local", "--task", "retrieval", "--segments", 3, "--format", "json"
    )
    assert (code, err) == (0, "")
    report = json.loads(out)
    measured = [each for each in report["measurements"] if each["task"] == "retrieval"]
    metrics = ["R@1", "MRR"] * 2 + ["R@1, repeats as one", "MRR, repeats as one"] * 2
    assert [each["metric"] for each in measured] == metrics
    recall = measured[0]
    assert recall["n"] == 3
    assert recall["baselines"]["chance"] == pytest.approx(1 / 3)
    assert report["n_pairs"] > 3  # local alignment is judged on all
    assert report["data"] == "shards (test)"


def test_matrices_are_measured_from_the_command_line(run: Run, tmp_path: Path) -> None:
    for number in range(2):
        np.save(tmp_path / f"Tune.whole.{number}.npy", np.zeros((7, 20)))
    files = sorted(tmp_path.glob("*.npy"))
    code, out, err = run("--matrix", *files, "shards", "--grid", "1x7", "--format", "csv", "--clip-sec", 2)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert float(rows[1]["value"]) == pytest.approx(7)  # the perplexity of a uniform guess


def test_a_table_is_filled_from_a_folder_of_bundles(run: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "table2-hybrid-fusili").symlink_to(folder / "bundle")
    code, out, err = run("--reproduce", "table2", tmp_path, "--on", "msmd=msmd", "--format", "csv")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert rows[0]["local top-1"].endswith("(0.30)")
    assert float(rows[0]["local top-1"].split()[0]) > 0.8
    assert rows[0]["MSMD A2I R@1"].startswith("1.00")
    assert rows[0]["PDMX I2A R@1"] == "- (0.72)"
    assert rows[1]["local top-1"] == "- (0.02)"


def test_the_pdmx_columns_are_one_segment_per_piece_of_the_rendered_test_split(
    folder: Path, encoder: Encoder, tmp_path: Path
) -> None:
    (tmp_path / "table2-hybrid-fusili").symlink_to(folder / "bundle")
    options = TaskOptions(splits=("train", "test"))  # MSMD's
    reports = fill_table("table2", tmp_path, {"pdmx": folder / "shards"}, options, lambda _: encoder)
    measured = reports["table2-hybrid-fusili"]["pdmx"]
    every = evaluate_bundle(encoder, folder / "shards", TaskOptions(tasks=("retrieval",))).report
    assert measured.n_pieces == every.n_pieces
    assert {each.n for each in measured.measurements} == {measured.n_pieces}
    assert every.measurements[0].n > every.n_pieces


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bundle"], "found 1 argument; expected BUNDLE DATA"),
        (["nowhere", "shards"], "nowhere: not found; expected a bundle"),
        (["bundle", "nowhere"], "nowhere: not found; expected a folder written by fusili-mir render"),
        (["bundle", "shards", "--split", "valid"], "no pairs for 'valid'"),
        (["bundle", "msmd", "--split", "test"], "needs its split file"),
        (["bundle", "shards", "--task", "retrieval", "--segments", 99], "99 segments were asked for; it has"),
        (["bundle", "shards", "--segments", 3, "--one-per-piece"], "does not go with --one-per-piece"),
        (["--matrix", "shards"], "found 1 argument; expected FILES... DATA"),
        (["--matrix", "a.npy", "shards"], "a.npy: not found"),
        (["--matrix", "a.npy", "shards", "--grid", "7"], "expected ROWSxCOLS"),
        (["--matrix", "a.npy", "shards", "--vertical", "all"], "expected a number of rows, or column"),
        (["--reproduce", "table1", "msmd", "--on", "msmd=msmd"], "msmd: none of the bundles of table1"),
        (["--reproduce", "table1", "msmd"], "no data; expected --on NAME=PATH"),
        (["--reproduce", "table1", "msmd", "--on", "imslp=x"], "data for 'imslp'"),
        (["--reproduce", "table1", "msmd", "--on", "msmd"], "expected NAME=PATH"),
    ],
)
def test_bad_input_gives_one_clear_line(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert code != 0
    assert out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def test_a_table_of_pairs_allows_retrieval_only(run: Run, folder: Path, tmp_path: Path) -> None:
    page = next((folder / "msmd" / "Tune").glob("scores/*/img/01.png"))
    audio = next((folder / "msmd" / "Tune").glob("performances/*/*.wav"))
    write_table(tmp_path / "t.csv", ["image_filename", "audio_filename"], [[page, audio]] * 2)
    code, out, _ = run("bundle", tmp_path / "t.csv", "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [float(row["value"]) for row in rows] == [0.5, 0.75, 0.5, 0.75]  # two equal pairs
    code, _, err = run("bundle", tmp_path / "t.csv", "--task", "local")
    assert code == 1
    assert "its notes are not known" in err
