"""The codecs of Kafka's record batches, framed as Kafka's Java clients frame them."""

import struct
from collections.abc import Callable

import cramjam

from sparkmirror.domain.client_settings import Codec
from sparkmirror.domain.errors import CorruptBatchError

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""By their number in a batch's attributes."""

Plain = bytes | bytearray | memoryview

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


def decompress(codec: int, data: memoryview) -> memoryview:
    """Raises CorruptBatchError when the bytes are not of that codec, or the codec is unknown."""
    if codec == 0:
        return data
    if codec >= len(CODECS):
        raise CorruptBatchError(f"unknown compression codec {codec}")
    try:
        return memoryview(_DECOMPRESS[codec](data))
    except (cramjam.DecompressionError, struct.error) as error:
        raise CorruptBatchError(f"{CODECS[codec]} data can't be decompressed: {error}") from error


def compress(codec: int, data: Plain) -> bytes:
    return bytes(data) if codec == 0 else _COMPRESS[codec](data)


def _decompress_snappy(data: memoryview) -> bytes:
    # Java writes xerial's framing: a 16-byte header, then blocks of a 4-byte length and raw snappy.
    if bytes(data[:8]) != _XERIAL_MAGIC:
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks = []
    at = len(_XERIAL_HEADER)
    while at < len(data):
        (size,) = _INT.unpack_from(data, at)
        at += _INT.size
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[at : at + size])))
        at += size
    return b"".join(blocks)


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


_DECOMPRESS: dict[int, Callable[[memoryview], bytes]] = {
    1: lambda data: bytes(cramjam.gzip.decompress(data)),
    2: _decompress_snappy,
    3: lambda data: bytes(cramjam.lz4.decompress(data)),
    4: lambda data: bytes(cramjam.zstd.decompress(data)),
}
_COMPRESS: dict[int, Callable[[Plain], bytes]] = {
    1: lambda data: bytes(cramjam.gzip.compress(data)),
    2: _compress_snappy,
    3: _compress_lz4,
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}
