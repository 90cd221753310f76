"""Reads one side of a comparison: a partition's batches, opened only where necessary."""

from collections.abc import Iterable, Sequence

from sparkmirror.batches.compression import decompress
from sparkmirror.batches.record_batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME, FetchedBatch
from sparkmirror.batches.records import naming_offset
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.verify.comparison import GaveUpError
from sparkmirror.verify.recent import RECENT_RECORDS, Recent
from sparkmirror.verify.records import Record, Records, Span

_OPENED_BYTES_MAX = 1 << 20
"""The most bytes of batches that are opened together."""
_HELD_TIMES = 4
"""How much of what is opened at a time is held, while records differ."""


class Side:
    """Batches and opened records of a span, in order. `opened` comes before `batch`."""

    def __init__(
        self,
        batches: Iterable[FetchedBatch],
        span: Span,
        *,
        timestamps: bool,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
        keeps_recent: bool = False,
    ) -> None:
        """`decompressed_bytes_max` is for all that is opened at a time."""
        self._batches = iter(batches)
        self.span = span
        self.timestamps = timestamps
        self.decompressed_bytes_max = decompressed_bytes_max
        self.opened = Records(decompressed_bytes_max)
        self._popped: Sequence[FetchedBatch] = ()
        """Between `opened` and `batch`: they were too large to be opened with those before."""
        self.recent = Recent(span, timestamps=timestamps, decompressed_bytes_max=decompressed_bytes_max)
        """The batches up to `batch`, if they are kept."""
        self._keeps_recent = keeps_recent
        self.batch: FetchedBatch | None = None
        """The next one that is not opened."""
        self._advance()

    @property
    def next_offset(self) -> int:
        """The offset of the next record, or the end of the span."""
        return self.opened.offsets[0] if self.open(1) else self.span.end

    def whole_batch(self) -> FetchedBatch | None:
        """The next batch, if all of it is unread and inside the span."""
        batch, is_next = self.batch, not self.opened and not self._popped
        return batch if batch is not None and is_next and self.span.holds(batch) else None

    def pop_batch(self) -> None:
        self._advance()

    def open(self, count: int, together: int = 0) -> int:
        """Open batches until so many records are in `opened`, or all; how many there are.

        If any has to be opened, then as many as hold `together` records, within reason. Raises GaveUpError
        where records that differ are too large to be held.
        """
        while len(self.opened) < count and (self._popped or self.batch is not None):
            if self.opened.bytes_of(len(self.opened)) > _HELD_TIMES * self.decompressed_bytes_max:
                raise GaveUpError(
                    f"from offset {self.opened.offsets[0]} on, {len(self.opened)} records that differ have "
                    f"more than {_HELD_TIMES} times batch.decompressed.bytes.max"
                )
            batches = self._popped or self._pop_batches(max(count - len(self.opened), together))
            self._popped = self.opened.add(batches, self.span, timestamps=self.timestamps)
        return len(self.opened)

    def _pop_batches(self, count: int) -> list[FetchedBatch]:
        """At least one, and as many as hold so many records, within `_OPENED_BYTES_MAX`."""
        batches: list[FetchedBatch] = []
        size = 0
        while self.batch is not None and count > 0 and size < _OPENED_BYTES_MAX:
            batches.append(self.batch)
            count -= self.batch.header.record_count
            size += len(self.batch.data)
            self._advance()
        return batches

    def _advance(self) -> None:
        if self.batch is not None and self._keeps_recent:
            self.recent.add(self.batch)
        self.batch = next(self._batches, None)


class SourceSide(Side):
    """Keeps recent batches, and recognizes second copies of their records on the target."""

    def __init__(
        self,
        batches: Iterable[FetchedBatch],
        span: Span,
        *,
        timestamps: bool,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        self._index: dict[int, int] = {}
        self._indexed_end = 0
        super().__init__(
            batches,
            span,
            timestamps=timestamps,
            decompressed_bytes_max=decompressed_bytes_max,
            keeps_recent=True,
        )

    def recent_offset(self, record: Record) -> int | None:
        """The recent offset of this record on the source, before the next one."""
        added = self.recent.since(self._indexed_end)
        if added:
            self._indexed_end = added[-1].header.last_offset + 1
        while added:
            before = Records(self.decompressed_bytes_max)
            added = before.add(added, self.span, timestamps=self.timestamps)
            for offset, content in zip(before.offsets, before.contents, strict=True):
                self._index.setdefault(hash(content), offset)
        while len(self._index) > RECENT_RECORDS:
            del self._index[next(iter(self._index))]
        found = self._index.get(hash(record.content))
        is_past = found is not None and (not self.opened or found < self.opened.offsets[0])
        return found if is_past else None


def same_bytes(
    source: FetchedBatch,
    target: FetchedBatch,
    *,
    timestamps: bool,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bool:
    """Whether two batches hold the same records by equal bytes, decompressed if necessary."""
    source_header, target_header = source.header, target.header
    if source_header.record_count != target_header.record_count:
        return False
    if timestamps and (
        source_header.base_timestamp != target_header.base_timestamp
        or (source_header.attributes | target_header.attributes) & LOG_APPEND_TIME
    ):
        return False
    codecs = source_header.attributes & CODEC_MASK, target_header.attributes & CODEC_MASK
    if codecs[0] == codecs[1]:
        # Copied, because views are compared byte by byte.
        return bytes(source.data[HEADER_BYTES:]) == bytes(target.data[HEADER_BYTES:])
    plain = [
        _unpacked(batch, codec, decompressed_bytes_max)
        for batch, codec in zip((source, target), codecs, strict=True)
    ]
    return plain[0] == plain[1]


def _unpacked(batch: FetchedBatch, codec: int, bytes_max: int) -> bytes:
    with naming_offset(batch.header.base_offset):
        return bytes(decompress(codec, batch.data[HEADER_BYTES:], bytes_max))
