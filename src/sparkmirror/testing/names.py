"""Names to try plug-ins with."""

from typing import Final

TOPICS: Final = (
    *("orders", "orders.v1", "orders-v1", "orders_v1", "a", "A", "0", "eu.orders", "us.eu.orders"),
    *("orders.", "orders..", "o.r.d.e.r.s", "heartbeat", "my.internal", "checkpoints", "mm2", "x" * 200),
)
"""Names that users give to topics."""

ODD: Final = (
    *("", ".", "..", "...", "_", "__", "-", "--", ".a", "a.", "..a", "a..", "__consumer_offsets", ".hidden"),
    *(
        "heartbeats",
        "us.heartbeats",
        "my-heartbeats",
        "heartbeats.",
        "mm2-offsets.us.internal",
        "mm2.internal",
    ),
    *("us.checkpoints.internal", "checkpoints.internal", "mm2-offset-syncs.us.internal", "x" * 249),
    *("\u00fc", "\u2028", "\n", " ", "%", "(", "[", "\\", "\U0001f600", "\ud800", "\0"),
)
"""What else a plug-in may be asked: it must answer, whatever it is."""
