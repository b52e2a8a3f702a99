"""Processes of `multiprocessing` that do not run the caller's script a second time.

By default, a process that is spawned first runs the script of the process that starts it: a script without
``if __name__ == "__main__":`` then starts itself over and over, and one from standard input cannot be found. Our
workers run functions of our own modules, which need nothing of that script.
"""

from __future__ import annotations

import signal
import sys
import threading
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from fusili_mir.staging import interrupts_held
from fusili_mir.worker_process import withheld_from_workers

__all__ = ["WorkerContext"]

_NAMES = ("__file__", "__spec__")  # by which `multiprocessing` finds the script
_STARTING = threading.Lock()


class _ScriptlessProcess(SpawnProcess):
    """A process that is spawned without the script, and that Ctrl-C does not reach."""

    def start(self) -> None:
        with _STARTING, interrupts_held(), withheld_from_workers(signal.SIGINT):
            main = vars(sys.modules["__main__"])
            hidden = {name: main[name] for name in _NAMES if name in main}
            main.update(dict.fromkeys(_NAMES))
            try:
                super().start()
            finally:
                for name in _NAMES:
                    del main[name]
                main.update(hidden)


class WorkerContext(SpawnContext):
    """A context for whatever starts processes by `multiprocessing`: an executor, a data loader."""

    def __init__(self) -> None:
        self._processes: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """Return a process that is to be started."""
        self._processes.append(_ScriptlessProcess(*arguments, **options))
        return self._processes[-1]

    def kill(self) -> None:
        """End all processes, whatever they do."""
        for process in self._processes:
            if process.is_alive():
                process.kill()
