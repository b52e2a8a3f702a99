from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from fusili_mir.boundary import printable, read_limited, read_text_limited, reading
from fusili_mir.errors import FusiliWarning, InputError, MissingExtraError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (RecursionError("deep"), "nested too deeply"),
        (MemoryError(), "it takes too much memory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_whatever_is_raised_becomes_one_line(error: Exception, reason: str) -> None:
    with pytest.raises(InputError) as refused, reading("a.xml", "expected a score"):
        raise error
    assert str(refused.value) == f"a.xml: cannot be read ({reason}); expected a score"
    assert refused.value.__cause__ is error


def test_what_was_said_already_and_warnings_pass() -> None:
    with pytest.raises(MissingExtraError, match=r"^install it$"), reading("a.xml", "expected a score"):
        raise MissingExtraError("install it")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FusiliWarning), reading("a.xml", "expected a score"):
            warnings.warn("beware", FusiliWarning, stacklevel=1)


def test_names_are_shown_on_one_line_whatever_they_are() -> None:
    assert printable(Path("piece.mxl")) == "piece.mxl"
    assert printable("a\0b\r\n\udcff") == "a?b???"
    assert len(printable("x" * 5000)) == 303


def test_a_file_above_its_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_bytes(b"12345")
    monkeypatch.setenv("FUSILI_LIMITS", "table_bytes=5")
    assert read_limited(tmp_path / "a.csv", "table_bytes", "expected a table") == b"12345"
    monkeypatch.setenv("FUSILI_LIMITS", "table_bytes=4")
    with pytest.raises(InputError, match="5 bytes of a table, expected at most 4"):
        read_limited(tmp_path / "a.csv", "table_bytes", "expected a table")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: not a regular file"):
        read_limited(tmp_path / "pipe", "table_bytes", "expected a table")


def test_a_text_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"ab\xff")
    with pytest.raises(InputError, match=r"not a text in UTF-8, byte 2\); expected a table"):
        read_text_limited(tmp_path / "a.csv", "table_bytes", "expected a table")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices")
def test_a_device_without_end_is_refused() -> None:
    with pytest.raises(InputError, match="/dev/zero: not a regular file; expected a table"):
        read_limited(Path("/dev/zero"), "table_bytes", "expected a table")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no files that tell no size")
def test_a_file_that_tells_no_size_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSILI_LIMITS", "table_bytes=8")
    with pytest.raises(InputError, match="9 bytes of a table, expected at most 8"):
        read_limited(Path("/proc/self/status"), "table_bytes", "expected a table")
