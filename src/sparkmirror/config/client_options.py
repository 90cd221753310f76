"""Declares the options of the consumer, producer and admin clients: Kafka's, with MM2's and our restrictions.

Every value is validated as Java's clients do. `client_layers` reads the options that mean something to
sparkmirror; the rest is accepted so that a file written for Java MM2 keeps working.
"""

from typing import Final

from sparkmirror.config.definitions import Definition, Value
from sparkmirror.config.kafka_options import options
from sparkmirror.config.validators import AtLeast, DistinctItems


def _offset_reset(value: Value) -> Value:
    assert isinstance(value, str)
    if value.startswith("by_duration:"):
        raise ValueError("by_duration is not supported yet; use earliest, latest or none")
    if value not in ("earliest", "latest", "none"):
        raise ValueError("The value must be either 'earliest', 'latest' or 'none'")
    return value


_GIVEN_BY_CONNECT: Final = {"bootstrap.servers": ()}
"""Required by Java's clients; here `client_layers.bootstrap_servers` reports it under the user's key."""

ADMIN: Final = options("admin", validators={"bootstrap.servers": DistinctItems(may_be_empty=False)})

CONSUMER: Final = options(
    "consumer",
    defaults={
        **_GIVEN_BY_CONNECT,
        "key.deserializer": None,
        "value.deserializer": None,
        "auto.offset.reset": "earliest",  # MM2's default, not the consumer's
    },
    validators={"auto.offset.reset": _offset_reset, "share.acquire.mode": None},
)

PRODUCER: Final = options(
    "producer",
    defaults={
        **_GIVEN_BY_CONNECT,
        "key.serializer": None,
        "value.serializer": None,
        "compression.type": None,  # unset: each batch keeps the codec that it has at the source
        "delivery.timeout.ms": 2147483647,  # this and the next two are the defaults of Connect's producer
        "max.block.ms": 9223372036854775807,
        "enable.idempotence": False,
    },
    validators={"compression.gzip.level": AtLeast(-1, 9)},
)

SECURITY: Final = Definition(
    option
    for option in ADMIN
    if option.name.startswith(("ssl.", "sasl.")) or option.name == "security.protocol"
)

SSL: Final = Definition(option for option in SECURITY if option.name.startswith("ssl."))

SHARED_NAMES: Final = SECURITY.names | {"bootstrap.servers"}
"""The options that `source.cluster.`, `target.cluster.` and an alias pass to every client, as in Kafka."""
