from pathlib import Path

import pytest

from fusili_training.sound.sample_names import SampleName, parse_sample_name, sample_layers


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("A0", SampleName(21)),
        ("Eb4", SampleName(63)),
        ("B-1", SampleName(11)),
        ("D#2v8", SampleName(39, layer=8)),
        ("F#1vH", SampleName(30, velocity=104)),
        ("MF C3", SampleName(48, velocity=70)),
        ("HEADROOM PIANO LEVEL1 CLOSE 66", SampleName(66, layer=1)),
        ("ViolaEns_susvib_C2_v2_1", SampleName(36, layer=2)),
        ("KSHarp_B3_mf", SampleName(59, velocity=70)),
        ("UR1_C4_pp_RR2", SampleName(60, velocity=36)),
        ("readme", None),
        ("Snare_rr1", None),
    ],
)
def test_names_of_several_libraries_are_read(stem: str, expected: SampleName | None) -> None:
    assert parse_sample_name(stem) == expected


def test_three_layers_are_spread_over_all_velocities() -> None:
    files = [Path(f"cello_C3_v{layer}_rr{take}.wav") for layer in (1, 2, 3) for take in (1, 2)]
    assert {velocity: [*pitches.values()] for velocity, pitches in sample_layers(files).items()} == {
        21: [Path("cello_C3_v1_rr1.wav")],
        64: [Path("cello_C3_v2_rr1.wav")],
        107: [Path("cello_C3_v3_rr1.wav")],
    }


def test_layers_may_be_counted_from_zero() -> None:
    files = [Path(f"piano_C3_v{layer}.wav") for layer in (0, 1)]
    assert sorted(sample_layers(files)) == [32, 96]
    assert sorted(sample_layers([Path("piano_C3_v0.wav")])) == [64]


def test_a_layer_of_few_recordings_joins_the_nearest() -> None:
    files = [Path(f"harp_{name}_mf.wav") for name in ("C3", "E3", "G3", "C4")] + [Path("harp_A1_f.wav")]
    assert {velocity: sorted(pitches) for velocity, pitches in sample_layers(files).items()} == {
        70: [33, 48, 52, 55, 60]
    }


def test_other_files_are_left_out() -> None:
    assert sample_layers([Path("A4.txt"), Path("license.wav")]) == {}
