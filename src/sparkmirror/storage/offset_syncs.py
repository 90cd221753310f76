"""Offset syncs in MM2's bytes. A header, which Java does not look at, says for which run each speaks."""

from typing import NamedTuple

from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.log_records import LogRecord
from sparkmirror.domain.wire_records import OffsetSync

_RUN = "sparkmirror.run"


class RunSync(NamedTuple):
    """A sync, and how many records, counted back from its own, have the same difference of offsets."""

    sync: OffsetSync
    run: int = 1

    def to_record(self) -> LogRecord:
        headers = ((_RUN, b"%d" % self.run),) if self.run > 1 else ()
        return LogRecord(self.sync.encode_key(), self.sync.encode_value(), headers=headers)


def parse_offset_sync(record: LogRecord) -> RunSync | None:
    """None for what is no sync. One without a header, as Java writes them, speaks for its own record only."""
    try:
        sync = OffsetSync.decode(record.key or b"", record.value or b"")
    except MalformedRecordError:
        return None
    told = dict(record.headers).get(_RUN) or b""
    return RunSync(sync, max(1, int(told)) if told.isdigit() else 1)
