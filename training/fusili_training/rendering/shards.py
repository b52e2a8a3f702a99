"""Shards: tar archives of pairs in WebDataset's format, which get their final name only when they are complete.

The members of a pair are adjacent: ``piece/layout/number.png``, ``.flac`` and ``.json``. Their name is the key of
the pair with slashes in place of dots, as WebDataset ends a key at the first dot; a mutant has ``/mutant`` after
its number. Each shard has a JSON file of the same name, its sidecar, which says what the shard contains, where
each pair begins, and what was left out. It is written last, so a shard with a sidecar is complete. Owner, time
and mode of all members are fixed: the same pairs give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fusili_mir.errors import OutputError
from fusili_mir.whole_files import whole_file
from fusili_training.rendering.segment_pair import Sample

__all__ = ["shard_name", "sidecar_of", "write_json", "write_shard"]


def shard_name(split: str, number: int) -> str:
    """Return the file name of a shard."""
    return f"shard-{split}-{number:06d}.tar"


def sidecar_of(shard: Path) -> Path:
    """Return the JSON file that describes a shard."""
    return shard.with_suffix(".json")


def write_shard(shard: Path, samples: Iterable[Sample]) -> dict[str, Any]:
    """Write pairs as a tar archive.

    Parameters
    ----------
    shard : Path
        Path of the archive; an existing one is replaced.
    samples : iterable of Sample
        Written as they are made; an error in between leaves no file behind.

    Returns
    -------
    dict
        Content of the sidecar: size and SHA-256 of the archive; key, original, place and size of each pair.
    """
    listed = []
    with _whole(shard) as file:
        digest = _HashingFile(file)
        with tarfile.open(fileobj=digest, mode="w", format=tarfile.USTAR_FORMAT) as archive:  # type: ignore[call-overload]
            for sample in samples:
                offset = archive.offset
                for ending, data in sample.members.items():
                    member = tarfile.TarInfo(f"{sample.key.replace('.', '/')}.{ending}")
                    member.size, member.mode = len(data), 0o644
                    archive.addfile(member, io.BytesIO(data))
                listed.append(
                    {
                        "key": sample.key,
                        "mutant_of": sample.mutant_of,
                        "offset": offset,
                        "size": archive.offset - offset,
                        "width_px": sample.width_px,
                        "duration_sec": sample.duration_sec,
                    }
                )
    return {"bytes": digest.n_bytes, "sha256": digest.hexdigest(), "samples": listed}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file that appears only when it is complete."""
    with _whole(path) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())


class _HashingFile:
    """A file to write to that hashes what is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash, self.n_bytes = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.n_bytes += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self.n_bytes

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name when the context ends without an error."""
    try:
        with whole_file(path) as file:
            yield file
    except OutputError as error:
        raise OutputError(f"{error}; finished shards are kept, repeat the command to continue") from error
