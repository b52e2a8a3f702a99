from __future__ import annotations

import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest

from fusili_mir.cli import main as main_module
from fusili_mir.cli.examples import EXAMPLES
from fusili_mir.cli.main import main
from fusili_mir.cli.times import TIME
from fusili_mir.cli.verbosity import plain_warnings, say
from fusili_mir.errors import FusiliWarning

COMMANDS = list(main_module._COMMANDS)


def command(name: str) -> click.Command:
    found = main_module._cli.get_command(click.Context(main_module._cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_ends_with_examples_and_offers_quiet_and_verbose(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "-q, --quiet" in shown
    assert "-v, --verbose" in shown
    _, examples = shown.split("  Examples:\n")
    assert [line.strip() for line in examples.splitlines()] == list(EXAMPLES[name])


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in EXAMPLES.items() for line in lines]
)
def test_every_example_is_a_line_that_the_command_understands(name: str, line: str) -> None:
    program, found, *arguments = shlex.split(line.rpartition("| ")[2])
    assert (program, found) == ("fusili-mir", name)
    context = command(name).make_context(name, arguments)  # raises a UsageError for anything unknown
    context.close()


def test_quiet_and_verbose_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (["-q", "-v"], ["--verbose", "--quiet"]):
        with pytest.raises(SystemExit) as ended:
            main(["info", *flags])
        assert ended.value.code == 2
        assert "--quiet and --verbose exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("75", 75),
        ("75.5", 75.5),
        ("1:15.5", 75.5),
        ("0:05", 5),
        ("90:00", 5400),
        ("1:02:03.25", 3723.25),
        ("-1", -1),
    ],
)
def test_times_are_seconds_or_minutes_and_seconds(text: str, seconds: float) -> None:
    assert TIME.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["1:75", "1:60:00", "a", "1:2:3:4", ":30", "1:", "1:-5", ""])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"expected seconds or m:ss, such as 75\.5 or 1:15\.5"):
        TIME.convert(text, None, None)


def test_warnings_of_ours_are_printed_as_they_come_and_others_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with plain_warnings():
        warnings.warn("first\n  line", FusiliWarning, stacklevel=1)
        assert capsys.readouterr().err == "fusili-mir: warning: first line\n"
        warnings.warn("of another library", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == ""


def complete(words: str, incomplete: str) -> list[str]:
    """Ask for completions as bash does."""
    asked = {
        "_FUSILI_MIR_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split())),
    }
    if incomplete:
        asked["COMP_CWORD"] = str(len(words.split()) - 1)
    code = "from fusili_mir.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def test_a_shell_completes_commands_options_and_choices() -> None:
    code = "from fusili_mir.cli.main import main; main()"
    environment = {**os.environ, "_FUSILI_MIR_COMPLETE": "bash_source"}
    source = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "complete -o nosort -F _fusili_mir_completion fusili-mir" in source.stdout
    assert complete("fusili-mir al", "al") == ["plain,align", "plain,align-many"]
    assert "plain,--verbose" in complete("fusili-mir align --ver", "--ver")
    assert complete("fusili-mir align --repeats m", "m") == ["plain,maximal", "plain,minimal"]
    assert complete("fusili-mir align pie", "pie") == ["file,pie"]  # the shell completes files


def test_names_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with plain_warnings():
        warnings.warn("a\x1b]0;title\x07.mxl: odd\nvery \udcff", FusiliWarning, stacklevel=1)
    say("1 page -> out\x1b[31m\n\x9bred")
    shown = capsys.readouterr()
    assert shown.err == "fusili-mir: warning: a?]0;title?.mxl: odd very ?\n"
    assert shown.out == "1 page -> out?[31m\n?red\n"


needs_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")


@needs_full_device
@pytest.mark.parametrize("buffered", [True, False])
def test_a_full_disk_behind_standard_output_is_one_line(buffered: bool) -> None:
    command = [sys.executable, *([] if buffered else ["-u"])]
    command += ["-c", "from fusili_mir.cli.main import main; main(['info'])"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "fusili-mir: standard output: cannot be written (No space left on device)\n"


@needs_full_device
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["align", "--help"]])
def test_help_and_version_on_a_full_disk_are_one_line_too(arguments: list[str]) -> None:
    command = [sys.executable, "-c", f"from fusili_mir.cli.main import main; main({arguments})"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "fusili-mir: standard output: cannot be written (No space left on device)\n"


@needs_full_device
def test_an_error_that_nobody_can_be_told_is_seen_by_the_exit_code() -> None:
    command = [sys.executable, "-c", "from fusili_mir.cli.main import main; main(['info', 'no such bundle'])"]
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(command, stdout=full, stderr=full, check=False).returncode == 1
