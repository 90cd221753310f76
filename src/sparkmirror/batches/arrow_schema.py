"""The columns of records as Arrow record batches. Pure."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkmirror.domain.errors import CorruptBatchError

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", HEADERS),
    ]
)
"""The columns of Spark's source. `timestampType` is 0 for CreateTime and 1 for LogAppendTime."""

CLOSED: Final = pa.schema(
    [pa.field("tombstone", pa.bool_()), SCHEMA.field("offset"), SCHEMA.field("headers")]
)
"""The columns for those who look at headers only."""
BODIES: Final = pa.schema([pa.field("body", pa.binary()), SCHEMA.field("offset"), SCHEMA.field("timestamp")])
"""The other columns for readers of headers: `body` is key and value as they are encoded."""

US_PER_MS: Final = 1000

_STAMP_MS_MAX: Final = ((1 << 63) - 1) // US_PER_MS
_FIELDS: Final = {field.name: field for field in (*SCHEMA, *CLOSED, *BODIES)}


@cache
def schema_of(names: tuple[str, ...]) -> pa.Schema:
    """The schema of these columns of `SCHEMA`, `CLOSED` and `BODIES`."""
    return pa.schema([_FIELDS[name] for name in names])


def timestamps_of(stamps: NDArray[np.int64], offsets: Sequence[int] | NDArray[np.int64]) -> pa.Array:
    """The column of these timestamps in ms. Raises CorruptBatchError where one has no place."""
    if len(stamps) and max(int(stamps.max()), -int(stamps.min())) > _STAMP_MS_MAX:
        wrong = int(np.argmax((stamps > _STAMP_MS_MAX) | (stamps < -_STAMP_MS_MAX)))
        raise CorruptBatchError(
            f"offset {offsets[wrong]}: timestamp {stamps[wrong]} ms has no place among microseconds"
        )
    return pa.array(stamps * US_PER_MS).view(TIMESTAMP)
