import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fusili_mir.errors import InputError, OutputError
from fusili_training.soundbank import SoundBank, load_soundbank, save_soundbank


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
    monkeypatch.setattr(Path, "exists", lambda path: False)  # the other one came after this look
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
def test_a_contradictory_bank_is_refused(bank: SoundBank, change: dict[str, object]) -> None:
    with pytest.raises(InputError, match="ramp"):
        replace(bank, **change)
