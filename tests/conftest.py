"""What holds for all tests: one thread a process, since pytest already runs on every core."""

from __future__ import annotations

import os

for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
