import pytest

from sparkmirror.config import client_layers
from sparkmirror.config.properties import Properties
from sparkmirror.domain.client_settings import OffsetReset, SecurityProtocol
from sparkmirror.domain.errors import ConfigError

CONNECTOR = Properties(
    {
        "name": "msc",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:2",
    }
)
WORKER = Properties({"bootstrap.servers": "b:2", "group.id": "A-mm2", "client.id": "A->B"})


def connector(**more: str) -> Properties:
    return CONNECTOR | Properties(more)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, True),
        ({"producer.override.enable.idempotence": "true"}, True),
        ({"producer.override.enable.idempotence": "false"}, False),
    ],
)
def test_only_a_user_turns_idempotence_off(own: dict[str, str], *, expected: bool) -> None:
    assert client_layers.target_producer(WORKER, connector(**own), 0).idempotent is expected


def test_consumer_defaults() -> None:
    consumer = client_layers.source_consumer(CONNECTOR, 3)
    assert consumer.connection.bootstrap_servers == (("a", 1),)
    assert consumer.connection.client_id == "A->B|msc-3|replication-consumer"
    assert (consumer.connection.send_buffer_bytes, consumer.connection.receive_buffer_bytes) == (-1, -1)
    assert consumer.offset_reset is OffsetReset.EARLIEST
    assert not consumer.read_committed
    assert (consumer.fetch_bytes_max, consumer.partition_fetch_bytes_max) == (52428800, 1048576)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"source.cluster.fetch.max.bytes": "1"}, 52428800),
        ({"consumer.fetch.max.bytes": "2"}, 2),
        ({"consumer.fetch.max.bytes": "2", "source.consumer.fetch.max.bytes": "3"}, 3),
        ({"target.consumer.fetch.max.bytes": "4", "producer.fetch.max.bytes": "5"}, 52428800),
    ],
)
def test_consumer_layers(given: dict[str, str], expected: int) -> None:
    assert client_layers.source_consumer(connector(**given), 0).fetch_bytes_max == expected


def test_consumer_settings_have_effect() -> None:
    given = {
        "fetch.min.bytes": "10",
        "fetch.max.wait.ms": "250",
        "max.partition.fetch.bytes": "20",
        "auto.offset.reset": "latest",
        "isolation.level": "read_committed",
        "check.crcs": "false",
        "client.rack": "r1",
        "request.timeout.ms": "1500",
        "reconnect.backoff.ms": "5",
        "retry.backoff.max.ms": "2000",
        "socket.connection.setup.timeout.ms": "3000",
        "receive.buffer.bytes": "-1",
        "client.id": "mine",
    }
    consumer = client_layers.source_consumer(
        connector(**{f"consumer.{key}": text for key, text in given.items()}), 0
    )
    assert (consumer.fetch_bytes_min, consumer.fetch_wait_max_s, consumer.partition_fetch_bytes_max) == (
        10,
        0.25,
        20,
    )
    assert (consumer.offset_reset, consumer.read_committed) == (OffsetReset.LATEST, True)
    assert (consumer.check_crcs, consumer.client_rack) == (False, "r1")
    connection = consumer.connection
    assert (connection.request_timeout_s, connection.connect_timeout_s) == (1.5, 3.0)
    assert (connection.reconnect_backoff_s, connection.retry_backoff_max_s) == (0.005, 2.0)
    assert connection.receive_buffer_bytes == -1
    assert connection.client_id == "mine|A->B|msc-0|replication-consumer"


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("fetch.max.bytes", "-1", "Value must be at least 0"),
        ("fetch.max.bytes", "50MB", "Not a number of type INT"),
        ("auto.offset.reset", "Earliest", "must be either 'earliest', 'latest' or 'none'"),
        ("auto.offset.reset", "by_duration:PT1H", "by_duration is not supported yet"),
        ("isolation.level", "committed", "String must be one of: read_committed, read_uncommitted"),
        ("security.protocol", "TLS", "String must be one of"),
        ("send.buffer.bytes", "-2", "Value must be at least -1"),
    ],
)
def test_bad_values_name_the_key_as_written(key: str, text: str, reason: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"Invalid value {text} for configuration source\.consumer\.{key}: .*{reason}"
    ):
        client_layers.source_consumer(connector(**{f"source.consumer.{key}": text}), 0)


