"""Sound files that libsndfile reads, streamed block by block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import soundfile

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Float32
from fusili_mir.audio import audio_samples
from fusili_mir.audio.audio_samples import blocks_with_bar
from fusili_mir.boundary import reason, refuse_address
from fusili_mir.errors import InputError
from fusili_mir.library_noise import libraries_silenced
from fusili_mir.limits import check_limit

__all__ = ["AudioFile", "check_readable"]

_WEB_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


@checked
@dataclass(frozen=True)
class AudioFile:
    """A file in any format that libsndfile reads: WAV, FLAC, MP3, OGG, Opus, AIFF, ...

    Attributes
    ----------
    filename : Path
    label : str, optional
        Name used in messages, if it is not that of the file.
    """

    filename: Path
    label: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "filename", Path(self.filename))

    @property
    def name(self) -> str:
        """Name used in messages."""
        return self.label or str(self.filename)

    @property
    def sample_rate_hz(self) -> int:
        """Sampling rate of the file."""
        with self._open() as sound:
            return int(sound.samplerate)

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Read the file from start to end."""
        with self._open() as sound:
            n_block = max(1, audio_samples.BLOCK_VALUES // sound.channels)
            # The length in the header serves only the bar: damaged files and some MP3s are shorter or longer.
            n_expected = -(-max(sound.frames, 0) // n_block)
            yield from blocks_with_bar(self._read(sound, n_block), n_expected, progress)

    def _open(self) -> _ForwardFile:
        check_readable(self.filename, self.name)
        try:
            with libraries_silenced():
                sound = _ForwardFile(self.filename)
        except Exception as error:
            # a file without a header, such as .raw, is a TypeError: its sampling rate would have to be given
            raise InputError(
                f"{self.name}: not a sound file that can be read; expected WAV, FLAC, MP3, OGG, AIFF or another "
                "format that libsndfile reads"
            ) from error
        check_limit("channels", sound.channels, self.name)
        return sound

    def _read(self, sound: _ForwardFile, n_block: int) -> Iterator[Float32]:
        while True:
            try:
                with libraries_silenced():
                    block: Float32 = sound.read(n_block, dtype="float32", always_2d=True)
            except Exception as error:  # libsndfile, soundfile and numpy have no base in common
                second = sound.tell() / sound.samplerate
                raise InputError(
                    f"{self.name}: damaged after {second:.1f} s ({reason(error)}); expected a complete file"
                ) from error
            if not len(block):
                return
            yield block


def check_readable(filename: Path, name: str) -> None:
    """Raise an `InputError` unless there is a file with something in it."""
    refuse_address(filename)
    try:
        if not filename.is_file():
            found = (
                "a folder"
                if filename.is_dir()
                else "not a regular file"
                if filename.exists()
                else "not found"
            )
            raise InputError(f"{name}: {found}; expected a sound file")
        if filename.stat().st_size == 0:
            raise InputError(f"{name}: the file is empty; expected a sound file")
        with filename.open("rb") as file:
            start = file.read(1024)
        if _WEB_PAGE.match(start):  # libraries look for sound in all of it, and say so
            raise InputError(f"{name}: a web page, not a sound file; was it saved instead of the recording?")
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: cannot be read ({reason(error)}); expected a sound file") from error


class _ForwardFile(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A file that is only read from start to end.

    soundfile seeks after every read of a seekable file, and libsndfile cannot seek exactly in MP3: each block
    would begin with a click.
    """

    def seekable(self) -> bool:
        return False
