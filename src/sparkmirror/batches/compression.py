"""The codecs of Kafka's record batches, framed as Kafka's Java clients frame them.

Nothing is decompressed beyond a limit: 2 KB of zstd can hold 64 MiB.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any

import cramjam
import numpy as np

from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX, Codec
from sparkmirror.domain.errors import CorruptBatchError

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codecs by their number in a batch's attributes."""

Plain = bytes | bytearray | memoryview

_ROOM_BYTES = 1024
_ROOM_RATIO = 8
"""The room that is tried first, per compressed byte. Pages that are not written to take no memory."""

_SMALL_ROOM_BYTES = 16 * 1024
"""Contents up to this size are copied: the next batch gets the same memory, which is faster."""

_ROOM_IS_FULL = "failed to write whole buffer"
"""The library's message when the room is too small."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT = struct.Struct(">i")

# Java reads only frames of independent blocks (`Lz4BlockInputStream`), so the frame is written here: version
# 1, independent blocks of at most 64 KiB, no checksums; 0x82 is the checksum of these two descriptor bytes.
_LZ4_FRAME_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 1 << 31
_LZ4_SIZE = struct.Struct("<I")
_LZ4_END = _LZ4_SIZE.pack(0)


def decompress(codec: int, data: memoryview, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> memoryview:
    """Decompress to at most so many bytes. What is not compressed is returned as it is.

    Raises CorruptBatchError when there are more, when the bytes are not of that codec, or it is unknown.
    """
    if codec == 0:
        return data
    if codec >= len(CODECS):
        raise CorruptBatchError(f"unknown compression codec {codec}")
    try:
        return _DECOMPRESS[codec](data, bytes_max)
    except (cramjam.DecompressionError, struct.error) as error:
        raise CorruptBatchError(f"{CODECS[codec]} data can't be decompressed: {error}") from error


def decompress_together(batches: Iterable[tuple[int, memoryview]], bytes_max: int) -> list[memoryview]:
    """Decompress each by its codec, to at most so many bytes in all. Raises CorruptBatchError."""
    found, room = [], bytes_max
    for codec, data in batches:
        found.append(decompress(codec, data, room))
        room -= len(found[-1]) if codec else 0
    return found


def compress(codec: int, data: Plain) -> bytes:
    return bytes(data) if codec == 0 else _COMPRESS[codec](data)


def _too_large(bytes_max: int) -> CorruptBatchError:
    return CorruptBatchError(
        f"decompressed it has more than {bytes_max} bytes, the limit of batch.decompressed.bytes.max"
    )


def _streamed(
    decompress_into: Callable[[memoryview, Any], int],
) -> Callable[[memoryview, int], memoryview]:
    """Make a decompressor for data that does not say how much it holds, or can't be trusted to."""

    def decompressed(data: memoryview, bytes_max: int) -> memoryview:
        room = min(_ROOM_BYTES + _ROOM_RATIO * len(data), bytes_max)
        while True:
            plain = np.empty(room, np.uint8).data
            try:
                size = decompress_into(data, plain)
                return memoryview(bytes(plain[:size])) if room <= _SMALL_ROOM_BYTES else plain[:size]
            except cramjam.DecompressionError as error:
                if str(error) != _ROOM_IS_FULL:
                    raise
                if room >= bytes_max:
                    raise _too_large(bytes_max) from error
            room = min(_ROOM_RATIO * room, bytes_max)

    return decompressed


def _decompress_snappy(data: memoryview, bytes_max: int) -> memoryview:
    """Each block begins with the size of its contents."""
    if data[:8] != _XERIAL_MAGIC:
        plain = _room(cramjam.snappy.decompress_raw_len(data), bytes_max)
        cramjam.snappy.decompress_raw_into(data, plain)
        return plain
    blocks, at = _xerial_blocks(data), 0
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    plain = _room(sum(sizes), bytes_max)
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, plain[at : at + size])
        at += size
    return plain


def _room(size: int, bytes_max: int) -> memoryview:
    if size > bytes_max:
        raise _too_large(bytes_max)
    return np.empty(size, np.uint8).data


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    """Java writes xerial's framing: a 16-byte header, then blocks of a 4-byte length and raw snappy."""
    blocks = []
    at = len(_XERIAL_HEADER)
    while at < len(data):
        (size,) = _INT.unpack_from(data, at)
        at += _INT.size
        if not 0 < size <= len(data) - at:
            raise CorruptBatchError(f"a snappy block of {size} bytes where {len(data) - at} are left")
        blocks.append(data[at : at + size])
        at += size
    return blocks


def _compress_snappy(data: Plain) -> bytes:
    parts = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        parts += [_INT.pack(len(block)), block]
    return b"".join(parts)


def _compress_lz4(data: Plain) -> bytes:
    parts: list[Plain] = [_LZ4_FRAME_HEADER]
    for at in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[at : at + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += [_LZ4_SIZE.pack(len(block)), block]
        else:
            parts += [_LZ4_SIZE.pack(len(plain) | _LZ4_STORED), plain]
    return b"".join([*parts, _LZ4_END])


_DECOMPRESS: dict[int, Callable[[memoryview, int], memoryview]] = {
    1: _streamed(cramjam.gzip.decompress_into),
    2: _decompress_snappy,
    3: _streamed(cramjam.lz4.decompress_into),
    4: _streamed(cramjam.zstd.decompress_into),
}
_COMPRESS: dict[int, Callable[[Plain], bytes]] = {
    1: lambda data: bytes(cramjam.gzip.compress(data)),
    2: _compress_snappy,
    3: _compress_lz4,
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}
