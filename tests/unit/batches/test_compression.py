"""Codecs are compatible with Arrow's and with Kafka's Java readers."""

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches import compression
from sparkmirror.batches.compression import CODECS
from sparkmirror.domain.errors import CorruptBatchError
from tests.support import batches

ALL = range(len(CODECS))
COMPRESSED = range(1, len(CODECS))
NOISE = random.Random(1).randbytes(200_000)
TEXT = b"the same words again and again; " * 10_000
OPTION = r"more than \d+ bytes, .* batch\.decompressed\.bytes\.max"
PLAIN = {"empty": b"", "short": b"a", "noise": NOISE, "text": TEXT, "both": NOISE + TEXT}


def decompressed(codec: int, data: bytes) -> bytes:
    return bytes(compression.decompress(codec, memoryview(data)))


def test_codecs_have_kafkas_numbers() -> None:
    assert CODECS == ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.parametrize("codec", ALL)
def test_compressed_data_is_read_by_arrow(codec: int, plain: str) -> None:
    assert batches.decompress(codec, compression.compress(codec, PLAIN[plain])) == PLAIN[plain]


@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.parametrize("codec", ALL)
def test_arrows_compressed_data_is_read(codec: int, plain: str) -> None:
    assert decompressed(codec, batches.compress(codec, PLAIN[plain])) == PLAIN[plain]


@given(plain=st.binary(max_size=2000), codec=st.sampled_from(ALL))
def test_data_is_compressed_and_decompressed_unchanged(plain: bytes, codec: int) -> None:
    assert decompressed(codec, compression.compress(codec, plain)) == plain


def test_snappy_has_javas_framing() -> None:
    data = compression.compress(2, TEXT)
    assert data.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))


def lz4_blocks(frame: bytes) -> list[int]:
    """Return the sizes of a frame's blocks, with the bit of uncompressed ones."""
    sizes, at = [], 7
    while (size := struct.unpack_from("<I", frame, at)[0]) != 0:
        sizes.append(size)
        at += 4 + (size & 0x7FFFFFFF)
    assert at + 4 == len(frame)
    return sizes


@pytest.mark.parametrize("plain", PLAIN)
def test_lz4_frames_are_readable_by_java(plain: str) -> None:
    """Kafka's Lz4BlockInputStream requires version 1, independent blocks, a checksum, and no content size."""
    frame = compression.compress(3, PLAIN[plain])
    magic, flags, descriptor, checksum = struct.unpack_from("<IBBB", frame)
    assert magic == 0x184D2204
    assert flags >> 6 == 1
    assert flags & 0x20, "blocks must be independent"
    assert not flags & 0x08, "no content size"
    assert not flags & 0x04, "no content checksum"
    assert descriptor == 0x40, "blocks of at most 64 KiB"
    assert checksum == 0x82
    assert all(size & 0x7FFFFFFF <= 65536 for size in lz4_blocks(frame))


def test_lz4_stores_incompressible_data_uncompressed() -> None:
    sizes = lz4_blocks(compression.compress(3, NOISE))
    assert all(size & 0x80000000 for size in sizes)
    assert sum(size & 0x7FFFFFFF for size in sizes) == len(NOISE)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"\x82SNAPPY\x00" + b"\x00" * 9])
