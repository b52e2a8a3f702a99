"""Positions of the pages of Ogg Opus files, where libsndfile would take them for damage.

A page of an Ogg file states its position: samples at 48 kHz up to its end, whatever the rate of the sound. ffmpeg
copies positions from the time stamps of what it converts, and those jitter: some pages then end before their own
packets do. Players go by the packets; libsndfile stops reading. Here positions are counted from the packets; the
sound stays as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["corrected_pages"]

_HEAD_BYTES = 27  # of a page, before the lengths of its segments
_POSITION, _SERIAL, _CHECKSUM = slice(6, 14), slice(14, 18), slice(22, 26)
_LAST = 4  # flag of the last page of a stream
_NO_PACKET_ENDS = 2**64 - 1  # stands for a position
_SILK_FRAMES, _HYBRID_FRAMES, _CELT_FRAMES = (480, 960, 1920, 2880), (480, 960), (120, 240, 480, 960)
_MOST_PACKET = 5760  # samples at 48 kHz: 120 ms
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def corrected_pages(filename: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each page whose position has to change, as it should be, with its place in the file.

    None for files that are not Ogg Opus, and none from the first page on that is damaged.
    """
    stated = end = 0  # end of the pages before: as the file has it, and as their packets have it
    with filename.open("rb") as file:
        for page in _opus_pages(file):
            if page.position == _NO_PACKET_ENDS:
                continue
            missing = stated + page.n_samples - page.position if page.is_last else 0  # cut at the end
            stated = page.position
            end += min(max(page.n_samples - missing, 0), page.n_samples)
            if end != stated:
                yield page.offset, page.at(end)


@dataclass(frozen=True)
class _Page:
    offset: int
    content: bytes
    n_samples: int  # at 48 kHz, of the packets that end on it

    @property
    def position(self) -> int:
        return int.from_bytes(self.content[_POSITION], "little")

    @property
    def is_last(self) -> bool:
        return bool(self.content[5] & _LAST)

    def at(self, position: int) -> bytes:
        """Return the page with another position."""
        moved = bytearray(self.content)
        moved[_POSITION] = position.to_bytes(8, "little")
        moved[_CHECKSUM] = _checksum(bytes(moved))
        return bytes(moved)


def _opus_pages(file: IO[bytes]) -> Iterator[_Page]:
    """Yield the pages of sound of a file that is one Opus stream, as far as they are intact."""
    packet, n_headers, serial = b"", 2, b""
    while True:
        offset = file.tell()
        head = file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES or head[:5] != b"OggS\0":
            return
        lengths = file.read(head[26])
        body = file.read(sum(lengths))
        content = head + lengths + body
        if offset == 0:
            if not body.startswith(b"OpusHead"):
                return
            serial = head[_SERIAL]
        if head[_SERIAL] != serial or content[_CHECKSUM] != _checksum(content):
            return
        n_samples = begin = 0
        for length in lengths:
            packet += body[begin : begin + length][: 2 - len(packet)]
            begin += length
            if length < 255:  # the packet ends
                n_samples += 0 if n_headers else _packet_samples(packet)
                packet, n_headers = b"", max(n_headers - 1, 0)
        if n_samples:
            yield _Page(offset, content, n_samples)


def _packet_samples(packet: bytes) -> int:
    """Return how long a packet lasts, at 48 kHz, by its first two bytes (RFC 6716, section 3.1)."""
    if not packet:
        return 0
    kind, n_frames = packet[0] >> 3, (1, 2, 2, 0)[packet[0] & 3]
    if packet[0] & 3 == 3:
        n_frames = packet[1] & 63 if len(packet) > 1 else 0
    if kind < 12:
        frame = _SILK_FRAMES[kind % 4]
    elif kind < 16:
        frame = _HYBRID_FRAMES[kind % 2]
    else:
        frame = _CELT_FRAMES[kind % 4]
    return min(frame * n_frames, _MOST_PACKET)


def _checksum(page: bytes) -> bytes:
    """Return the checksum of a page: CRC-32 as zlib has it, but with all bits in reverse, begun at 0."""
    without = page[:22] + bytes(4) + page[26:]
    reflected = zlib.crc32(without.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return reflected.to_bytes(4, "big").translate(_REVERSED)
