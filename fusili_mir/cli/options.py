"""Options shared by the commands that align a recording with a score."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from fusili_mir.alignment.pair_options import KEPT_OPTIONS, PairOptions
from fusili_mir.boundary import printable
from fusili_mir.cli.anchor_values import ANCHOR
from fusili_mir.cli.device_options import device_options, read_device_options
from fusili_mir.cli.pitch_values import SEMITONES, TUNING_HZ
from fusili_mir.cli.times import TIME

if TYPE_CHECKING:
    from fusili_mir.alignment.anchors import Anchor
    from fusili_mir.alignment.encoded_pair import EncodedPair
    from fusili_mir.alignment.results import Alignment

__all__ = ["AlignmentOptions", "alignment_arguments", "alignment_options", "options_from_json"]

F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("fusili_mir")


@dataclass(frozen=True, kw_only=True)
class AlignmentOptions(PairOptions):
    """Values of the options that `alignment_options` adds."""

    model: Path | None = None
    device: str = "auto"
    device_options: tuple[str, ...] = ()
    batch_size: int | None = None
    cache: Path | None = None
    anchor: tuple[Anchor, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the options with which a result can be decoded again; anchors are in a table of their own."""
        return {"model": None if self.model is None else str(self.model.absolute()), **super().to_json()}

    def check(self, score: Sequence[Path], audio: str) -> bool:
        """Check a score and a recording in no time, and return whether the score is symbolic."""
        from fusili_mir.alignment.swapped_files import refuse_swapped
        from fusili_mir.pages.pages import check_score

        refuse_swapped(score, audio)
        return check_score(list(score), self.dpi, self.page_range)

    def align(self, score: Sequence[Path], audio: str) -> Alignment:
        """Align the recording with the score, with progress bars on a terminal."""
        from fusili_mir.alignment.aligning import align_pair
        from fusili_mir.alignment.anchors import as_anchors

        self.check(score, audio)
        anchors = (*self.anchor, *as_anchors(self.anchors))
        return align_pair(self.encode(score, audio), anchors, progress=True)

    def encode(self, score: Sequence[Path], audio: str) -> EncodedPair:
        """Encode score and recording.

        What is fast comes first, so that a mistake is found before long work: the model is opened, then the
        recording is read, then the score is engraved or its systems are found.
        """
        from fusili_mir.alignment.encoded_pair import encode_pair
        from fusili_mir.audio.heard_recording import HeardRecording
        from fusili_mir.audio.recording import open_recording
        from fusili_mir.model.encoder import Encoder
        from fusili_mir.pages.pages import open_pages

        options = read_device_options(self.device_options)
        encoder = Encoder(self.model, self.device, batch_size=self.batch_size, device_options=options)
        encoder.check()
        session = encoder.audio_session
        _log.info(
            "model: %s, %s, %d batches at once", encoder.bundle.folder, session.device, session.n_at_once
        )
        recording = open_recording(audio, self.start_sec, self.end_sec)
        with HeardRecording(recording, encoder.bundle.audio.sample_rate_hz, progress=True) as heard:
            pages = open_pages(list(score), dpi=self.dpi, progress=True, pages=self.page_range)
            return encode_pair(
                pages,
                heard,
                encoder,
                self.unfold,
                self.jumps,
                self.cache,
                progress=True,
                transpose=self.transpose,
                tuning=self.tuning,
                repeats=self.repeats,
            )


def options_from_json(kept: Mapping[str, Any]) -> AlignmentOptions:
    """Return the options that `AlignmentOptions.to_json` has kept; for those that are missing, the usual ones."""
    known = {name: kept[name] for name in KEPT_OPTIONS if name in kept}
    return AlignmentOptions(model=Path(kept["model"]) if kept.get("model") else None, **known)


def alignment_arguments(command: F) -> F:
    """Add the arguments SCORE... and AUDIO to a command."""

    @functools.wraps(command)
    def checked(*arguments: Any, score: tuple[Path, ...], audio: str | None, **options: Any) -> Any:
        if not score or audio is None:
            raise click.UsageError(_lacking(audio))
        return command(*arguments, score=score, audio=audio, **options)

    # Neither is required for click, which would always miss the first one.
    arguments = (
        click.argument("audio", metavar="AUDIO", required=False, type=click.Path(allow_dash=True)),
        click.argument("score", metavar="SCORE...", nargs=-1, type=click.Path(path_type=Path)),
    )
    for argument in arguments:
        checked = argument(checked)
    return cast(F, checked)


def _lacking(only: str | None) -> str:
    """Say which argument is missing, by what the only one is."""
    if only is None:
        return "Missing arguments SCORE and AUDIO."
    from fusili_mir.brought_files import is_picture, is_sound
    from fusili_mir.scores.score_formats import is_score_file

    shown = printable(only)
    if is_picture(only) or is_score_file(only):
        return f"Missing argument AUDIO: {shown} is a score; give the recording after it."
    if only == "-" or is_sound(only):
        return f"Missing argument SCORE: {shown} is a recording; give the score before it."
    return f"Expected two arguments, SCORE and AUDIO; found only {shown}."


def alignment_options(command: F) -> F:
    """Add the options of an alignment to a command, which passes them on to `AlignmentOptions`."""
    for option in (
        click.option(
            "--cache",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Keep the encoded score in FILE, for the next recording of it.",
        ),
        click.option(
            "--anchors",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A table of anchors (CSV), as the viewer writes it.",
        ),
        click.option(
            "--anchor",
            type=ANCHOR,
            multiple=True,
            metavar="MEASURE=SECOND",
            help="A measure whose second is known, such as 17=42.5, or 17:2=61 for the second time that it is "
            "played; may be repeated.",
        ),
        click.option("--end", "end_sec", type=TIME, help="Align the recording up to this time only."),
        click.option(
            "--start",
            "start_sec",
            type=TIME,
            help="Align the recording from this time on: seconds or m:ss. Results have its own times.",
        ),
        click.option(
            "--pages",
            "page_range",
            metavar="PAGES",
            help="Pages to use, such as 3-7 or 1,3-5; only for scores that are images.",
        ),
        click.option(
            "--dpi",
            type=float,
            default=200.0,
            show_default=True,
            help="Resolution at which PDF pages are drawn.",
        ),
        click.option(
            "--tuning",
            type=TUNING_HZ,
            metavar="auto|HZ",
            help="Frequency of A in the recording, transposition apart, such as 415.  [default: auto, or 440 "
            "with a number for --transpose]",
        ),
        click.option(
            "--transpose",
            type=SEMITONES,
            default="auto",
            show_default=True,
            metavar="auto|SEMITONES",
            help="Semitones by which the recording sounds above the score: -2 if it was sung a whole tone lower. "
            "auto: found by listening; 0: taken as it is.",
        ),
        click.option(
            "--jumps",
            is_flag=True,
            help="Expect the music to go on at measures that no repeat sign leads to, as with cuts.",
        ),
        click.option(
            "--repeats",
            metavar="MEASURES|FILE",
            help="Measures as played, such as '1-8 1-8 9-16', or a text file of them; instead of --unfold.",
        ),
        click.option(
            "--unfold",
            type=click.Choice(["auto", "maximal", "minimal", "none"]),
            default="auto",
            show_default=True,
            help="How repeats are played. auto: as fits the recording best; maximal: all of them; minimal: no "
            "repeats, only last endings; none: the score as written.",
        ),
        *device_options(),
        click.option(
            "--model",
            type=click.Path(path_type=Path),
            metavar="BUNDLE",
            help="Folder of the model.  [default: the installed one]",
        ),
    ):
        command = option(command)
    return command
