"""Align a recording with a score, and compare the onsets with a reference.

python compare_with_mir_eval.py piece.musicxml recording.wav reference.match [--model BUNDLE]
"""

import argparse

import fusili_mir as fm
from fusili_integrations.onset_scores import reference_onsets, score_onsets

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("score", help="MusicXML, MXL or MEI")
parser.add_argument("audio", help="WAV, FLAC, MP3, ...")
parser.add_argument("reference", help="a .match file of the same recording and score")
parser.add_argument("--repeats", default="auto", help="how the reference plays the repeats, such as maximal")
parser.add_argument("--model", help="folder of a bundle; by default the installed one")
arguments = parser.parse_args()

_, alignment, _ = fm.align_score(
    arguments.score, arguments.audio, model=arguments.model, repeats=arguments.repeats
)
errors = score_onsets(alignment, reference_onsets(arguments.reference))

print(f"notes                {errors.n_onsets}")
print(f"median error         {1000 * errors.median_sec:.0f} ms")
for tolerance_ms, share in errors.within.items():
    print(f"within {tolerance_ms:>4} ms       {100 * share:.1f} %")
for name, value in errors.mir_eval.items():
    print(f"mir_eval {name:<12} {value:.4f}")
