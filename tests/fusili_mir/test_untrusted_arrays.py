from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_mir.untrusted_arrays import read_arrays


def test_what_numpy_saves_comes_back(tmp_path: Path) -> None:
    saved: dict[str, Any] = {
        "a": np.arange(6.0).reshape(2, 3),
        "text": np.array("hello"),
        "none": np.zeros((0, 4), np.float16),
    }
    np.savez(tmp_path / "a.npz", **saved)
    read = read_arrays(tmp_path / "a.npz")
    assert read.keys() == saved.keys()
    assert all(np.array_equal(read[name], saved[name]) for name in saved)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(1000))
    with pytest.raises(InputError, match=r"'a\.npy' is compressed"):
        read_arrays(tmp_path / "bomb.npz")


def test_a_shape_that_the_file_does_not_hold_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    data = (tmp_path / "a.npy").read_bytes().replace(b"(3,), }" + b" " * 12, b"(1000000000000,), }")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", data)
    with pytest.raises(InputError, match=r"declares \(1000000000000,\) of float64, and holds 24 bytes"):
        read_arrays(tmp_path / "a.npz")


def test_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="object"):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip"])
def test_what_is_no_archive_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"^no arrays \([^\n]*\)$"):
        read_arrays(tmp_path / "a.npz")
