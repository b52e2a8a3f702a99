"""partitura as the program imports it: in a process of its own, since this one has imported everything."""

from __future__ import annotations

import subprocess
import sys

START = "import sys; from fusili_mir.cli import late_imports; late_imports.import_partitura_lightly()\n"


def run(code: str) -> str:
    """Return what some code prints in a process that imports partitura lightly."""
    program = [sys.executable, "-c", START + code]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


def test_partitura_is_imported_without_signal_processing_and_tables() -> None:
    late = "['scipy.signal', 'scipy.stats', 'pandas']"
    assert (
        run(f"import partitura; print([name in sys.modules for name in {late}])") == "[False, False, False]\n"
    )


def test_its_function_that_finds_peaks_still_does() -> None:
    found = run(
        "from partitura.musicanalysis.performance_features import find_peaks\n"
        "print(find_peaks([0, 2, 0, 1, 3, 1], height=2.5)[0].tolist())"
    )
    assert found == "[4]\n"  # the 3; the 2 is too low


def test_what_stood_in_is_gone_afterwards() -> None:
    code = "import partitura, scipy.signal; print(scipy.signal.convolve([1, 2], [1, 1]).tolist())"
    assert run(code) == "[1, 3, 2]\n"


def test_modules_that_were_imported_before_stay() -> None:
    code = (
        "import scipy.signal as before, partitura\n"
        "from partitura.musicanalysis.performance_features import find_peaks\n"
        "print(sys.modules['scipy.signal'] is before, find_peaks is before.find_peaks)"
    )
    assert run(code) == "True True\n"


def test_its_own_files_are_found() -> None:
    assert (
        run("import partitura; print(len(partitura.load_score(partitura.EXAMPLE_MUSICXML).parts))") == "1\n"
    )


def test_a_function_that_is_called_while_its_module_is_stood_in_for_imports_the_module() -> None:
    code = (
        "late = late_imports._LateFunctions('colorsys')\n"
        "with late_imports._standing_in('colorsys', late): print(late.rgb_to_hsv(1.0, 1.0, 1.0))\n"
        "print('rgb_to_hsv' in vars(sys.modules['colorsys']))"
    )
    assert run(code) == "(0.0, 0.0, 1.0)\nTrue\n"
