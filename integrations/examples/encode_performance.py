"""Align a recording with a score, and encode its expression: tempo, timing and articulation of every note.

python encode_performance.py piece.musicxml recording.wav [--model BUNDLE]
"""

import argparse

import partitura as pt

import fusili_mir as fm

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("score", help="MusicXML, MXL or MEI")
parser.add_argument("audio", help="WAV, FLAC, MP3, ...")
parser.add_argument("--model", help="folder of a bundle; by default the installed one")
arguments = parser.parse_args()

performance, alignment, score = fm.align_score(arguments.score, arguments.audio, model=arguments.model)
parameters, note_ids = pt.musicanalysis.encode_performance(score[0], performance[0], alignment)

print("id            beat_period_sec  timing_sec  articulation_log2")
for note_id, row in zip(note_ids, parameters, strict=True):
    print(
        f"{note_id:<12}  {row['beat_period']:15.3f}  {row['timing']:10.3f}  {row['articulation_log']:17.3f}"
    )
