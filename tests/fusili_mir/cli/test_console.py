"""The program `fusili-mir` as a process."""

from __future__ import annotations

import os
import subprocess
import sys

START = "import atexit, sys, types; from fusili_mir.cli import console\n"
INSTEAD = "sys.modules['fusili_mir.cli.main'] = types.SimpleNamespace(main=main)"
ALONE = {name: value for name, value in os.environ.items() if not name.startswith("COV")}


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, with something prepared beforehand."""
    program = [sys.executable, "-c", f"{START}{code}\nconsole.run()", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False, env=ALONE)


def test_output_and_exit_code_reach_the_caller() -> None:
    version = run("", "--version")
    assert (version.returncode, version.stdout[:20]) == (0, "fusili-mir, version ")
    wrong = run("", "align", "--no-such-option")
    assert (wrong.returncode, "No such option" in wrong.stderr) == (2, True)


def test_what_is_left_to_the_end_is_done_but_memory_is_not_taken_apart() -> None:
    ended = run(
        "class Held:\n"
        "    def __del__(self): print('freed')\n"
        "held = Held()\n"
        "def main():\n"
        "    atexit.register(print, 'at the end')\n"
        "    print('a line')\n"
        f"    sys.exit(3)\n{INSTEAD}"
    )
    assert (ended.returncode, ended.stdout) == (3, "a line\nat the end\n")


def test_what_others_have_left_to_the_end_before_is_done_too() -> None:
    ended = run(f"atexit.register(print, 'theirs')\ndef main(): sys.exit(0)\n{INSTEAD}")
    assert (ended.returncode, ended.stdout) == (0, "theirs\n")


def test_an_unexpected_error_is_shown() -> None:
    failed = run(f"def main(): raise RuntimeError('a bug')\n{INSTEAD}")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == "RuntimeError: a bug"
