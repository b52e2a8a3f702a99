"""Making sound banks, from a soundfont played by fluidsynth or from a folder of single-note recordings.

The release of a soundfont is measured: each key is played a second time and released early, and the slope of the
decay in decibels is kept. fluidsynth's releases are linear in decibels, so the modelled decay is exact.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

from fusili_mir.arrays import Float32, Float64
from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH
from fusili_training.sound.sample_names import sample_layers
from fusili_training.sound.soundbank import SoundBank, load_soundbank, save_soundbank
from fusili_training.sound.soundfonts import FLUIDSYNTH_HZ, NoteRequest, Soundfont, play_notes

__all__ = ["bake_sample_folder", "bake_soundfont", "cached_soundbank"]


_HELD_SEC = 6.0
_RING_SEC = 1.5  # by then, the slowest releases have fallen by 50 dB
_EARLY_SEC, _EARLY_RING_SEC = 0.4, 1.1  # of the second playing, which measures the release
_LOOP_SEC, _CROSSFADE_SEC = 2.0, 0.5  # less for shorter notes
_SHORTEST_LOOPED_SEC = 0.5
_ATTACK_DB = -50.0  # below the peak: silence before the attack
_SILENCE_DB = -70.0  # below the peak: the end of a note that dies away
_SUSTAINED_DB = -16.0  # relative to the peak: a note still this loud after `_HELD_SEC` is sustained
_FADE_SEC = 0.02
_HIGHEST_HEARD_HZ, _NEARLY = 5000.0, 0.85
_REFERENCE_RMS, _REFERENCE_VELOCITY = 0.03, 64
_ENVELOPE_SEC = 0.01
_RELEASE_RANGE_DB_PER_SEC = (12.0, 1500.0)
_DAMPER_DB_PER_SEC, _UNDAMPED_DB_PER_SEC, _FIRST_UNDAMPED = (
    120.0,
    20.0,
    90,
)  # a grand piano has no dampers above F6
_NARROWEST = 12  # semitones from the lowest to the highest recording
_WIDEST_GAP = 6  # semitones between a recording and a key within its range that borrows it

_PITCHES = range(LOWEST_PITCH, HIGHEST_PITCH + 1)


def cached_soundbank(
    soundfont: Soundfont,
    program: int,
    sample_rate_hz: int,
    folder: str | os.PathLike[str],
    velocities: tuple[int, ...] = (40, 72, 104),
) -> SoundBank:
    """Return the bank of one program of a soundfont, baking it the first time.

    Parameters
    ----------
    soundfont : Soundfont
    program : int
        General MIDI program, counted from 0.
    sample_rate_hz : int
    folder : path
        The cache; processes may share it.
    velocities : tuple of int

    Returns
    -------
    SoundBank
    """
    recipe = f"1 {soundfont.path.stat().st_size} {velocities} {_HELD_SEC}"
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    place = Path(folder) / f"{soundfont.name}-{program:03d}-{sample_rate_hz}hz-{digest}"
    if not place.exists():
        save_soundbank(bake_soundfont(soundfont, program, sample_rate_hz, velocities), place)
    return load_soundbank(place)


def bake_soundfont(
    soundfont: Soundfont, program: int, sample_rate_hz: int, velocities: tuple[int, ...] = (40, 72, 104)
) -> SoundBank:
    """Record all 88 keys of one program at each velocity; parameters as in `cached_soundbank`."""
    middle = len(velocities) // 2
    sounds, release = [], np.empty(0)
    for layer, velocity in enumerate(velocities):
        held = play_notes(
            soundfont, program, [NoteRequest(p, velocity, _HELD_SEC, _RING_SEC) for p in _PITCHES]
        )
        if layer == middle:
            early = [NoteRequest(pitch, velocity, _EARLY_SEC, _EARLY_RING_SEC) for pitch in _PITCHES]
            release = _releases(held, play_notes(soundfont, program, early))
        kept = round(_HELD_SEC * FLUIDSYNTH_HZ)
        sounds.append([_tuned(sound[:kept], FLUIDSYNTH_HZ, sample_rate_hz) for sound in held])
    name = f"{soundfont.name} program {program}"
    return _assemble(name, soundfont.licence, sample_rate_hz, velocities, sounds, release)


def bake_sample_folder(
    folder: str | os.PathLike[str], sample_rate_hz: int, name: str = "", licence: str = "unknown"
) -> SoundBank:
    """Make a bank from recordings of single notes, such as the npm packages ``@audio-samples/piano-velocity*``.

    Parameters
    ----------
    folder : path
        Folder with audio files, also in subfolders, named after their note and their layer of velocity, see
        `fusili_training.sound.sample_names`. Keys without a recording borrow the nearest one, retuned. Whether
        octaves are counted as usual is heard.
    sample_rate_hz : int
    name, licence : str
        Stored in the bank; the name defaults to that of the folder.

    Returns
    -------
    SoundBank
    """
    place = Path(folder)
    layers = sample_layers(path for path in place.rglob("*") if path.is_file())
    if not layers:
        raise InputError(f"{place}: no note recordings found; expected files named like A0.wav or D#2v8.ogg")
    named = [(pitch, path) for files in layers.values() for pitch, path in files.items()]
    up = 12 * _octaves_up(named)
    lowest, highest = min(named)[0], max(named)[0]
    if highest - lowest < _NARROWEST:
        raise InputError(
            f"{place}: recordings of MIDI pitch {lowest} to {highest}; expected an octave at least"
        )
    sounds = []
    for velocity in sorted(layers):
        recordings = {pitch + up: _read_recording(path) for pitch, path in layers[velocity].items()}
        sounds.append([_borrow(recordings, pitch, sample_rate_hz, place) for pitch in _PITCHES])
    release = np.array(
        [_DAMPER_DB_PER_SEC if p < _FIRST_UNDAMPED else _UNDAMPED_DB_PER_SEC for p in _PITCHES]
    )
    return _assemble(name or place.name, licence, sample_rate_hz, tuple(sorted(layers)), sounds, release)


@dataclass(frozen=True, eq=False)
class _Recording:
    sound: Float32  # (samples,)
    rate_hz: int


def _read_recording(path: Path) -> _Recording:
    try:
        sound, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, soundfile.LibsndfileError) as error:
        raise InputError(
            f"{path}: cannot be read ({reason(error)}); expected the recording of a note"
        ) from error
    mono = sound.mean(axis=1, dtype=np.float32)
    if not mono.any():
        raise InputError(f"the note recording {path} is silent")
    return _Recording(mono, rate_hz)


def _octaves_up(files: list[tuple[int, Path]]) -> int:
    """Return by how many octaves notes sound above their names, which not all libraries count alike."""
    heard = [_heard_pitch(_read_recording(path)) - pitch for pitch, path in files]
    return round(float(np.median(heard)) / 12)


def _heard_pitch(recording: _Recording) -> float:
    """Estimate the MIDI pitch of a note by the autocorrelation of its first second."""
    sound = recording.sound[: recording.rate_hz]
    size = 2 ** int(np.ceil(np.log2(2 * len(sound))))
    power = np.square(np.abs(np.fft.rfft(sound * np.hanning(len(sound)), size)))
    alike = np.fft.irfft(power)[: len(sound) // 2]
    rises = np.flatnonzero(np.diff(alike) > 0)
    first = max(int(recording.rate_hz / _HIGHEST_HEARD_HZ), int(rises[0]) if len(rises) else 1)
    # Multiples of the period are peaks, too: the shortest of those that are nearly as high is the period.
    high = first + np.flatnonzero(alike[first:] >= _NEARLY * alike[first:].max(initial=0.0))
    period = high[0] + int(np.argmax(alike[high[0] : high[0] + max(2, high[0] // 8)])) if len(high) else 1
    return float(69 + 12 * np.log2(recording.rate_hz / period / 440.0))


def _borrow(recordings: dict[int, _Recording], pitch: int, sample_rate_hz: int, place: Path) -> Float32:
    nearest = min(recordings, key=lambda other: (abs(other - pitch), other))
    if abs(nearest - pitch) > _WIDEST_GAP and min(recordings) < pitch < max(recordings):
        raise InputError(f"no recording within {_WIDEST_GAP} semitones of MIDI pitch {pitch} in {place}")
    source = recordings[nearest]
    return _tuned(source.sound, source.rate_hz * 2 ** ((pitch - nearest) / 12), sample_rate_hz)


def _tuned(sound: Float32, rate_hz: float, sample_rate_hz: int) -> Float32:
    """Resample a recording and start it at its attack; a `rate_hz` other than its own retunes it."""
    resampled = np.asarray(soxr.resample(sound, rate_hz, sample_rate_hz), dtype=np.float32)
    loud = np.abs(resampled) > np.abs(resampled).max(initial=0.0) * 10 ** (_ATTACK_DB / 20)
    attack = int(np.argmax(loud)) if loud.any() else 0
    return resampled[attack : attack + round(_HELD_SEC * sample_rate_hz)]


def _assemble(
    name: str,
    licence: str,
    sample_rate_hz: int,
    velocities: tuple[int, ...],
    sounds: list[list[Float32]],
    release_db_per_sec: Float64,
) -> SoundBank:
    """Trim or loop the sounds [layers][88] and concatenate them."""
    middle = sounds[len(sounds) // 2]
    sustained = float(np.median([_closing_db(sound, sample_rate_hz) for sound in middle])) > _SUSTAINED_DB
    shortest = min(len(sound) for layer in sounds for sound in layer)
    loop, crossfade = 0, round(_CROSSFADE_SEC * sample_rate_hz)
    if sustained:
        shortest_sec = shortest / sample_rate_hz
        if shortest_sec < _SHORTEST_LOOPED_SEC:
            raise InputError(
                f"the shortest sustained note of {name!r} lasts {shortest_sec:.2f} s; "
                f"expected at least {_SHORTEST_LOOPED_SEC} s, so that it can be looped"
            )
        share = min(1.0, shortest_sec / (_LOOP_SEC + _CROSSFADE_SEC))
        loop, crossfade = int(share * _LOOP_SEC * sample_rate_hz), int(share * crossfade)
    finished = [
        [_loopable(sound, loop, crossfade) if sustained else _dying(sound, sample_rate_hz) for sound in layer]
        for layer in sounds
    ]
    length = np.array([[len(sound) for sound in layer] for layer in finished], dtype=np.int64)
    start = (np.cumsum(length) - length.ravel()).reshape(length.shape)
    row = np.concatenate([sound for layer in finished for sound in layer])
    scale = 32767.0 / max(float(np.abs(row).max()), 1e-9)
    tenor = finished[len(finished) // 2][48 - LOWEST_PITCH : 73 - LOWEST_PITCH]
    level = float(np.mean([np.sqrt(np.mean(np.square(sound[:sample_rate_hz]))) for sound in tenor]))
    level *= (_REFERENCE_VELOCITY / velocities[len(velocities) // 2]) ** 2
    return SoundBank(
        name=name,
        licence=licence,
        sample_rate_hz=sample_rate_hz,
        velocities=velocities,
        samples=np.rint(row * scale).astype(np.int16),
        start=start,
        length=length,
        release_db_per_sec=release_db_per_sec,
        loop_length=loop,
        gain=_REFERENCE_RMS / (level * scale),
    )


def _dying(sound: Float32, sample_rate_hz: int) -> Float32:
    """Cut the silence after a note and fade out its end."""
    heard = np.flatnonzero(np.abs(sound) > np.abs(sound).max() * 10 ** (_SILENCE_DB / 20))
    kept = sound[: int(heard[-1]) + 1 if len(heard) else 1].copy()
    fade = min(round(_FADE_SEC * sample_rate_hz), len(kept))
    kept[len(kept) - fade :] *= np.linspace(1.0, 0.0, fade, dtype=np.float32)
    return kept


def _loopable(sound: Float32, loop: int, crossfade: int) -> Float32:
    """Crossfade the end of a held note into the sound before its loop, so the loop repeats without a seam."""
    blended = sound.copy()
    ramp = np.linspace(0.0, 1.0, crossfade, dtype=np.float32)
    before = sound[len(sound) - loop - crossfade : len(sound) - loop]
    blended[len(sound) - crossfade :] = (1 - ramp) * sound[len(sound) - crossfade :] + ramp * before
    return blended


def _closing_db(sound: Float32, sample_rate_hz: int) -> float:
    envelope = _envelope(sound, 10 * _ENVELOPE_SEC, sample_rate_hz)
    return float(20 * np.log10(max(envelope[-1], 1e-9) / max(envelope.max(), 1e-9)))


def _releases(held: list[Float32], released: list[Float32]) -> Float64:
    """Measure the release of each key in dB/s, (88,); unclear ones take the median of the others."""
    slopes = np.array([_release_slope(full, cut) for full, cut in zip(held, released, strict=True)])
    clear = np.isfinite(slopes)
    return np.where(clear, slopes, np.median(slopes[clear]) if clear.any() else _DAMPER_DB_PER_SEC)


def _release_slope(held: Float32, released: Float32) -> float:
    """Return how fast a released note falls below the same note held, in dB/s; nan if this is unclear."""
    let_go = _envelope(released, _ENVELOPE_SEC, FLUIDSYNTH_HZ)
    kept = _envelope(held, _ENVELOPE_SEC, FLUIDSYNTH_HZ)[: len(let_go)]
    early = round(_EARLY_SEC / _ENVELOPE_SEC)
    fall_db = 20 * np.log10((let_go + 1e-9) / (kept + 1e-9))[early:]
    quiet = np.flatnonzero((fall_db < -30.0) | (let_go[early:] < 1e-6))
    used = fall_db[: int(quiet[0]) + 1 if len(quiet) else len(fall_db)]
    if len(used) < 2:
        return float("nan")
    slope = -float(np.polyfit(np.arange(len(used)) * _ENVELOPE_SEC, used, 1)[0])
    return float(np.clip(slope, *_RELEASE_RANGE_DB_PER_SEC))


def _envelope(sound: Float32, step_sec: float, sample_rate_hz: int) -> Float64:
    step = max(1, round(step_sec * sample_rate_hz))
    frames = sound[: max(len(sound) // step, 1) * step]
    rows = frames.reshape(-1, step) if len(sound) >= step else frames[None]
    return np.asarray(np.sqrt(np.mean(np.square(rows, dtype=np.float64), axis=1)))
