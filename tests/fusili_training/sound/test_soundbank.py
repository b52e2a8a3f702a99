import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusili_mir.errors import InputError, OutputError
from fusili_training.sound.soundbank import SoundBank, load_soundbank, save_soundbank, start_at_attack


@pytest.fixture
def bank() -> SoundBank:
    length = np.arange(1, 177).reshape(2, 88)
    return SoundBank(
        name="ramp",
        licence="CC0",
        sample_rate_hz=8000,
        velocities=(40, 100),
        samples=np.arange(length.sum(), dtype=np.int16),
        start=(np.cumsum(length) - length.ravel()).reshape(2, 88),
        length=length,
        release_db_per_sec=np.full(88, 100.0),
        loop_length=0,
        gain=1e-4,
    )


def test_a_saved_bank_comes_back_memory_mapped(bank: SoundBank, tmp_path: Path) -> None:
    save_soundbank(bank, tmp_path / "cache" / "ramp")
    loaded = load_soundbank(tmp_path / "cache" / "ramp")
    assert isinstance(loaded.samples, np.memmap)
    assert (loaded.name, loaded.licence, loaded.velocities, loaded.gain) == ("ramp", "CC0", (40, 100), 1e-4)
    # layer 0, third key: after samples of length 1 and 2
    assert loaded.sample(0, 23).tolist() == [3, 4, 5]
    assert loaded.sample(1, 108).tolist() == bank.sample(1, 108).tolist()


def test_the_same_bank_is_the_same_bytes_and_no_draft_stays(bank: SoundBank, tmp_path: Path) -> None:
    save_soundbank(bank, tmp_path / "a")
    save_soundbank(bank, tmp_path / "b")
    save_soundbank(bank, tmp_path / "b")
    for name in ("bank.json", "samples.npy"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_of_two_processes_that_write_at_once_the_first_wins(
    bank: SoundBank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_soundbank(bank, tmp_path / "ramp")
    monkeypatch.setattr(Path, "exists", lambda path: False)  # the other process wrote it after this check
    save_soundbank(replace(bank, name="late"), tmp_path / "ramp")
    assert load_soundbank(tmp_path / "ramp").name == "ramp"
    assert [path.name for path in tmp_path.iterdir()] == ["ramp"]


def test_the_nearest_layer_plays(bank: SoundBank) -> None:
    assert [bank.layer(velocity) for velocity in (1, 69, 71, 127)] == [0, 0, 1, 1]


def test_a_bank_that_cannot_be_written_is_an_output_error(bank: SoundBank, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write sound bank"):
        save_soundbank(bank, tmp_path / "file" / "bank")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "bank.json").unlink(),
        lambda folder: (folder / "bank.json").write_text("[]"),
        lambda folder: (folder / "bank.json").write_text("{"),
        lambda folder: (folder / "bank.json").write_text(json.dumps({"format": "other"})),
        lambda folder: (folder / "samples.npy").write_bytes(b"\x93NUMPY"),
        lambda folder: np.save(folder / "samples.npy", np.zeros(3, dtype=np.int16)),
        lambda folder: np.save(folder / "samples.npy", np.zeros(20000, dtype=np.float32)),
    ],
)
def test_a_spoilt_bank_is_an_input_error(bank: SoundBank, tmp_path: Path, spoil: object) -> None:
    save_soundbank(bank, tmp_path / "ramp")
    spoil(tmp_path / "ramp")  # type: ignore[operator]
    with pytest.raises(InputError, match=r"bake it again|expected"):
        load_soundbank(tmp_path / "ramp")


@pytest.mark.parametrize(
    "change",
    [
        {"velocities": (100, 40)},
        {"start": np.zeros((1, 88), dtype=np.int64)},
        {"release_db_per_sec": np.zeros(88)},
        {"loop_length": 2},
    ],
)
def test_a_contradictory_bank_is_refused(bank: SoundBank, change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="ramp"):
        replace(bank, **change)


def test_what_is_softer_than_a_thirtieth_of_the_peak_before_the_attack_is_cut_but_for_a_millisecond(
    bank: SoundBank,
) -> None:
    length = np.full((2, 88), 100)
    sound = np.concatenate([np.full(40, 300), np.full(60, 10_000)]).astype(
        np.int16
    )  # -30.5 dB, then the peak
    late = replace(
        bank, samples=np.tile(sound, 176), start=np.arange(176).reshape(2, 88) * 100, length=length
    )
    started = start_at_attack(late)
    assert started.sample(1, 60).tolist() == [300] * 8 + [10_000] * 60  # 8 samples are 1 ms
    assert start_at_attack(started).start.tolist() == started.start.tolist()


def test_a_loop_is_not_cut_into(bank: SoundBank) -> None:
    sound = np.concatenate([np.zeros(90), np.full(10, 10_000)]).astype(np.int16)
    place: dict[str, Any] = {"start": np.arange(176).reshape(2, 88) * 100, "length": np.full((2, 88), 100)}
    looped = replace(bank, samples=np.tile(sound, 176), loop_length=60, **place)
    assert set(start_at_attack(looped).length.ravel().tolist()) == {60}
