from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fusili_mir.errors import OutputError
from fusili_mir.folder_lock import free_lock, hold_lock, locked_folder

HOLD = """
import sys, time
from fusili_mir.folder_lock import free_lock, hold_lock, locked_folder
from fusili_mir.whole_files import write_text
with locked_folder(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_that_a_folder_is_held_and_gets_it_when_the_first_is_killed(
    tmp_path: Path,
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(OutputError, match="another process is writing into it"), locked_folder(tmp_path):
        pass
    holder.kill()
    holder.communicate()
    with locked_folder(tmp_path) as folder:
        assert folder == tmp_path


FORK_AND_HOLD = """
import os, sys, time
from fusili_mir.folder_lock import hold_lock, locked_folder
other = hold_lock(sys.argv[2])
with locked_folder(sys.argv[1]):
    parent = os.getpid()
    if os.fork():
        time.sleep(60)
    print("forked", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_what_a_killed_process_held_is_free_while_a_process_that_it_forked_lives(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", FORK_AND_HOLD, str(tmp_path), str(tmp_path / "other")],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "forked\n"
    with pytest.raises(OutputError, match="another process is writing into it"), locked_folder(tmp_path):
        pass
    holder.kill()
    holder.wait()
    try:
        with locked_folder(tmp_path):
            free_lock(hold_lock(tmp_path / "other"))
    finally:
        os.killpg(holder.pid, 9)
        holder.communicate()


FORK_AND_LOOK = """
import os, sys
from pathlib import Path
from fusili_mir.folder_lock import locked_folder
from fusili_mir.whole_files import write_text
out = Path(sys.argv[1])
write_text(out / "before", "written under a lock that is free again")
with (out / "later").open("w") as later, locked_folder(out) as folder:
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        print((out / ".lock").exists())
    else:
        os.fstat(later.fileno())  # still open, though its number is that of a lock before
sys.exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_forked_process_leaves_the_lock_of_its_parent_and_other_files_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK_AND_LOOK, str(tmp_path)], capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_patient_process_waits_until_a_folder_is_free(tmp_path: Path) -> None:
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with locked_folder(tmp_path):
            held.set()
            free.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    with pytest.raises(OutputError, match="another process"), locked_folder(tmp_path, patience_sec=0.2):
        pass
    threading.Timer(0.3, free.set).start()
    begin_sec = time.monotonic()
    with locked_folder(tmp_path, patience_sec=60):
        assert 0.2 < time.monotonic() - begin_sec < 30
    holder.join()


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"), locked_folder(tmp_path / "file"):
        pass


def test_nothing_stays_in_a_folder_that_was_held(tmp_path: Path) -> None:
    with locked_folder(tmp_path / "out"):
        pass
    assert list((tmp_path / "out").iterdir()) == []
