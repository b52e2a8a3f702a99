"""The recipe for rendering a corpus into training pairs, read from TOML.

The defaults are those of the small model: staff strips and audio at 16 kHz. Ranges are (lowest, highest); values
are drawn uniformly for each piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from fusili_mir.boundary import reading
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError
from fusili_mir.geometry import strip_height_px
from fusili_mir.model.manifest import SegmentShape
from fusili_mir.pages.engraving import MusicFont
from fusili_mir.untrusted_toml import read_toml
from fusili_training.rendering.print_defects import DefectLimits
from fusili_training.sound.expression import Expression

__all__ = [
    "AudioOptions",
    "EngravingRanges",
    "MutationOptions",
    "PageOptions",
    "RenderRecipe",
    "SegmentOptions",
    "load_render_recipe",
]

Range: TypeAlias = tuple[float, float]

_OPUS_RATES_HZ = (8_000, 12_000, 16_000, 24_000, 48_000)


@dataclass(frozen=True)
class SegmentOptions:
    """Shape and size of segments.

    Attributes
    ----------
    shape : "staff_strips" or "square"
        The staves of one system, one below the other, each scaled to the same size; or some measures in one
        square image.
    space_px, margin_spaces : float
        Distance of the staff lines, and the margin above and below a staff in staff spaces; staff strips only.
    max_width_px : int
        Wider systems are split at measures; staff strips only.
    side_px, n_measures, hop_measures : int
        Size of the image, number of measures in it, and measures from one segment to the next; squares only.
    max_duration_sec : float
        Length of the longest segment.
    cut_long : bool
        Whether longer segments are cut off there; otherwise they are left out.
    alone : bool
        Whether each segment is engraved and played by itself, as if it were a piece of its own: with clef and
        key, and without notes that sound on from before; squares only.
    """

    shape: SegmentShape = "staff_strips"
    space_px: float = 8.0
    margin_spaces: float = 6.0
    max_width_px: int = 768
    side_px: int = 224
    n_measures: int = 8
    hop_measures: int = 4
    max_duration_sec: float = 20.0
    cut_long: bool = False
    alone: bool = False

    def __post_init__(self) -> None:
        _check(self.shape == "square" or not self.alone, "alone", self.alone, "false for staff strips")
        _check_choice("shape", self.shape, get_args(SegmentShape))
        for name in ("space_px", "max_width_px", "side_px", "n_measures", "hop_measures", "max_duration_sec"):
            _check(getattr(self, name) > 0, name, getattr(self, name), "more than 0")
        _check(self.margin_spaces >= 0, "margin_spaces", self.margin_spaces, "0 or more")

    @property
    def strip_height_px(self) -> int:
        """Height of one staff strip."""
        return strip_height_px(self.space_px, self.margin_spaces)


@dataclass(frozen=True)
class EngravingRanges:
    """How pages are engraved; `fusili_mir.pages.engraving.EngravingOptions` explains the names."""

    fonts: tuple[str, ...] = get_args(MusicFont)
    page_width_mm: Range = (150.0, 220.0)
    staff_height_mm: Range = (5.6, 7.6)
    spacing_linear: Range = (0.2, 0.3)
    spacing_nonlinear: Range = (0.55, 0.65)
    spacing_staff: Range = (8, 14)
    staff_space_px: Range = (8.0, 12.0)

    def __post_init__(self) -> None:
        _check(bool(self.fonts), "fonts", self.fonts, "at least one")
        for font in self.fonts:
            _check_choice("fonts", font, get_args(MusicFont))
        for item in fields(self):
            if item.name != "fonts":
                low, high = getattr(self, item.name)
                _check(0 < low <= high, item.name, (low, high), "two numbers above 0, the lower first")


@dataclass(frozen=True)
class PageOptions:
    """How pages are printed and degraded, and how inexactly their staves are located.

    Attributes
    ----------
    degraded : float
        Probability that the pages of a piece are degraded before segments are cut.
    strength : float
        Strength of the degradation, 0 to 1, as in `fusili_training.rendering.degrade.Degradation.draw`.
    rotation_deg : float
        Largest turn: what is left after deskewing.
    staff_shift_spaces, staff_scale : float
        Largest error of the place of a staff, in staff spaces, and of its size, as a share; staff strips only.
    printed : float
        Probability that the pages of a piece have the defects of an old print.
    defects : DefectLimits
        How large these are, as in `fusili_training.rendering.print_defects`.
    ossias : float
        Probability that the pages of a piece have ossias (`fusili_training.rendering.ossias`).
    fingerings : float
        Probability that the parts without words of a piece have fingerings
        (`fusili_training.notation.fingerings`); MusicXML only.
    """

    degraded: float = 0.0
    strength: float = 0.6
    rotation_deg: float = 0.1
    staff_shift_spaces: float = 0.15
    staff_scale: float = 0.02
    printed: float = 0.0
    defects: DefectLimits = field(default_factory=DefectLimits)
    ossias: float = 0.0
    fingerings: float = 0.0

    def __post_init__(self) -> None:
        for name in ("degraded", "strength", "printed", "ossias", "fingerings"):
            _check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "0 to 1")
        _check(0 <= self.rotation_deg <= 3, "rotation_deg", self.rotation_deg, "0 to 3")
        _check(0 <= self.staff_shift_spaces <= 2, "staff_shift_spaces", self.staff_shift_spaces, "0 to 2")
        _check(0 <= self.staff_scale <= 0.2, "staff_scale", self.staff_scale, "0 to 0.2")


@dataclass(frozen=True)
class AudioOptions:
    """How a piece sounds.

    Attributes
    ----------
    sample_rate_hz : int
    codec : "flac", "notes" or "opus"
        How clips are stored. "flac": without loss. "notes": as the notes that are played, with the sound banks
        beside the shards; reading synthesises the samples that FLAC would keep, which takes longer. "opus": with
        some loss, in a third of the space (Ogg Opus, about 60 kbit/s).
    lead_sec : float
        Longest lead of a clip before its first note and after its last measure.
    soundfonts : tuple of str
        Names as in `fusili_training.sound.soundfonts`; one is drawn for each piece. A folder of samples plays all
        parts, whatever the programs and velocities.
    strict_soundfonts : bool
        Whether a soundfont that is not installed is an error; otherwise another one replaces it.
    keyboard_programs, other_programs : tuple of int
        General MIDI programs for parts with several staves and for parts with one staff; one is drawn for each
        part.
    velocities : tuple of int
        MIDI velocities at which the keys of an instrument are recorded.
    singing : float
        Share of the scores with words whose voices are sung (`fusili_training.sound.singing`) and not played.
    sampled_solo : float
        Share of the scores whose parts of one staff are played by `solo_samples`, each by one that reaches all
        its notes, if there is one.
    solo_samples : tuple of (str, int, int)
        Folders of samples of one instrument each, with its lowest and highest MIDI pitch.
    """

    sample_rate_hz: int = 16_000
    codec: Literal["flac", "notes", "opus"] = "flac"
    lead_sec: float = 0.4
    soundfonts: tuple[str, ...] = ("FluidR3_GM", "MuseScore_General_Lite")
    strict_soundfonts: bool = False
    keyboard_programs: tuple[int, ...] = (0, 1)
    other_programs: tuple[int, ...] = (40, 52, 68, 73)
    velocities: tuple[int, ...] = (40, 72, 104)
    singing: float = 0.0
    sampled_solo: float = 0.0
    solo_samples: tuple[tuple[str, int, int], ...] = ()

    def __post_init__(self) -> None:
        _check(8_000 <= self.sample_rate_hz <= 96_000, "sample_rate_hz", self.sample_rate_hz, "8000 to 96000")
        _check_choice("codec", self.codec, ("flac", "notes", "opus"))
        _check(
            self.codec != "opus" or self.sample_rate_hz in _OPUS_RATES_HZ,
            "sample_rate_hz",
            self.sample_rate_hz,
            f"{', '.join(map(str, _OPUS_RATES_HZ))} with the codec opus",
        )
        _check(self.lead_sec >= 0, "lead_sec", self.lead_sec, "0 or more")
        _check(0 <= self.singing <= 1, "singing", self.singing, "0 to 1")
        _check(0 <= self.sampled_solo <= 1, "sampled_solo", self.sampled_solo, "0 to 1")
        _check(
            not self.sampled_solo or bool(self.solo_samples),
            "sampled_solo",
            self.sampled_solo,
            "0 without solo_samples",
        )
        for name, lowest, highest in self.solo_samples:
            _check(bool(name), "solo_samples", self.solo_samples, "a name for each")
            _check(
                0 <= lowest <= highest <= 127, f"range of {name}", f"{lowest}..{highest}", "two MIDI pitches"
            )
        for name in ("soundfonts", "keyboard_programs", "other_programs", "velocities"):
            _check(bool(getattr(self, name)), name, getattr(self, name), "at least one")


@dataclass(frozen=True)
class MutationOptions:
    """Whether each segment gets a mutant, and how far it differs; see `fusili_training.notation.mutations`."""

    mutants: bool = False
    probability: float = 0.15
    largest_shift: int = 4


@dataclass(frozen=True)
class RenderRecipe:
    """The whole recipe.

    Attributes
    ----------
    seed : int
        The same seed gives the same bytes.
    layouts : dict
        Weight of each layout of `fusili_training.notation.layouts.LAYOUTS`.
    layouts_per_piece : int
        Number of layouts that are rendered of each piece.
    pieces_per_shard : int
    expression : Expression
        Limits for the expression, which is drawn for each piece.
    """

    seed: int = 0
    layouts: Mapping[str, float] = field(default_factory=lambda: {"whole": 0.5, "piano": 0.35, "voice": 0.15})
    layouts_per_piece: int = 1
    pieces_per_shard: int = 16
    segment: SegmentOptions = field(default_factory=SegmentOptions)
    engraving: EngravingRanges = field(default_factory=EngravingRanges)
    page: PageOptions = field(default_factory=PageOptions)
    audio: AudioOptions = field(default_factory=AudioOptions)
    mutation: MutationOptions = field(default_factory=MutationOptions)
    expression: Expression = field(
        default_factory=lambda: Expression(
            tempo_factor=1.4,
            rubato=0.15,
            jitter_sec=0.012,
            chord_spread_sec=0.03,
            marks=1.0,
            dynamics=14.0,
            articulation=0.2,
            pedal=0.8,
        )
    )

    def __post_init__(self) -> None:
        from fusili_training.notation.layouts import LAYOUTS

        for layout, weight in self.layouts.items():
            _check_choice("layouts", layout, LAYOUTS)
            _check(weight >= 0, f"layouts.{layout}", weight, "0 or more")
        _check(sum(self.layouts.values()) > 0, "layouts", dict(self.layouts), "at least one weight above 0")
        _check(self.layouts_per_piece >= 1, "layouts_per_piece", self.layouts_per_piece, "at least 1")
        _check(self.pieces_per_shard >= 1, "pieces_per_shard", self.pieces_per_shard, "at least 1")
        _check(self.seed >= 0, "seed", self.seed, "0 or more")

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as nested dictionaries, lists and numbers."""
        return asdict(self)

    def with_seed(self, seed: int) -> RenderRecipe:
        """Return the same recipe with another seed."""
        return replace(self, seed=seed)

    def with_strict_soundfonts(self) -> RenderRecipe:
        """Return the same recipe, with no soundfonts but those that it names."""
        return replace(self, audio=replace(self.audio, strict_soundfonts=True))


def load_render_recipe(filename: str | Path) -> RenderRecipe:
    """Read a recipe; keys that it does not name keep their defaults, an unknown key is an error."""
    table = read_toml(Path(filename))
    with reading(filename, "expected a recipe"):
        try:
            return read_table(RenderRecipe, table)
        except InputError as error:
            raise InputError(f"{filename}: {error}") from error


def _check(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise InputError(f"{name} is {value}; expected {expected}")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _check(value in choices, name, repr(value), f"one of {', '.join(choices)}")
