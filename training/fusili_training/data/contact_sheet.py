"""A contact sheet of pairs: each image with its note boxes, and its spectrogram with the onsets.

A head and its onset have the same colour, which goes from blue to red in the course of the clip: if the boxes and
the lines go through the colours together, then image, sound and truth agree.
"""

from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont
from scipy import signal

from fusili_mir.arrays import Float32
from fusili_mir.whole_files import write_whole
from fusili_training.data.shard_folder import Pair, ShardFolder
from fusili_training.random_streams import random_stream

__all__ = ["draw_pair", "save_contact_sheet"]

_WIDTH_PX = 900
_SPECTRUM_PX = 128
_LARGEST_SCALE = 2.0
_MARGIN_PX = 12
_LABEL_PX = 16
_LOWEST_HZ, _HIGHEST_HZ = 50.0, 4000.0
_RANGE_DB = 60.0

Colour = tuple[int, int, int]


def save_contact_sheet(
    folder: str | Path, out: str | Path, split: str, n_pairs: int = 12, columns: int = 2, seed: int = 0
) -> None:
    """Write a PNG that shows some pairs of a rendered corpus.

    Parameters
    ----------
    folder : str or Path
        Folder written by `render_corpus`.
    out : str or Path
        The PNG file.
    split : str
    n_pairs, columns : int
        Number of pairs, and number of columns.
    seed : int
        Seed for the choice of the pairs.
    """
    shards = ShardFolder(folder, split)
    rng = random_stream(seed, "contact sheet")
    chosen = rng.permutation(len(shards.entries))[:n_pairs]
    drawn = [draw_pair(shards.read(shards.entries[place])) for place in chosen]
    rows = [drawn[start : start + columns] for start in range(0, len(drawn), columns)]
    heights = [max(image.height for image in row) + _MARGIN_PX for row in rows]
    sheet = Image.new("RGB", (columns * (_WIDTH_PX + _MARGIN_PX), sum(heights)), "white")
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for column, image in enumerate(row):
            sheet.paste(image, (column * (_WIDTH_PX + _MARGIN_PX), top))
        top += height
    write_whole(Path(out), lambda file: sheet.save(file, format="PNG"))


def draw_pair(pair: Pair) -> Image.Image:
    """Draw one pair: key, image with boxes, spectrogram with onsets."""
    duration_sec = len(pair.waveform) / pair.sample_rate_hz
    score = _draw_score(pair, duration_sec)
    sound = _draw_sound(pair, duration_sec)
    sheet = Image.new("RGB", (_WIDTH_PX, _LABEL_PX + score.height + sound.height), "white")
    label = f"{pair.key}   {duration_sec:.1f} s, {len(pair.truth)} heads"
    ImageDraw.Draw(sheet).text((0, 0), label, fill="black", font=ImageFont.load_default(size=12))
    sheet.paste(score, (0, _LABEL_PX))
    sheet.paste(sound, (0, _LABEL_PX + score.height))
    return sheet


def _draw_score(pair: Pair, duration_sec: float) -> Image.Image:
    scale = min(_LARGEST_SCALE, _WIDTH_PX / pair.image.shape[1])
    size = (round(pair.image.shape[1] * scale), round(pair.image.shape[0] * scale))
    image = Image.fromarray(pair.image).convert("RGB").resize(size)
    paint = ImageDraw.Draw(image, "RGBA")
    for note in pair.truth:
        colour = _colour(float(note["onset_sec"]) / duration_sec)
        box = tuple(scale * float(note[name]) for name in ("x0", "y0", "x1", "y1"))
        paint.rectangle(box, fill=(*colour, 90 if note["struck"] else 0), outline=colour)
    return image


def _draw_sound(pair: Pair, duration_sec: float) -> Image.Image:
    grey = _spectrum(pair.waveform, pair.sample_rate_hz)
    image = Image.fromarray(grey).resize((_WIDTH_PX, _SPECTRUM_PX)).convert("RGB")
    paint = ImageDraw.Draw(image)
    for note in pair.truth[pair.truth["struck"]]:
        x = float(note["onset_sec"]) / duration_sec * _WIDTH_PX
        y = _row_of(440.0 * 2.0 ** ((int(note["pitch"]) - 69) / 12)) * _SPECTRUM_PX
        paint.line((x, y - 5, x, y + 5), fill=_colour(x / _WIDTH_PX), width=2)
    return image


def _spectrum(waveform: Float32, sample_rate_hz: int) -> npt.NDArray[np.uint8]:
    """Return a spectrogram with a logarithmic frequency axis, low notes at the bottom [shape=(128, frames)]."""
    window = 2048 * sample_rate_hz // 16_000
    frequencies, _, spectrum = signal.stft(waveform, sample_rate_hz, nperseg=window, noverlap=window * 7 // 8)
    level_db = 20 * np.log10(np.abs(spectrum) + 1e-9)
    centres = (np.arange(_SPECTRUM_PX) + 0.5) / _SPECTRUM_PX
    wanted_hz = _HIGHEST_HZ * (_LOWEST_HZ / _HIGHEST_HZ) ** centres
    nearest = np.abs(frequencies[None] - wanted_hz[:, None]).argmin(axis=1)
    loud = np.clip(1 + (level_db[nearest] - level_db.max()) / _RANGE_DB, 0, 1)
    return np.asarray(np.rint(255 * (1 - loud)), dtype=np.uint8)


def _row_of(frequency_hz: float) -> float:
    """Return the height of a frequency in the spectrogram, from 0 (top) to 1 (bottom)."""
    return float(np.log(_HIGHEST_HZ / frequency_hz) / np.log(_HIGHEST_HZ / _LOWEST_HZ))


def _colour(share: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(0.67 * (1 - min(max(share, 0.0), 1.0)), 0.9, 0.85)
    return round(255 * red), round(255 * green), round(255 * blue)
