"""Does `fusili-mir align` write the same bytes whatever fonts, locale, CPUs, seeds and time zone there are?

    python benchmarks/determinism.py                       # the example, as a score and as an image
    python benchmarks/determinism.py SCORE RECORDING

Each surrounding is one run; its files are compared with those of the first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fusili_benchmarks.surroundings import checksums, make_surroundings, run_in
from fusili_mir.demo.example import load_example

COMMAND = "from fusili_mir.cli.main import main; main()"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("score", nargs="?", type=Path)
    parser.add_argument("recording", nargs="?", type=Path)
    arguments = parser.parse_args()
    example = load_example()
    scores = [arguments.score] if arguments.score else [example.score, example.page]
    recording = arguments.recording or example.recording
    n_different = 0
    with tempfile.TemporaryDirectory() as folder:
        surroundings = make_surroundings(Path(folder) / "surroundings")
        print("| score | surroundings | files | different from the first |\n| --- | --- | --- | --- |")
        for score in scores:
            first: dict[str, str] | None = None
            for number, (name, around) in enumerate(surroundings.items()):
                out = Path(folder) / f"{score.suffix[1:]}-{number}" / "out"
                pair = [str(score.absolute()), str(recording.absolute())]
                done = run_in(around, "-c", COMMAND, "align", *pair, "-o", str(out))
                if done.returncode:
                    sys.exit(f"{name}: {done.stderr}")
                found = checksums(out)
                first = first or found
                different = sorted(file for file in {*found, *first} if found.get(file) != first.get(file))
                n_different += len(different)
                print(
                    f"| {score.name} | {name} | {len(found)} | {', '.join(different) or 'none'} |", flush=True
                )
    sys.exit(1 if n_different else 0)


if __name__ == "__main__":
    main()
