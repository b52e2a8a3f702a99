"""The repeat structure of a score: what its signs say about the order in which measures are played.

Symbolic scores and page images share this type. Measures are those that bar lines separate, in written order and
counted from 0. `fusili_mir.scores.playing_graph` says what may follow what.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fusili_mir.errors import InputError

__all__ = ["Ending", "Jump", "RepeatStructure"]


@dataclass(frozen=True)
class Ending:
    """Measures below a bracket, which are played on some passes only.

    Attributes
    ----------
    first, stop : int
        First measure, and the measure after the last one.
    numbers : tuple of int
        The passes on which it is played, from 1.
    """

    first: int
    stop: int
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Jump:
    """A da capo or dal segno.

    Attributes
    ----------
    after : int
        Measure at whose end it stands.
    to : int
        Measure with which the music continues: 0, or that of the segno.
    """

    after: int
    to: int = 0


@dataclass(frozen=True)
class RepeatStructure:
    """The repeats, endings and jumps of a score, all in written order.

    Attributes
    ----------
    n_measures : int
        Number of measures as written.
    begins, ends : tuple of int
        Measures that begin and that end with a repeat sign.
    times : tuple of int
        How often the passage that ends with each of `ends` is played if every repeat is taken; 2 if it is empty.
    endings : tuple of Ending
        First endings, second endings, ...
    jumps : tuple of Jump
        Da capo and dal segno.
    fine, to_coda : tuple of int
        Measures at whose end the music, after a jump, ends or leaves for the coda.
    coda : tuple of int
        Measures with which a coda begins.
    """

    n_measures: int
    begins: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    endings: tuple[Ending, ...] = ()
    jumps: tuple[Jump, ...] = ()
    fine: tuple[int, ...] = ()
    to_coda: tuple[int, ...] = ()
    coda: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.times and len(self.times) != len(self.ends):
            raise InputError(
                f"{len(self.ends)} repeats with {len(self.times)} numbers of times; expected as many"
            )
        signs = [*self.begins, *self.ends, *self.fine, *self.to_coda, *self.coda]
        signs += [measure for jump in self.jumps for measure in (jump.after, jump.to)]
        signs += [measure for ending in self.endings for measure in (ending.first, ending.stop - 1)]
        wrong = [measure for measure in signs if not 0 <= measure < self.n_measures]
        if wrong:
            raise InputError(
                f"a repeat sign at measure {wrong[0]}, counted from 0; the score has {self.n_measures} measures"
            )

    @property
    def has_repeats(self) -> bool:
        """Whether there is more than one way to play the score."""
        return bool(self.ends or self.endings or self.jumps)

    def within(self, first: int, stop: int) -> RepeatStructure:
        """Return the repeats and endings of some measures, counted as in the whole score.

        Endings that are cut off and all jumps are left out.

        >>> RepeatStructure(8, begins=(0, 4), ends=(3, 7)).within(0, 6).ends
        (3,)
        """
        kept = [number for number, end in enumerate(self.ends) if first <= end < stop]
        return replace(
            self,
            begins=tuple(begin for begin in self.begins if first <= begin < stop),
            ends=tuple(self.ends[number] for number in kept),
            times=tuple(self.times[number] for number in kept) if self.times else (),
            endings=tuple(each for each in self.endings if first <= each.first and each.stop <= stop),
            jumps=(),
        )
