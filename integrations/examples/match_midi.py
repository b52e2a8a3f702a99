"""Match a performance MIDI with a score note by note, guided by a recording of the same performance.

python match_midi.py piece.musicxml recording.wav performance.mid out.match [--model BUNDLE]
"""

import argparse
from collections import Counter

import partitura as pt

import fusili_mir as fm
from fusili_integrations.midi_matching import match_performance

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("score", help="MusicXML, MXL or MEI")
parser.add_argument("audio", help="WAV, FLAC, MP3, ...")
parser.add_argument("midi", help="the same performance as MIDI, on the time axis of the recording")
parser.add_argument("out", help="the .match file to write")
parser.add_argument("--model", help="folder of a bundle; by default the installed one")
arguments = parser.parse_args()

_, alignment, score = fm.align_score(arguments.score, arguments.audio, model=arguments.model)
performance = pt.load_performance_midi(arguments.midi)
matched = match_performance(alignment, score, performance)
pt.save_match(matched, performance, score, out=arguments.out)

for label, count in sorted(Counter(entry["label"] for entry in matched).items()):
    print(f"{label:<10} {count}")