def test_producer_defaults_are_connect_s() -> None:
    producer = client_layers.target_producer(WORKER, CONNECTOR, 1)
    assert producer.connection.bootstrap_servers == (("b", 2),)
    assert producer.connection.client_id == "connector-producer-msc-1"
    assert producer.connection.receive_buffer_bytes == -1
    assert (producer.acks, producer.compression, producer.in_flight_max) == (-1, None, 5)


@pytest.mark.parametrize(
    ("worker", "own", "acks"),
    [
        ({"acks": "0"}, {}, -1),
        ({"producer.acks": "1"}, {}, 1),
        ({"producer.acks": "all"}, {"producer.override.acks": "1"}, 1),
        ({}, {"producer.acks": "0", "target.producer.acks": "0", "target.cluster.acks": "0"}, -1),
    ],
)
def test_producer_layers(worker: dict[str, str], own: dict[str, str], acks: int) -> None:
    assert client_layers.target_producer(WORKER | Properties(worker), connector(**own), 0).acks == acks


def test_acks_0_is_refused_because_nothing_could_be_synced() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value 0 for configuration producer\.acks: .*offsets"):
        client_layers.target_producer(WORKER | Properties({"producer.acks": "0"}), CONNECTOR, 0)


def test_the_producer_inherits_the_worker_s_security() -> None:
    worker = WORKER | Properties({"security.protocol": "ssl", "ssl.truststore.location": "/t"})
    connection = client_layers.target_producer(worker, CONNECTOR, 0).connection
    assert connection.security_protocol is SecurityProtocol.SSL
    assert connection.tls is not None
    assert connection.tls.files == ("/t",)


def test_producer_settings_have_effect() -> None:
    given = {
        "producer.max.request.size": "2000",
        "producer.compression.type": "none",
        "producer.max.in.flight.requests.per.connection": "1",
        "producer.delivery.timeout.ms": "40000",
        "producer.client.id": "p",
    }
    producer = client_layers.target_producer(WORKER | Properties(given), CONNECTOR, 0)
    assert (producer.request_bytes_max, producer.compression, producer.in_flight_max) == (2000, "none", 1)
    assert producer.connection.client_id == "p"


def test_no_more_is_in_flight_than_a_broker_remembers() -> None:
    worker = WORKER | Properties({"producer.max.in.flight.requests.per.connection": "50"})
    assert client_layers.target_producer(worker, CONNECTOR, 0).in_flight_max == 5


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("acks", "2", "String must be one of: all, -1, 0, 1"),
        ("compression.type", "LZ4", "String must be one of: none, gzip"),
        ("delivery.timeout.ms", "100", "should be equal to or larger than"),
        ("max.in.flight.requests.per.connection", "0", "Value must be at least 1"),
    ],
)
def test_bad_producer_values(key: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"configuration producer\.{key}: {reason}"):
        client_layers.target_producer(WORKER | Properties({f"producer.{key}": text}), CONNECTOR, 0)


def test_offset_syncs_live_at_the_source() -> None:
    producer = client_layers.offset_syncs_producer(connector(**{"source.producer.acks": "1"}), 2)
    assert producer.connection.bootstrap_servers == (("a", 1),)
    assert producer.connection.client_id == "A->B|msc-2|offset-syncs-source-producer"
    assert producer.acks == 1


