"""Reads and adds the header with the clusters that a record has come from (`provenance.header`).

Producer ids know of the last flow only, and Java MM2 has none. A header stays with a record on its whole way,
through flows of other mirrors too. It costs the fast path: every batch must be re-encoded.
"""

from typing import Final, NamedTuple

from sparkmirror.batches.record_batch import FetchedBatch, iterate_batches
from sparkmirror.batches.record_body import RecordBody, read_body, write_body
from sparkmirror.batches.records import read_records, read_varint, write_sparse_batch, write_varint
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX

HEADER: Final = b"sparkmirror-provenance"
"""The header's name. Its value: the aliases of the clusters that the record came from, with commas."""

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


def carried(
    batch: FetchedBatch, header: ProvenanceHeader, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> list[FetchedBatch]:
    """The batch as it arrives, with the offsets that it has; none if all of it comes back.

    Raises CorruptBatchError for a batch that can't be opened.
    """
    bodies = ((record, header.carry(record.body)) for record in read_records(batch, bytes_max))
    records = [record._replace(body=body) for record, body in bodies if body is not None]
    return list(iterate_batches(write_sparse_batch(records, batch.header))) if records else []


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
