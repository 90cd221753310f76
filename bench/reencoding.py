"""Measures re-encoding of batches in records per second and core: `python -m bench.reencoding`.

Each case is one fetch response, copied by `copy_batches` and, for comparison, record by record. Time is the
process's own, the best of several runs, so that neighbours on the machine count little.
"""

import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa

from sparkmirror.batches.batch_copying import MERGED_BYTES_MAX, CopyRules, copy_batches
from sparkmirror.batches.compression import CODECS, compress
from sparkmirror.batches.record_batch import CODEC_MASK, OutgoingBatch, build_batch, iterate_batches
from sparkmirror.batches.records import new_header, read_records, rewrite, write_varint
from sparkmirror.batches.reencoding import Change
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.transforms.chain import Chain, Filter, Function, HasHeaderKey, InsertHeader, Link
from sparkmirror.transforms.partition_change import PartitionChange

_RESPONSE_BYTES = 1 << 20
_LARGE_BYTES = 16 << 20
_RUNS, _RUN_S = 5, 0.2
_NOW_MS = 1_700_000_000_000
_HEADER, _NO_HEADER = b"\x02\x04eu\x02x", b"\x00"
_WORDS = b"order customer created payment shipped warehouse parcel invoice refund total ".split()


class _Case(NamedTuple):
    name: str
    response: bytes
    rules: CopyRules
    change: Change | None = None


class _Shape(NamedTuple):
    """`kept` is the share of its records that compaction has left; every other one may have a header."""

    record_bytes: int
    batch_records: int
    kept: float = 1.0
    codec: str = "none"
    has_headers: bool = False


def _varint(value: int) -> bytes:
    out = bytearray()
    write_varint(value, out)
    return bytes(out)


def _batch(base_offset: int, shape: _Shape, chance: random.Random) -> memoryview:
    last = shape.batch_records - 1
    payload = bytearray()
    deltas = [at for at in range(last + 1) if at in (0, last) or chance.random() < shape.kept]
    for delta in deltas:
        value = b" ".join(chance.choices(_WORDS, k=shape.record_bytes // 7))
        value = value.ljust(shape.record_bytes, b".")[: chance.randint(-8, 8) + shape.record_bytes - 12]
        key = b"%08d" % (base_offset + delta)
        headers = _HEADER if shape.has_headers and delta % 2 else _NO_HEADER
        body = _varint(len(key)) + key + _varint(len(value)) + value + headers
        record = b"\x00" + _varint(delta // 3) + _varint(delta) + body
        payload += _varint(len(record)) + record
    codec = CODECS.index(shape.codec)
    start = _NOW_MS + base_offset // 3
    header = new_header(codec, len(deltas), start, start + last // 3)
    header = header._replace(base_offset=base_offset, last_offset_delta=last)
    return build_batch(header, compress(codec, payload))


def _response(shape: _Shape) -> bytes:
    chance = random.Random(1)
    response, offset = bytearray(), 0
    while True:
        batch = _batch(offset, shape, chance)
        if response and len(response) + len(batch) > _RESPONSE_BYTES:
            return bytes(response)
        response += batch
        offset += shape.batch_records


def _cases() -> list[_Case]:
    merging = CopyRules(merged_bytes_max=MERGED_BYTES_MAX)
    return [
        _Case("100 B, compacted, 0.9 MB batches", _response(_Shape(100, 18_000, 0.5)), CopyRules()),
        _Case("100 B, compacted, 8 KiB batches", _response(_Shape(100, 160, 0.5)), CopyRules()),
        _Case("100 B, compacted, 8 KiB batches, merged", _response(_Shape(100, 160, 0.5)), merging),
        _Case("1 KB, compacted, 16 KiB batches", _response(_Shape(1000, 32, 0.5)), CopyRules()),
        _Case("1 KB, compacted, 16 KiB batches, merged", _response(_Shape(1000, 32, 0.5)), merging),
        _Case("100 B in lz4, compacted, merged", _response(_Shape(100, 160, 0.5, "lz4")), merging),
        _Case("100 B, one-record batches, merged", _response(_Shape(100, 1)), merging),
        _Case(
            "100 B, 16 KiB batches, lz4 to zstd",
            _response(_Shape(100, 160, codec="lz4")),
            CopyRules(codec=CODECS.index("zstd")),
        ),
        *_changed_cases(merging),
    ]


def _changed_cases(rules: CopyRules) -> Iterator[_Case]:
    """Transforms of batches of 16 KiB, of which filters leave half."""
    for record_bytes, codec in itertools.product((1000, 100), ("none", "lz4")):
        response = _response(_Shape(record_bytes, 16_000 // record_bytes, codec=codec, has_headers=True))
        for name, transform in _TRANSFORMS.items():
            yield _Case(f"{name}, {record_bytes:,} B, {codec}", response, rules, _change(transform))


def _change(*links: Link) -> PartitionChange:
    return PartitionChange(Chain(links), TopicPartition("orders", 0))


def keep_half(records: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out every second record."""
    return records.filter(pa.array(records.column("offset").to_numpy() % 2 == 0))


def keep_most(records: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out every tenth record, in a mirror of `python -m bench`."""
    return records.filter(pa.array(records.column("offset").to_numpy() % 10 != 0))


_TRANSFORMS: Final = {
    "function": Link(Function("bench.reencoding:keep_half")),
    "filter": Link(Filter(), HasHeaderKey("eu")),
    "insert": Link(InsertHeader("from", b"us")),
}


def _copy(response: memoryview, rules: CopyRules, change: Change | None = None) -> list[OutgoingBatch]:
    steps = copy_batches(response, 0, rules, None, None, change)
    return [batch for step in steps for batch in step.batches]


def _copy_one_by_one(response: memoryview, rules: CopyRules) -> list[OutgoingBatch]:
    copied = []
    for batch in iterate_batches(response):
        codec = batch.header.attributes & CODEC_MASK if rules.codec is None else rules.codec
        copied += rewrite(read_records(batch), codec, rules.batch_bytes_max)
    return copied


def _best_s(work: Callable[[], object]) -> float:
    work()
    best = float("inf")
    for _ in range(_RUNS):
        begin, times = time.process_time(), 0
        while (spent := time.process_time() - begin) < _RUN_S:
            work()
            times += 1
        best = min(best, spent / times)
    return best


def main(arguments: Sequence[str]) -> None:
    """Print a line for each case whose name holds one of the arguments, or for all of them."""
    # As the buffers of a task's fetch responses do: glibc gives smaller blocks back to the system from now on
    # only seldom. Otherwise a third of the time goes into getting them again.
    del bytearray(_LARGE_BYTES)[:]
    print(f"{'a response of 1 MiB':<42}{'records/s':>12}{'one by one':>12}{'in':>8}{'out':>8}  batches")
    for name, response, rules, change in _cases():
        if arguments and not any(word in name for word in arguments):
            continue
        data = memoryview(bytearray(response))
        copied = _copy(data, rules, change)
        records = sum(batch.header.record_count for batch in iterate_batches(data))
        together = records / _best_s(partial(_copy, data, rules, change))
        one_by_one = records / _best_s(partial(_copy_one_by_one, data, rules))
        fetched = sum(1 for _ in iterate_batches(data))
        print(f"{name:<42}{together:>12,.0f}{one_by_one:>12,.0f}{fetched:>8,}{len(copied):>8,}")


if __name__ == "__main__":
    main(sys.argv[1:])