def test_bytes_of_another_codec_are_corrupt(codec: int, data: bytes) -> None:
    with pytest.raises(CorruptBatchError, match=f"{CODECS[codec]} data can't be decompressed"):
        decompressed(codec, data)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_truncated_data_is_corrupt(codec: int) -> None:
    whole = compression.compress(codec, TEXT)
    with pytest.raises(CorruptBatchError):
        decompressed(codec, whole[: len(whole) * 2 // 3])


@pytest.mark.parametrize("size", [-1, -4, -(2**31), 2**31 - 1])
def test_invalid_snappy_framing_is_corrupt(size: int) -> None:
    framed = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, size) + b"rest"
    with pytest.raises(CorruptBatchError):
        decompressed(2, framed)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_undefined_codecs_are_refused(codec: int) -> None:
    with pytest.raises(CorruptBatchError, match=f"unknown compression codec {codec}"):
        decompressed(codec, b"x")


def streamed_zstd(plain: bytes) -> bytes:
    """Compress as Java does: without the size of the contents."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(plain)
    return bytes(sink.getvalue())


FRAMES: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, lambda plain: batches.compress(1, plain)),
    "raw snappy": (2, lambda plain: batches.compress(2, plain)),
    "snappy in blocks": (2, lambda plain: compression.compress(2, plain)),
    "lz4": (3, lambda plain: batches.compress(3, plain)),
    "lz4 in blocks": (3, lambda plain: compression.compress(3, plain)),
    "zstd": (4, lambda plain: batches.compress(4, plain)),
    "zstd without a size": (4, streamed_zstd),
}


@pytest.mark.parametrize(("frame", "has_size"), [("zstd", True), ("zstd without a size", False)])
def test_one_zstd_frame_has_its_contents_size_and_the_other_has_not(frame: str, *, has_size: bool) -> None:
    """The descriptor's upper bits (RFC 8878, 3.1.1.1.1): the size's width, or a single segment."""
    _, compress = FRAMES[frame]
    assert bool(compress(TEXT)[4] & 0xE0) is has_size


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("plain", [TEXT, bytes(3_000_000), b""], ids=["text", "zeros", "nothing"])
def test_data_is_decompressed_up_to_the_limit_and_not_beyond(frame: str, plain: bytes) -> None:
    codec, compress = FRAMES[frame]
    data = memoryview(compress(plain))
    assert bytes(compression.decompress(codec, data, len(plain))) == plain
    if plain:
        with pytest.raises(CorruptBatchError, match=OPTION):
            compression.decompress(codec, data, len(plain) - 1)


@pytest.mark.parametrize("size", [1 << 31, (1 << 32) - 1])
def test_a_size_that_raw_snappy_promises_is_not_believed(size: int) -> None:
    promise = bytes((size >> 7 * at & 0x7F) | (0x80 if at < 4 else 0) for at in range(5))
    with pytest.raises(CorruptBatchError, match="more than 1000 bytes"):
        compression.decompress(2, memoryview(promise + b"\x00a"), 1000)


def test_batches_share_the_limit() -> None:
    whole = [(codec, memoryview(compression.compress(codec, TEXT))) for codec in COMPRESSED]
    limit = len(whole) * len(TEXT)
    assert compression.decompress_together(whole, limit) == [TEXT] * len(whole)
    with pytest.raises(CorruptBatchError, match=OPTION):
        compression.decompress_together(whole, limit - 1)


def test_what_is_not_compressed_takes_nothing_of_the_limit() -> None:
    plain = memoryview(TEXT)
    assert compression.decompress_together([(0, plain), (0, plain)], 10) == [TEXT, TEXT]


BOMBS = """
import resource
import sys
from sparkmirror.batches import compression
from sparkmirror.domain.errors import CorruptBatchError

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

before = peak_mb()
for codec in sys.argv[1:]:
    with open(codec[1:], "rb") as file:
        data = memoryview(file.read())
    try:
        compression.decompress(int(codec[0]), data, 8 << 20)
    except CorruptBatchError:
        print(peak_mb() - before)
"""


def test_data_beyond_the_limit_takes_a_fraction_of_its_size_in_memory(tmp_path: Path) -> None:
    """Measured in a process of its own: the most that it had in memory."""
    plain, arguments = bytes(300 << 20), []
    for number, (codec, compress) in enumerate(FRAMES.values()):
        path = tmp_path / str(number)
        path.write_bytes(compress(plain))
        arguments.append(f"{codec}{path}")
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, *arguments], capture_output=True, text=True, check=True
    )
    peaks = [int(line) for line in done.stdout.split()]
    assert len(peaks) == len(FRAMES)
    assert max(peaks) < 40
