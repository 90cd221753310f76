"""The workloads: what records and batches look like, how many of them each side copies, with which settings.

Values are compact JSON with the redundancy of real events: a few field names and words that repeat, ids and
amounts that don't. lz4 shrinks a batch of them about threefold.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from bench.sides import FLOW, TARGET_ALIAS, Side

KEY_BYTES = 8
PARTITIONS = 8
MARK = "drop"
"""The header of marked records."""
DATA_PREFIX = "data-"
"""Source topics with this prefix outlive a run."""

_STATUSES = ("created", "paid", "packed", "shipped", "delivered", "returned")
_WORDS = (
    "blue",
    "cotton",
    "shirt",
    "large",
    "summer",
    "garden",
    "chair",
    "oak",
    "steel",
    "lamp",
    "winter",
    "wool",
)


_COPYING = tuple(side for side in Side if side is not Side.RELAY)
"""A relay's every record passes through Python: only how late they are says something, not how many."""


class Batches(Enum):
    """The way in which the source's records are batched."""

    FULL = "full"
    SINGLE = "of one record each"
    COMPACTED = "half of their records compacted away"
    IN_TRANSACTIONS = "each the only one of its partition in a transaction"
    MARKED = "every tenth record with a header"


@dataclass(frozen=True, slots=True)
class Workload:
    """`records` for the fast sides; MM2 copies `mm2_records`, so that its runs take about as long.

    `settings` are added to every mirror's mm2.properties.
    """

    name: str
    title: str
    record_bytes: int
    codec: Literal["none", "lz4"]
    records: int
    mm2_records: int
    batches: Batches = Batches.FULL
    sides: tuple[Side, ...] = _COPYING
    settings: tuple[tuple[str, str], ...] = ()
    tls: bool = False
    """Whether the mirrors reach both clusters over TLS."""
    kept: float = 1.0
    """The share of the records that arrive where transforms leave some out."""

    def scaled(self, factor: float) -> "Workload":
        return replace(self, records=int(self.records * factor), mm2_records=int(self.mm2_records * factor))

    def with_records(self, records: int) -> "Workload":
        """`records` for the fast sides, MM2's share in proportion."""
        return self.scaled(records / self.records)


THROUGHPUT = (
    Workload("1kb", "1 KB, no codec", 1024, "none", 6_000_000, 1_000_000),
    Workload("1kb-lz4", "1 KB, lz4", 1024, "lz4", 8_000_000, 1_000_000),
    Workload("100b-lz4", "100 B, lz4", 100, "lz4", 60_000_000, 5_000_000),
)
_MIRRORS = (Side.OURS, Side.MM2)
_TO_ZSTD = ((f"{TARGET_ALIAS}.producer.compression.type", "zstd"),)
SLOW_ROAD = (
    Workload("single", "100 B, one-record batches", 100, "none", 400_000, 400_000, Batches.SINGLE, _MIRRORS),
    Workload("zstd", "1 KB, lz4 to zstd", 1024, "lz4", 1_500_000, 500_000, Batches.FULL, _MIRRORS, _TO_ZSTD),
    Workload("compacted", "1 KB, compacted", 1024, "none", 800_000, 800_000, Batches.COMPACTED, _MIRRORS),
)
"""Workloads whose batches sparkmirror can't pass on as they are."""
IN_TRANSACTIONS = Workload(
    "paid", "1 KB, lz4, a transactional source", 1024, "lz4", 400_000, 400_000, Batches.IN_TRANSACTIONS
)
"""A marker, which is not copied, follows each batch."""

