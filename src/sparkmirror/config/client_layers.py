"""Puts together the settings of each client from a connector's and a worker's properties, layered as in MM2.

MM2's own clients start from `source.cluster.*` or `target.cluster.*`, of which only bootstrap servers and
security count, then take `consumer.*`, then `source.consumer.*`. The producer of the data is Connect's.
"""

import re
from dataclasses import replace
from typing import Final, Literal, cast

from sparkmirror.config.client_options import ADMIN, CONSUMER, PRODUCER, SHARED_NAMES
from sparkmirror.config.definitions import JAVA_WHITESPACE, Values
from sparkmirror.config.kept_settings import login_of, tls_of
from sparkmirror.config.properties import Properties
from sparkmirror.config.sasl_settings import sasl_settings
from sparkmirror.config.tls_settings import tls_settings
from sparkmirror.domain.client_settings import (
    Codec,
    ConnectionSettings,
    ConsumerSettings,
    OffsetReset,
    ProducerSettings,
    SecurityProtocol,
)
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.start_at import parse_start_at

SHOWN_ALIAS: Final = "shown.alias"
"""Below a side's cluster, the file's name of a cluster whose alias is empty; no file has this key."""

IN_FLIGHT_MAX: Final = 5
"""The number of batches of a producer id that a broker remembers; more could not be resent safely."""

_ACKS: Final[dict[str, Literal[-1, 1]]] = {"all": -1, "-1": -1, "1": 1}
_ENDPOINT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)]?:([0-9]+)", re.ASCII)


def source_consumer(connector: Properties, task: int) -> ConsumerSettings:
    """The consumer of one task that reads the source's records."""
    properties = _layers(connector, "source", "consumer")
    whole_id = _named(properties, client_id(connector, "replication-consumer", task))
    consumer = _consumer(properties, whole_id, shown_alias(connector, "source"))
    text = connector.get("start.at", "").strip(JAVA_WHITESPACE)
    if not text:
        return consumer
    start = parse_start_at(text)
    return replace(consumer, offset_reset=start.reset, start_time=start.time)


def target_producer(worker: Properties, connector: Properties, task: int) -> ProducerSettings:
    """The producer of a connector's records: the Connect worker's, with the connector's overrides.

    The client id is Connect's `connector-producer-NAME-TASK` unless another is set.
    """
    properties = target_producer_properties(worker, connector)
    default_id = f"connector-producer-{connector['name'].strip(JAVA_WHITESPACE)}-{task}"
    return _producer(properties, _given_client_id(properties) or default_id, shown_alias(connector, "target"))


def target_producer_properties(worker: Properties, connector: Properties) -> Properties:
    """The properties of the producer of a connector's records."""
    return worker.only(SHARED_NAMES) | worker.under("producer.") | connector.under("producer.override.")


def offset_syncs_producer(connector: Properties, task: int) -> ProducerSettings:
    """The producer of offset syncs, on the cluster that `offset-syncs.topic.location` names."""
    side = _offset_syncs_side(connector)
    properties = _layers(connector, side, "producer")
    whole_id = _named(properties, client_id(connector, f"offset-syncs-{side}-producer", task))
    return _producer(properties, whole_id, shown_alias(connector, side))


def offset_syncs_consumer(connector: Properties) -> ConnectionSettings:
    """The consumer of offset syncs, on the cluster that `offset-syncs.topic.location` names."""
    side = _offset_syncs_side(connector)
    return _state_consumer(connector, side, f"offset-syncs-{side}-consumer")


def checkpoints_consumer(connector: Properties) -> ConnectionSettings:
    """The consumer with which a checkpoint connector reads its own checkpoints when it starts."""
    return _state_consumer(connector, "target", "checkpoints-target-consumer")


def offset_syncs_admin(connector: Properties) -> ConnectionSettings:
    """The admin client that creates the offset-syncs topic."""
    side = _offset_syncs_side(connector)
    return _admin(connector, side, f"offset-syncs-{side}-admin")


def source_admin(connector: Properties, role: str = "replication-source-admin") -> ConnectionSettings:
    """The admin client that lists and describes at the source."""
    return _admin(connector, "source", role)


def target_admin(connector: Properties, role: str = "replication-target-admin") -> ConnectionSettings:
    """The admin client that creates and alters at the target."""
    return _admin(connector, "target", role)


def admin_properties(connector: Properties, side: str) -> Properties:
    """The properties of the admin client of `source` or `target`, as an admin plug-in gets them."""
    return _layers(connector, side, "admin")


def worker_client(worker: Properties, role: str) -> ConnectionSettings:
    """The client that reads and writes Connect's own topics; `role` is `offsets`, `configs` or `statuses`.

    Uses the worker's unprefixed keys, and Connect's client ids: `connect-GROUP[-CLIENT]-ROLE`.
    """
    parts = ("connect", worker.get("group.id", ""), _given_client_id(worker), role)
    return _connection(worker, ADMIN.parse(worker), "-".join(filter(None, parts)))


