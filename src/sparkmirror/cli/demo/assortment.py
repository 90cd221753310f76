"""What the demo's shop writes: four topics as unlike each other as a real shop's, and their records."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_CUSTOMERS: Final = 500
_ARTICLES: Final = ("tent", "stove", "rope", "lantern", "compass", "boots", "map", "kettle")
_PAGES: Final = tuple(f"/articles/{name}" for name in _ARTICLES) + tuple(f"/guides/{n}" for n in range(200))
_BROWSERS: Final = ("Firefox/145.0", "Chrome/142.0.0.0", "Safari/18.6")

Headers = list[tuple[str, str | bytes | None]]


class ShopRecord(NamedTuple):
    """A record to write; a value of None is a tombstone."""

    key: bytes
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class ShopTopic:
    """One topic: its codec, its part of all records written, its configuration, and who makes its records."""

    name: str
    codec: str
    share: float
    make_record: Callable[[random.Random, int], ShopRecord]
    config: Mapping[str, str] = field(default_factory=dict)


def _order(rng: random.Random, number: int) -> ShopRecord:
    items = [{"article": rng.choice(_ARTICLES), "count": rng.randint(1, 3)} for _ in range(rng.randint(1, 4))]
    customer = _customer(rng)
    order = {"order": number, "customer": customer, "items": items, "total": rng.randint(500, 90_000)}
    headers: Headers = [("trace", rng.randbytes(16)), ("channel", rng.choice((b"app", b"web", None)))]
    # Kafka allows a header name more than once, and order matters.
    headers += [("voucher", b"%08d" % rng.randrange(10**8)) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    return ShopRecord(customer.encode(), _json(order), headers)


def _payment(rng: random.Random, number: int) -> ShopRecord:
    order = max(0, number - rng.randint(0, 50))
    payment = {
        "payment": number,
        "order": order,
        "amount": rng.randint(500, 90_000),
        "currency": "EUR",
        "method": rng.choice(("card", "invoice", "transfer")),
        "state": rng.choice(("authorized", "captured", "captured", "refunded")),
    }
    return ShopRecord(b"%d" % order, _json(payment), [("schema", b"payment-3")])


def _page_view(rng: random.Random, number: int) -> ShopRecord:
    # The start page is viewed more than all others together, which makes its partition hot.
    page = "/" if rng.random() < 0.55 else rng.choice(_PAGES)
    view = {"view": number, "page": page, "session": rng.getrandbits(48), "agent": rng.choice(_BROWSERS)}
    return ShopRecord(page.encode(), _json(view), [])


def _customer_change(rng: random.Random, number: int) -> ShopRecord:
    customer = _customer(rng)
    if rng.random() < 0.15:
        return ShopRecord(customer.encode(), None, [("reason", b"account closed")])
    change = {"customer": customer, "revision": number, "newsletter": rng.random() < 0.3}
    return ShopRecord(customer.encode(), _json(change), [])


def _customer(rng: random.Random) -> str:
    return f"customer-{rng.randrange(_CUSTOMERS):04}"


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


ASSORTMENT: Final = (
    ShopTopic("orders", "none", 0.20, _order),
    ShopTopic("payments", "zstd", 0.15, _payment),
    ShopTopic("page-views", "lz4", 0.60, _page_view),
    ShopTopic("customers", "none", 0.05, _customer_change, {"cleanup.policy": "compact"}),
)