_TRANSACTIONS = (
    (f"{TARGET_ALIAS}.exactly.once.source.support", "enabled"),
    ("dedicated.mode.enable.internal.rest", "true"),
    ("listeners", "http://127.0.0.1:0"),
)
TRANSACTIONAL = Workload(
    "transactions",
    "1 KB, lz4, in transactions",
    1024,
    "lz4",
    2_500_000,
    300_000,
    sides=_MIRRORS,
    settings=_TRANSACTIONS,
)
TLS = Workload("tls", "1 KB, TLS on both sides", 1024, "none", 3_000_000, 500_000, sides=_MIRRORS, tls=True)
PLAINTEXT = Workload("plaintext", "1 KB, without TLS", 1024, "none", 3_000_000, 500_000, sides=_MIRRORS)
"""TLS is compared with this one: as many records, right before."""
_SMT = "org.apache.kafka.connect."
_FILTER = (
    (f"{FLOW}transforms", "marked"),
    (f"{FLOW}transforms.marked.type", f"{_SMT}transforms.Filter"),
    (f"{FLOW}transforms.marked.predicate", "marked"),
    (f"{FLOW}predicates", "marked"),
    (f"{FLOW}predicates.marked.type", f"{_SMT}transforms.predicates.HasHeaderKey"),
    (f"{FLOW}predicates.marked.name", MARK),
)
_INSERT = (
    (f"{FLOW}transforms", "from"),
    (f"{FLOW}transforms.from.type", f"{_SMT}transforms.InsertHeader"),
    (f"{FLOW}transforms.from.header", "from"),
    (f"{FLOW}transforms.from.value.literal", "source"),
    # Java's own default fails with a literal.
    (f"{FLOW}header.converter", f"{_SMT}storage.SimpleHeaderConverter"),
)
_FUNCTION = (
    (f"{FLOW}transforms", "most"),
    (f"{FLOW}transforms.most.type", "sparkmirror.transforms.Function"),
    (f"{FLOW}transforms.most.function", "bench.reencoding:keep_most"),
)
_MOST = 0.9
TRANSFORMED = (
    Workload(
        "filter",
        "1 KB, Filter by header",
        1024,
        "none",
        2_000_000,
        500_000,
        Batches.MARKED,
        _MIRRORS,
        _FILTER,
        kept=_MOST,
    ),
    Workload(
        "insert", "1 KB, InsertHeader", 1024, "none", 2_000_000, 500_000, Batches.FULL, _MIRRORS, _INSERT
    ),
    Workload(
        "function",
        "1 KB, function that filters",
        1024,
        "none",
        2_000_000,
        500_000,
        Batches.FULL,
        (Side.OURS,),
        _FUNCTION,
        kept=_MOST,
    ),
)
"""Transforms: where records are left out, those that arrive are counted."""
COPIED = (*THROUGHPUT, *SLOW_ROAD, TRANSACTIONAL, *TRANSFORMED, PLAINTEXT, TLS)
"""Everything that is measured as throughput of whole mirrors."""

BY_NAME = {workload.name: workload for workload in COPIED}
EXACTLY_ONCE = "exactly-once"
LATENCY = "latency"
MEMORY = "memory"
IDLE = "idle"
FAR = "far"
GROWTH = "growth"
HOT = "hot"
DRILL = "drill"
TRANSLATION = "translation"
GROUPS = "groups"
REST = "rest"
TOPICS = "topics"
NAMES = (
    *BY_NAME,
    EXACTLY_ONCE,
    LATENCY,
    MEMORY,
    IDLE,
    FAR,
    GROWTH,
    HOT,
    DRILL,
    TRANSLATION,
    GROUPS,
    REST,
    TOPICS,
)


def values(record_bytes: int, count: int, seed: int = 1) -> Iterator[bytes]:
    """`count` JSON values that, with a key of KEY_BYTES, make records of `record_bytes`."""
    rng = random.Random(seed)
    size = record_bytes - KEY_BYTES
    for number in range(count):
        yield _small_event(rng, number, size) if size < 200 else _order(rng, number, size)


def _small_event(rng: random.Random, number: int, size: int) -> bytes:
    event = {
        "id": number,
        "user": rng.randrange(10**8),
        "page": rng.choice(_WORDS),
        "ms": rng.randrange(10**4),
    }
    return _padded(event, rng, size)


def _order(rng: random.Random, number: int, size: int) -> bytes:
    order: dict[str, object] = {
        "order": f"{rng.getrandbits(64):016x}",
        "n": number,
        "status": rng.choice(_STATUSES),
    }
    order["lines"] = [_line(rng) for _ in range(size // 140)]
    return _padded(order, rng, size)


def _line(rng: random.Random) -> dict[str, object]:
    return {
        "sku": f"{rng.getrandbits(40):010x}",
        "title": " ".join(rng.choices(_WORDS, k=3)),
        "quantity": rng.randrange(1, 9),
        "price_cents": rng.randrange(100, 100_000),
    }


def _padded(event: dict[str, object], rng: random.Random, size: int) -> bytes:
    text = json.dumps(event | {"note": ""}, separators=(",", ":"))
    room = size - len(text)
    words = " ".join(rng.choices(_WORDS, k=room // 4 + 1))[: max(room, 0)]
    padded = f'{text[:-2]}{words}"}}'
    return padded.encode()[:size]