def test_offset_syncs_live_at_the_target() -> None:
    given = connector(**{"offset-syncs.topic.location": "target", "producer.client.id": "me"})
    assert client_layers.offset_syncs_producer(given, 0).connection.client_id == (
        "me|A->B|msc-0|offset-syncs-target-producer"
    )
    admin = client_layers.offset_syncs_admin(given)
    assert (admin.bootstrap_servers, admin.client_id) == ((("b", 2),), "A->B|msc|offset-syncs-target-admin")


def test_admins() -> None:
    given = connector(**{"admin.request.timeout.ms": "5", "target.admin.request.timeout.ms": "6"})
    source, target = (
        client_layers.source_admin(given),
        client_layers.target_admin(given, "heartbeats-target-admin"),
    )
    assert (source.request_timeout_s, source.client_id) == (0.005, "A->B|msc|replication-source-admin")
    assert (target.request_timeout_s, target.client_id) == (0.006, "A->B|msc|heartbeats-target-admin")
    assert [settings.cluster for settings in (source, target)] == ["A", "B"], "errors name another cluster"


def test_the_worker_s_own_clients_use_unprefixed_keys() -> None:
    worker = WORKER | Properties({"request.timeout.ms": "7", "producer.request.timeout.ms": "8"})
    connection = client_layers.worker_client(worker, "offsets")
    assert (connection.request_timeout_s, connection.client_id) == (0.007, "connect-A-mm2-A->B-offsets")


def test_a_missing_cluster_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^source\.cluster\.bootstrap\.servers: is missing"):
        client_layers.source_consumer(Properties({"name": "n"}), 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h:1", (("h", 1),)),
        (" h-1.x_y:1 , k:2 ", (("h-1.x_y", 1), ("k", 2))),
        ("[::1]:9092", (("::1", 9092),)),
        ("PLAINTEXT://h:1", (("h", 1),)),
        ("SASL_SSL://[fe80::1%eth0]:1", (("fe80::1%eth0", 1),)),
        ("h:1,h:1", (("h", 1),)),
    ],
)
def test_bootstrap_servers(text: str, expected: tuple[tuple[str, int], ...]) -> None:
    assert client_layers.bootstrap_servers(Properties({"bootstrap.servers": text})) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("h", "Invalid url in bootstrap.servers: h"),
        ("h:port", "Invalid url in bootstrap.servers: h:port"),
        (":9092", "Invalid url in bootstrap.servers: :9092"),
        ("h:1,,k:1", "Invalid url in bootstrap.servers: "),
        ("a b:1", "Invalid url in bootstrap.servers: a b:1"),
        ("h:99999", "Invalid port in bootstrap.servers: h:99999"),
        (" ", "No bootstrap urls given in bootstrap.servers"),
    ],
)
def test_bad_bootstrap_servers(text: str, reason: str) -> None:
    properties = Properties({"A.bootstrap.servers": text}).under("A.")
    with pytest.raises(ConfigError) as caught:
        client_layers.bootstrap_servers(properties)
    assert str(caught.value) == f"Invalid value {text} for configuration A.bootstrap.servers: {reason}"


def test_a_login_needs_its_module() -> None:
    given = {"source.cluster.security.protocol": "SASL_SSL", "source.cluster.sasl.mechanism": "PLAIN"}
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config: is missing"):
        client_layers.source_admin(connector(**given))
    module = 'PlainLoginModule required username="token" password="hush";'
    settings = client_layers.source_admin(connector(**given, **{"source.cluster.sasl.jaas.config": module}))
    assert settings.sasl is not None
    assert (settings.sasl.username, settings.sasl.password) == ("token", "hush")
    assert settings.holds_secrets
    assert "hush" not in repr(settings)


def test_secrets_are_not_printed() -> None:
    secured = {"security.protocol": "SSL", "ssl.key.password": "hush"}
    given = {f"source.cluster.{key}": value for key, value in secured.items()}
    settings = client_layers.source_admin(connector(**given))
    assert settings.tls is not None
    assert settings.tls.key_password == "hush"
    assert "hush" not in repr(settings)
