from __future__ import annotations

import json
import logging
import os
import re
import warnings
import zipfile
import zlib
from pathlib import Path

import pytest

from fusili_mir.boundary import printable, read_limited, read_text_limited, reading, refuse_address
from fusili_mir.errors import FusiliWarning, InputError, MissingExtraError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("x"), "it is incomplete or contradicts itself"),
        (TypeError("int() argument must be a string"), "it is incomplete or contradicts itself"),
        (ValueError("invalid literal for int() with base 10: '1e9'"), "'1e9' where a number is expected"),
        (RuntimeError(), "it is incomplete or contradicts itself"),
        (RecursionError("deep"), "it is nested too deeply"),
        (MemoryError(), "it takes too much memory"),
        (EOFError(), "it ends too early"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("image file is truncated"), "image file is truncated"),
        (zipfile.BadZipFile("two\nlines"), "two"),
        (zlib.error("Error -3 while decompressing data"), "its compressed data are damaged"),
        (UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"), "not a text in UTF-8, byte 1"),
        (json.JSONDecodeError("Extra data", "{}}", 2), "not JSON at line 1, column 3: Extra data"),
    ],
)
def test_whatever_is_raised_becomes_one_line(error: Exception, reason: str) -> None:
    with pytest.raises(InputError) as refused, reading("a.xml", "expected a score"):
        raise error
    assert str(refused.value) == f"a.xml: cannot be read ({reason}); expected a score"
    assert refused.value.__cause__ is error


def test_verbose_tells_what_was_raised(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fusili_mir")
    with pytest.raises(InputError), reading("a.xml", "expected a score"):
        raise KeyError("n1177")
    assert caplog.messages == ["KeyError: 'n1177'"]


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.csv: not found; expected a table"):
        read_limited(tmp_path / "a.csv", "table_bytes", "expected a table")


@pytest.mark.parametrize(
    ("name", "shown", "advice"),
    [
        (Path("https://example.org/a.mxl"), "https://example.org/a.mxl", "download the file"),
        ("S3://bucket/a.mxl", "S3://bucket/a.mxl", "download the file"),
        (Path("ftp://example.org/a.mxl").absolute(), "ftp://example.org/a.mxl", "download the file"),
        ("file:///home/me/a.mxl", "file://home/me/a.mxl", "give its name without file:"),
    ],
)
def test_an_address_is_refused_as_one(name: str | Path, shown: str, advice: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"{shown}: an address, not a file; {advice}")):
        refuse_address(name)


@pytest.mark.parametrize("name", ["C:/music/a.mxl", "a.mxl", "take 1: http/a.mxl", "scan.pdf#3-7"])
def test_a_name_that_may_be_that_of_a_file_is_no_address(name: str) -> None:
    refuse_address(name)


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
