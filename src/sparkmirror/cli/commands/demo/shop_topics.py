"""Defines the topics of the demo's shop, as unlike each other as a real shop's, and makes their records."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.batches.log_records import Headers, LogRecord

_CUSTOMERS: Final = 500
_ARTICLES: Final = ("tent", "stove", "rope", "lantern", "compass", "boots", "map", "kettle")
_PAGES: Final = tuple(f"/articles/{name}" for name in _ARTICLES) + tuple(f"/guides/{n}" for n in range(200))
_BROWSERS: Final = ("Firefox/145.0", "Chrome/142.0.0.0", "Safari/18.6")


@dataclass(frozen=True, slots=True)
class ShopTopic:
    """A topic: its part of all records written, a function that makes a record, and its configuration."""

    name: str
    share: float
    make_record: Callable[[random.Random, int], LogRecord]
    config: Mapping[str, str] = field(default_factory=dict)


def _order(rng: random.Random, number: int) -> LogRecord:
    items = [{"article": rng.choice(_ARTICLES), "count": rng.randint(1, 3)} for _ in range(rng.randint(1, 4))]
    customer = _customer(rng)
    order = {"order": number, "customer": customer, "items": items, "total": rng.randint(500, 90_000)}
    headers: list[tuple[str, bytes | None]] = [
        ("trace", rng.randbytes(16)),
        ("channel", rng.choice((b"app", b"web", None))),
    ]
    # Kafka allows a header name more than once, and order matters.
    headers += [("voucher", b"%08d" % rng.randrange(10**8)) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    return _record(customer.encode(), _json(order), tuple(headers))


def _payment(rng: random.Random, number: int) -> LogRecord:
    order = max(0, number - rng.randint(0, 50))
    payment = {
        "payment": number,
        "order": order,
        "amount": rng.randint(500, 90_000),
        "currency": "EUR",
        "method": rng.choice(("card", "invoice", "transfer")),
        "state": rng.choice(("authorized", "captured", "captured", "refunded")),
    }
    return _record(b"%d" % order, _json(payment), (("schema", b"payment-3"),))


def _page_view(rng: random.Random, number: int) -> LogRecord:
    # The start page is viewed more than all others together, which makes its partition hot.
    page = "/" if rng.random() < 0.55 else rng.choice(_PAGES)
    view = {"view": number, "page": page, "session": rng.getrandbits(48), "agent": rng.choice(_BROWSERS)}
    return _record(page.encode(), _json(view), ())


def _customer_change(rng: random.Random, number: int) -> LogRecord:
    customer = _customer(rng)
    if rng.random() < 0.15:
        return _record(customer.encode(), None, (("reason", b"account closed"),))
    change = {"customer": customer, "revision": number, "newsletter": rng.random() < 0.3}
    return _record(customer.encode(), _json(change), ())


def _record(key: bytes, value: bytes | None, headers: Headers) -> LogRecord:
    """A record that its key sends to a partition; a value of None is a tombstone."""
    return LogRecord(key, value, partition=None, headers=headers)


def _customer(rng: random.Random) -> str:
    return f"customer-{rng.randrange(_CUSTOMERS):04}"


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


# Brokers compress as the topic's configuration says.
SHOP_TOPICS: Final = (
    ShopTopic("orders", 0.20, _order),
    ShopTopic("payments", 0.15, _payment, {"compression.type": "zstd"}),
    ShopTopic("page-views", 0.60, _page_view, {"compression.type": "lz4"}),
    ShopTopic("customers", 0.05, _customer_change, {"cleanup.policy": "compact"}),
)
