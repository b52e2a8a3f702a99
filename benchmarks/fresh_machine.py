"""What a newcomer meets: the README's two commands on a bare Debian that has nothing of this machine.

debootstrap makes the Debian in a folder; the committed state of the repository is cloned in it, and each command
is run there. This needs root, debootstrap, and up to 10 GB in the folder of temporary files (TMPDIR). pip is
configured there as it is for the Python that runs this script.

sudo python benchmarks/fresh_machine.py [--release trixie] [--python INTERPRETER] [COMMAND...]

Folders are mounted for the processes of the new machine alone: these mounts go with the last of them, however
they end, and nothing that was mounted can be reached when the folder is removed.
"""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("make demo", "make test")
PACKAGES = "python3-venv,git,make,ca-certificates"
HOME, CLONE = "/root", "/root/fusili-mir"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
CERTIFICATES = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
INDEXES = {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"}
LAST_LINES, LAST_LINES_OF_A_FAILURE = 4, 80


class RefusedError(Exception):
    """What is needed is not there, or failed."""


def pip_variables(listing: str) -> dict[str, str]:
    """Return what `pip config list` prints as variables; those of the environment come first there, and win."""
    found: dict[str, str] = {}
    for line in listing.splitlines():
        name, is_option, value = line.partition("=")
        if is_option:
            key = name.rpartition(".")[2].upper().replace("-", "_")
            found.setdefault(f"PIP_{key}", " ".join(str(ast.literal_eval(value)).split()))
    return found


def handed_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which programs find proxies and certificates."""
    return {
        name: value
        for name, value in environment.items()
        if name.lower() in PROXIES or (name in CERTIFICATES and value)
    }


def local_places(environment: Mapping[str, str]) -> set[Path]:
    """Return the files and folders that variables name; a package index may link to what lies beside it."""
    places = set()
    for name, value in environment.items():
        for word in value.split():
            path = Path(word.removeprefix("file://"))
            if path.is_absolute() and path.exists():
                places.add(path.parent if name in INDEXES and len(path.parts) > 2 else path)
    return places


def prefix_of(python: str) -> Path:
    """Return the folder of an interpreter."""
    try:
        asked = [python, "-c", "import sys; print(sys.base_prefix)"]
        prefix = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    except (OSError, subprocess.CalledProcessError) as error:
        raise RefusedError(f"{python}: not a Python that runs here ({error})") from error
    if prefix == Path("/usr"):
        raise RefusedError(
            f"{python}: belongs to this system; expected one with a folder of its own, as of pyenv"
        )
    return prefix


def inside(machine: Path, folders: Iterable[Path], environment: Mapping[str, str], command: str) -> list[str]:
    """Return the call that mounts folders, and runs a command of the shell in the new machine."""
    lines = ["set -e", f"cd {shlex.quote(str(machine))}", "mount -t proc proc proc"]
    lines += ["mount --rbind /sys sys", "mount --rbind /dev dev"]
    for folder in sorted(folders):
        source, target = shlex.quote(str(folder)), shlex.quote(f".{folder}")
        lines += [f"mkdir -p {target}", f"mount --bind {source} {target}"]
        lines += [f"mount -o remount,bind,ro {target}"]
    settings = [f"{name}={value}" for name, value in {"HOME": HOME, "PATH": PATH, **environment}.items()]
    lines.append(shlex.join(["exec", "chroot", ".", "env", "-i", *settings, "sh", "-c", command]))
    return [*UNSHARED, "sh", "-c", "\n".join(lines)]


UNSHARED = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
"""Begins a call whose mounts and processes end with it."""


def run(command: list[str]) -> tuple[int, list[str]]:
    """Run a program to its end, or kill it, and all that it has started, if this one is stopped."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            process.wait()
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        return process.returncode, log.read().splitlines()


def run_or_refuse(command: list[str]) -> None:
    """Run a program that the trial needs."""
    code, lines = run(command)
    if code:
        raise RefusedError("\n".join([f"{shlex.join(command)} ended with exit code {code}", *lines[-20:]]))


@contextmanager
def folder_of_machine() -> Iterator[Path]:
    """Provide a folder, and remove it at the end if nothing is mounted in it."""
    folder = Path(tempfile.mkdtemp(prefix="fusili-machine-")).resolve()
    try:
        yield folder
    finally:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        if any(Path(line.split()[4]).is_relative_to(folder) for line in mounts):
            print(f"{folder}: something is mounted in it; unmount it, then remove it", file=sys.stderr)
        else:
            shutil.rmtree(folder)


def make_machine(folder: Path, release: str, places: Iterable[Path]) -> None:
    """Make a bare Debian with a clone of the repository, and copies of the files that are named."""
    machine = folder / "machine"
    debootstrap = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, str(machine)]
    run_or_refuse([*UNSHARED, *debootstrap])
    for file in (Path("/etc/hosts"), *places):  # of this machine: the package index may be known by it alone
        if file.is_file():
            (machine / file.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, machine / file.relative_to("/"))
    bundle = machine / "repository.bundle"
    run_or_refuse(["git", "-C", str(ROOT), "bundle", "create", "--quiet", str(bundle), "HEAD"])
    run_or_refuse(inside(machine, (), {}, f"git clone --quiet /{bundle.name} {CLONE}"))
    bundle.unlink()


def try_commands(release: str, commands: Iterable[str], python: str | None) -> bool:
    """Print what each command took, and its last lines; return whether all of them passed."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    environment = {**pip_variables(listing), **handed_in(os.environ)}
    places = local_places(environment)
    if python is not None:
        prefix = prefix_of(python)
        places.add(prefix)
        environment["PYTHON"] = str(prefix / "bin" / "python3")
    start = time.monotonic()
    with folder_of_machine() as folder:
        make_machine(folder, release, places)
        print(f"{release}: a bare machine in {time.monotonic() - start:.0f} s", flush=True)
        folders = [place for place in places if place.is_dir()]
        failed = 0
        for command in commands:
            start = time.monotonic()
            code, lines = run(inside(folder / "machine", folders, environment, f"cd {CLONE} && {command}"))
            failed += code != 0
            outcome = f"failed with exit code {code}" if code else "passed"
            print(f"{release}, {command}: {outcome} in {time.monotonic() - start:.0f} s", flush=True)
            shown = lines[-LAST_LINES_OF_A_FAILURE if code else -LAST_LINES :]
            print("\n".join(f"    {line}" for line in shown), flush=True)
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=f"[default: {', '.join(COMMANDS)}]")
    parser.add_argument("--release", default="bookworm", help="[default: bookworm]")
    parser.add_argument("--python", metavar="INTERPRETER", help="One of this machine, for `make` to use.")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if os.geteuid() != 0:
            raise RefusedError("it needs root, for debootstrap and chroot; run it with sudo")
        missing = [name for name in ("debootstrap", "unshare", "git") if shutil.which(name) is None]
        if missing:
            raise RefusedError(
                f"it needs {', '.join(missing)}; install with: apt-get install debootstrap git"
            )
        return 0 if try_commands(asked.release, asked.commands or COMMANDS, asked.python) else 1
    except KeyboardInterrupt:
        return 130
    except RefusedError as error:
        print(f"fresh_machine.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
