"""The aligner: a model that is opened once, and aligns one score and one recording after another."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fusili_mir.alignment.align_options import AlignOptions
from fusili_mir.alignment.encoded_pair import EncodedPair
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.pitch_shift import find_pitch
from fusili_mir.alignment.requested_repeats import requested_repeats
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.swapped_files import refuse_swapped
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import RecordingLike, open_recording
from fusili_mir.freed_memory import give_back_memory
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.embedding_cache import encode_pages_cached
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.model.opened_encoder import as_encoder
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, check_score, open_pages
from fusili_mir.progress import stage

__all__ = ["Aligner"]

_log = logging.getLogger("fusili_mir")


class Aligner:
    """A model, opened once, that aligns scores with recordings.

    One aligner may be used by several threads.

    Parameters
    ----------
    model : str, Path, Bundle or Encoder, optional
        Model to encode with; by default the bundle that is installed with the package.
    device, batch_size, device_options
        Where and how the model runs; see `Encoder`.
    cache : str or Path, optional
        A folder that keeps the embeddings of scores for their next recordings.
    progress : bool
        Whether to show on a terminal what is being done.

    Examples
    --------
    >>> aligner = Aligner()
    >>> result = aligner.align("piece.musicxml", "recording.wav")  # doctest: +SKIP
    >>> result = aligner.align("scan.pdf", "tape.mp3", AlignOptions(pages="3-7", transpose=-2))  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | Path | Bundle | Encoder | None = None,
        *,
        device: str = "auto",
        batch_size: int | None = None,
        device_options: Mapping[str, str] | None = None,
        cache: str | Path | None = None,
        progress: bool = False,
    ) -> None:
        self.encoder = as_encoder(model, device, batch_size, device_options)
        self.cache = None if cache is None else Path(cache)
        self.progress = progress
        self._decoding = decoding_options(self.encoder.bundle)
        self._scores: dict[int, EncodedScore] = {}  # of the pages that are in use, by their identity

    def align(self, score: Any, recording: RecordingLike, options: AlignOptions | None = None) -> Alignment:
        """Align a recording with a score.

        Parameters
        ----------
        score : Pages, file, image or symbolic score
            What `open_score` opens, or has opened: such pages are encoded once, for one recording after another.
        recording : str, Path, (samples, rate), file object or Recording
            Anything that `open_recording` opens, such as an audio file or ``(y, sr)`` from librosa.
        options : AlignOptions, optional

        Returns
        -------
        Alignment
            Its `again` decodes it with other anchors in a moment.
        """
        # What is fast comes first, so that a mistake is found before long work.
        options = options or AlignOptions()
        refuse_swapped(score, recording)
        check_score(score, options.dpi, options.pages)
        self._check_model()
        opened = open_recording(recording, options.start_sec or None, options.end_sec)
        with HeardRecording(opened, self.encoder.bundle.audio.sample_rate_hz, self.progress) as heard:
            pages = self.open_score(score, options)
            requested = requested_repeats(pages, options.repeats)
            encoded = self.encode(pages)
            with stage("comparing pitches", shown=self.progress):
                pitch = find_pitch(
                    pages, encoded, heard, self.encoder, options.transpose, options.known_a4_hz
                )
            audio = self.encoder.encode_recording(heard, self.progress, pitch.above_pages)
        give_back_memory()  # decoding needs large arrays
        pair = EncodedPair(
            pages, opened, encoded, audio, self.encoder.bundle, pitch, self._decoding, requested, options
        )
        with stage("decoding", shown=self.progress):
            return pair.align(options.anchors)

    def open_score(
        self, score: Any, options: AlignOptions | None = None, engraving: EngravingOptions | None = None
    ) -> Pages:
        """Open a score, to align it with one recording after another.

        Parameters
        ----------
        score : Pages, file, image, symbolic score, or a sequence of images
            Anything that `open_pages` opens.
        options : AlignOptions, optional
            Which pages of it, and at which resolution.
        engraving : EngravingOptions, optional
            How a symbolic score is engraved for the model.
        """
        options = options or AlignOptions()
        return open_pages(score, engraving, options.dpi, self.progress, options.pages)

    def encode(self, pages: Pages) -> EncodedScore:
        """Return the embeddings of pages, which are kept as long as the pages are in use."""
        key = id(pages)
        if key not in self._scores:
            if self.cache is None:
                encoded = self.encoder.encode_pages(pages, self.progress)
            else:
                encoded = encode_pages_cached(pages, self.encoder, self.cache, self.progress)
            self._scores[key] = encoded
            weakref.finalize(pages, self._scores.pop, key, None)
        return self._scores[key]

    def _check_model(self) -> None:
        self.encoder.check()
        session = self.encoder.audio_session
        _log.info(
            "model: %s, %s, %d batches at once",
            self.encoder.bundle.folder,
            session.device,
            session.n_at_once,
        )