def mirror_client(properties: Properties, client: str) -> ConnectionSettings:
    """Read one of a `MirrorClient`'s clients: servers and security, also behind `admin.` and the like."""
    shared = properties.only(SHARED_NAMES) | properties.under(f"{client}.").only(SHARED_NAMES)
    return _connection(shared, ADMIN.parse(shared), "sparkmirror-client")


_NOT_OF_READERS: Final = {
    "auto.offset.reset": "is not supported: startingOffsets says where a query starts",
    "key.deserializer": "is not supported: keys are binary, decode them with functions of data frames",
    "value.deserializer": "is not supported: values are binary, decode them with functions of data frames",
    "enable.auto.commit": "is not supported: commit.group.id commits what a query has finished",
    "interceptor.classes": "is not supported: nothing may change the records on their way",
}


def data_frame_consumer(options: Properties) -> ConsumerSettings:
    """The consumer of a data frame: the options `kafka.*` of Spark's Kafka source. Raises ConfigError."""
    properties = options.under("kafka.")
    for key, reason in _NOT_OF_READERS.items():
        if key in properties:
            raise properties.refusal(key, reason)
    consumer = _consumer(properties, _given_client_id(properties) or "sparkmirror-source", "")
    if "max.partition.fetch.bytes" in properties:
        return consumer
    return replace(consumer, partition_fetch_bytes_max=_DATA_FRAME_FETCH_BYTES)


_DATA_FRAME_FETCH_BYTES: Final = 4 << 20
"""A task reads one partition: many records at once cost less."""


_NOT_OF_WRITERS: Final = {
    "key.serializer": "is not supported: encode keys as strings or binary, with functions of data frames",
    "value.serializer": "is not supported: encode values as strings or binary, with functions of data frames",
    "transactional.id": "is not supported: tasks need ids of their own, set transactional.id.prefix",
    "partitioner.class": "is not supported: name partitions in the column partition",
    "interceptor.classes": "is not supported: nothing may change the records on their way",
}
_TRANSACTION_TIMEOUT_S: Final = 900.0
"""The most that brokers allow by default: a transaction is open until all tasks of a batch have ended."""


def data_frame_producer(options: Properties) -> tuple[ProducerSettings, float]:
    """The producer of a data frame: the options `kafka.*` of Spark's Kafka sink, and transactions' time-out.

    Raises ConfigError.
    """
    properties = options.under("kafka.")
    for key, reason in _NOT_OF_WRITERS.items():
        if key in properties:
            raise properties.refusal(key, reason)
    producer = _producer(properties, _given_client_id(properties) or "sparkmirror-sink", "")
    values = PRODUCER.parse(properties)
    if values.given("transaction.timeout.ms"):
        return producer, values.seconds("transaction.timeout.ms")
    return producer, _TRANSACTION_TIMEOUT_S


def client_id(connector: Properties, role: str, task: int | None = None) -> str:
    """`S->T|NAME[-TASK]|ROLE`, as all of MM2's own clients are called since Kafka 3.5."""
    source, target, name = (
        connector.get(key, default).strip(JAVA_WHITESPACE)
        for key, default in (("source.cluster.alias", ""), ("target.cluster.alias", "target"), ("name", ""))
    )
    return f"{source}->{target}|{name}{'' if task is None else f'-{task}'}|{role}"


def bootstrap_servers(properties: Properties) -> tuple[tuple[str, int], ...]:
    """Hosts and ports; a `PROTOCOL://` in front is ignored, as Kafka does. Raises ConfigError."""
    urls = properties.get("bootstrap.servers", "").strip(JAVA_WHITESPACE)
    if not urls:
        raise properties.error("bootstrap.servers", "No bootstrap urls given in bootstrap.servers")
    return tuple(dict.fromkeys(_endpoint(url.strip(JAVA_WHITESPACE), properties) for url in urls.split(",")))


def _endpoint(url: str, properties: Properties) -> tuple[str, int]:
    found, quoted = _ENDPOINT.fullmatch(url), properties.quoted("bootstrap.servers", url)
    if not found or not found[1]:
        raise properties.error("bootstrap.servers", f"Invalid url in bootstrap.servers: {quoted}")
    if int(found[2]) > 65535:
        raise properties.error("bootstrap.servers", f"Invalid port in bootstrap.servers: {quoted}")
    return found[1], int(found[2])


def _layers(connector: Properties, side: str, client: str) -> Properties:
    """The properties of one of MM2's own clients, as `MirrorConnectorConfig` puts them together."""
    cluster = connector.under(f"{side}.cluster.").only(SHARED_NAMES)
    properties = cluster | connector.under(f"{client}.") | connector.under(f"{side}.{client}.")
    if "bootstrap.servers" in properties:
        return properties
    raise ConfigError(f"{side}.cluster.bootstrap.servers", None, "is missing")


