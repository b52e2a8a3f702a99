"""Makes the recording, the scanned page and the truth of the example that comes with the package.

    python benchmarks/make_example.py fusili_mir/demo/files/hensel_bitte.mxl -o fusili_mir/demo/files --force

It needs fluidsynth and the soundfont FluidR3_GM (Debian: fluid-soundfont-gm).
"""

from fusili_benchmarks.example_piece import make_example

if __name__ == "__main__":
    make_example()
