"""Align a recording with a score, and draw its tempo curve.

python draw_tempo_curve.py piece.musicxml recording.wav tempo.png [--model BUNDLE]
"""

import argparse

import fusili_mir as fm
from fusili_integrations.tempo_curve import draw_tempo_curve, tempo_curve

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("score", help="MusicXML, MXL or MEI")
parser.add_argument("audio", help="WAV, FLAC, MP3, ...")
parser.add_argument("out", help="the picture to write: PNG, JPEG, ...")
parser.add_argument("--span-beat", type=float, default=1.0, help="length over which a tempo is measured")
parser.add_argument("--model", help="folder of a bundle; by default the installed one")
arguments = parser.parse_args()

_, alignment, score = fm.align_score(arguments.score, arguments.audio, model=arguments.model)
curve = tempo_curve(alignment, score, arguments.span_beat)
draw_tempo_curve(curve).save(arguments.out)
tempo = curve["beats_per_minute"]
print(f"{len(curve)} spans, {tempo.min():.0f} to {tempo.max():.0f} beats per minute -> {arguments.out}")