def shown_alias(connector: Properties, side: str) -> str:
    """The name of a cluster in logs and errors: its alias, or what the file calls it where that is empty."""
    alias = connector.get(f"{side}.cluster.alias", side).strip(JAVA_WHITESPACE)
    return alias or connector.get(f"{side}.cluster.{SHOWN_ALIAS}", "")


def _offset_syncs_side(connector: Properties) -> str:
    return connector.get("offset-syncs.topic.location", "source").strip(JAVA_WHITESPACE)


def _given_client_id(properties: Properties) -> str:
    return properties.get("client.id", "").strip(JAVA_WHITESPACE)


def _named(properties: Properties, own_id: str) -> str:
    return f"{_given_client_id(properties)}|{own_id}" if "client.id" in properties else own_id


def _admin(connector: Properties, side: str, role: str) -> ConnectionSettings:
    properties = _layers(connector, side, "admin")
    whole_id = _named(properties, client_id(connector, role))
    return _connection(properties, ADMIN.parse(properties), whole_id, shown_alias(connector, side))


def _state_consumer(connector: Properties, side: str, role: str) -> ConnectionSettings:
    properties = _layers(connector, side, "consumer")
    whole_id = _named(properties, client_id(connector, role))
    return _consumer(properties, whole_id, shown_alias(connector, side)).connection


def _consumer(properties: Properties, whole_id: str, alias: str) -> ConsumerSettings:
    values = CONSUMER.parse(properties)
    return ConsumerSettings(
        connection=_connection(properties, values, whole_id, alias),
        fetch_bytes_max=values.integer("fetch.max.bytes"),
        partition_fetch_bytes_max=values.integer("max.partition.fetch.bytes"),
        fetch_bytes_min=values.integer("fetch.min.bytes"),
        fetch_wait_max_s=values.seconds("fetch.max.wait.ms"),
        offset_reset=OffsetReset(values.string("auto.offset.reset")),
        read_committed=values.string("isolation.level") == "read_committed",
        check_crcs=values.boolean("check.crcs"),
        client_rack=values.string("client.rack"),
    )


def _producer(properties: Properties, whole_id: str, alias: str) -> ProducerSettings:
    values = PRODUCER.parse(properties)
    _check_delivery_timeout(properties, values)
    compression = values["compression.type"]
    if values.string("acks") == "0":
        raise properties.error(
            "acks", "without acknowledgements there are no offsets to store and sync; use 1 or all"
        )
    return ProducerSettings(
        connection=_connection(properties, values, whole_id, alias),
        acks=_ACKS[values.string("acks")],
        request_bytes_max=values.integer("max.request.size"),
        in_flight_max=min(IN_FLIGHT_MAX, values.integer("max.in.flight.requests.per.connection")),
        compression=None if compression is None else cast("Codec", compression),
        # Connect's default is False; here idempotence costs nothing, so it is on unless it is turned off.
        idempotent=values.boolean("enable.idempotence") or not values.given("enable.idempotence"),
    )


def _check_delivery_timeout(properties: Properties, values: Values) -> None:
    """Kafka's rule. The value has no effect: batches are tried until they are acknowledged or refused."""
    if not values.given("delivery.timeout.ms"):
        return
    if values.seconds("delivery.timeout.ms") < values.seconds("linger.ms") + values.seconds(
        "request.timeout.ms"
    ):
        raise properties.error(
            "delivery.timeout.ms", "should be equal to or larger than linger.ms + request.timeout.ms"
        )


def _connection(properties: Properties, values: Values, whole_id: str, alias: str = "") -> ConnectionSettings:
    protocol = SecurityProtocol(values.string("security.protocol").upper())
    if values["security.providers"]:
        raise properties.error("security.providers", "has no counterpart outside of Java: remove it")
    return ConnectionSettings(
        bootstrap_servers=bootstrap_servers(properties),
        client_id=whole_id,
        security_protocol=protocol,
        tls=tls_of(properties, tls_settings(properties, values)) if protocol.is_encrypted else None,
        sasl=login_of(properties, sasl_settings(properties, values)) if protocol.has_login else None,
        request_timeout_s=values.seconds("request.timeout.ms"),
        connect_timeout_s=values.seconds("socket.connection.setup.timeout.ms"),
        reconnect_backoff_s=values.seconds("reconnect.backoff.ms"),
        reconnect_backoff_max_s=values.seconds("reconnect.backoff.max.ms"),
        retry_backoff_s=values.seconds("retry.backoff.ms"),
        retry_backoff_max_s=values.seconds("retry.backoff.max.ms"),
        metadata_max_age_s=values.seconds("metadata.max.age.ms"),
        send_buffer_bytes=_given_size(values, "send.buffer.bytes"),
        receive_buffer_bytes=_given_size(values, "receive.buffer.bytes"),
        alias=alias,
    )


def _given_size(values: Values, name: str) -> int:
    """A socket buffer's size if it is set: a fixed size is small, and turns the system's tuning off."""
    return values.integer(name) if values.given(name) else -1
