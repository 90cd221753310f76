"""Reads and adds the header with the clusters that a record has come from (`provenance.header`).

Producer ids know of the last flow only, and Java MM2 has none. A header stays with a record on its whole way,
through flows of other mirrors too. It costs the fast path: every batch must be re-encoded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from sparkmirror.batches.record_batch import FetchedBatch, OutgoingBatch
from sparkmirror.batches.record_body import RecordBody, read_body, write_body
from sparkmirror.batches.records import RawRecord, read_varint, write_varint
from sparkmirror.batches.reencoding import Encoding, records_from, write_records

HEADER: Final = b"sparkmirror-provenance"
"""The header's name; its value lists the aliases of the clusters that the record came from, with commas."""

_SEPARATOR: Final = b","


class ProvenanceHeader(NamedTuple):
    """The header that a flow from one cluster to another adds, by their aliases."""

    source: str
    target: str

    def carry(self, body: bytes) -> bytes | None:
        """The record's body (see `RawRecord`) as it arrives; None if it has been at either cluster before.

        Raises CorruptBatchError when the fields do not fit the bytes.
        """
        source = self.source.encode()
        if HEADER not in body:
            return _with_header(body, source)
        key, value, headers = read_body(body)
        contents = [content or b"" for name, content in headers if name == HEADER]
        chain = [alias for content in contents for alias in content.split(_SEPARATOR)]
        if source in chain or self.target.encode() in chain:
            return None
        others = tuple(header for header in headers if header[0] != HEADER)
        come_from = _SEPARATOR.join(alias for alias in (*chain, source) if alias)
        return write_body(RecordBody(key, value, (*others, (HEADER, come_from))))


class ProvenanceChange(NamedTuple):
    """Adds the header to records; `found` is told the offset of each that comes back and is left out."""

    header: ProvenanceHeader
    found: Callable[[int], None] | None = None

    @property
    def tolerates(self) -> bool:
        return False

    @property
    def filtered(self) -> int:
        return 0

    def concerns(self, batch: FetchedBatch, bytes_max: int) -> bool:  # noqa: ARG002 - all batches
        return True

    def apply(
        self, batches: Sequence[FetchedBatch], position: int, encoding: Encoding
    ) -> list[OutgoingBatch]:
        """Do as `Change` says. Raises what `found` raises too."""
        records = records_from(batches, position, encoding.decompressed_bytes_max)
        return write_records(list(self._carried(records)), encoding)

    def _carried(self, records: Iterable[RawRecord]) -> Iterator[RawRecord]:
        for record in records:
            body = self.header.carry(record.body)
            if body is not None:
                yield record._replace(body=body)
            elif self.found is not None:
                self.found(record.offset)


def _with_header(body: bytes, source: bytes) -> bytes:
    """The bytes that `write_body` makes with one more header, without reading the others."""
    at = _behind(body, _behind(body, 0))
    count, headers_at = read_varint(body, at)
    out = bytearray(body[:at])
    write_varint(count + 1, out)
    out += body[headers_at:]
    for part in (HEADER, source):
        write_varint(len(part), out)
        out += part
    return bytes(out)


def _behind(body: bytes, at: int) -> int:
    """The end of the field that begins there."""
    size, at = read_varint(body, at)
    return at + max(size, 0)
