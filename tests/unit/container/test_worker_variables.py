"""A worker's properties in the variables of other images of Kafka."""

import pytest

from sparkmirror.config.properties import parse_properties
from sparkmirror.container.worker_variables import (
    log_level,
    properties_text,
    worker_properties,
    worker_variables,
)
from sparkmirror.domain.errors import ConfigError

CONFLUENT = {
    "CONNECT_BOOTSTRAP_SERVERS": "kafka:9092",
    "CONNECT_GROUP_ID": "mirrors",
    "CONNECT_CONFIG_STORAGE_TOPIC": "configs",
    "CONNECT_OFFSET_STORAGE_TOPIC": "offsets",
    "CONNECT_STATUS_STORAGE_TOPIC": "statuses",
}
REQUIRED = {
    "bootstrap.servers": "kafka:9092",
    "group.id": "mirrors",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
}
DEBEZIUM = {
    "BOOTSTRAP_SERVERS": "kafka:9092",
    "CONFIG_STORAGE_TOPIC": "configs",
    "OFFSET_STORAGE_TOPIC": "offsets",
}
BITNAMI = {name.replace("CONNECT_", "KAFKA_CFG_"): value for name, value in CONFLUENT.items()}


def test_confluents_variables() -> None:
    assert worker_properties(CONFLUENT) == REQUIRED


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("CONNECT_REST_ADVERTISED_HOST_NAME", "rest.advertised.host.name"),
        ("CONNECT_PRODUCER_SASL_JAAS_CONFIG", "producer.sasl.jaas.config"),
        ("CONNECT_CONFIG_PROVIDERS_MY__FILE_CLASS", "config.providers.my_file.class"),
        ("CONNECT_X___Y", "x-y"),
        ("CONNECT_A_B_C", "a.b.c"),
        ("CONNECT_SPARK_DRIVER_MEMORY", "spark.driver.memory"),
        ("CONNECT_group_instance", "group.instance"),
    ],
)
def test_names_as_confluent_writes_them(variable: str, key: str) -> None:
    assert worker_properties({**CONFLUENT, variable: "it"})[key] == "it"


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_CFG_REST_ADVERTISED_HOST_NAME", "rest.advertised.host.name"),
        ("KAFKA_CFG_LISTENER_NAME_SASL_SSL_X", "listener.name.sasl_ssl.x"),
        ("KAFKA_CFG_LISTENER_NAME_SASL_PLAINTEXT_X", "listener.name.sasl_plaintext.x"),
    ],
)
def test_names_as_bitnami_writes_them(variable: str, key: str) -> None:
    assert worker_properties({**BITNAMI, variable: "it"}) == {**REQUIRED, key: "it"}


def test_debeziums_variables_and_what_its_image_adds() -> None:
    assert worker_properties(DEBEZIUM) == {
        "bootstrap.servers": "kafka:9092",
        "group.id": "1",
        "config.storage.topic": "configs",
        "offset.storage.topic": "offsets",
        "status.storage.topic": "connect-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.flush.interval.ms": "60000",
        "offset.flush.timeout.ms": "5000",
        "task.shutdown.graceful.timeout.ms": "10000",
    }


def test_debeziums_variables_beside_prefixed_ones() -> None:
    given = {
        **DEBEZIUM,
        "GROUP_ID": "7",
        "ADVERTISED_HOST_NAME": "node-1",
        "CONNECT_CONFIG_STORAGE_REPLICATION_FACTOR": "3",
    }
    properties = worker_properties(given)
    assert properties["group.id"] == "7"
    assert properties["rest.advertised.host.name"] == "node-1"
    assert properties["config.storage.replication.factor"] == "3"


def test_debeziums_defaults_are_not_those_of_other_images() -> None:
    assert "offset.storage.replication.factor" not in worker_properties(CONFLUENT)


@pytest.mark.parametrize(
    ("one", "other"),
    [("CONNECT_GROUP_ID", "GROUP_ID"), ("CONNECT_GROUP_ID", "KAFKA_CFG_GROUP_ID")],
)
def test_two_variables_with_different_values_contradict_each_other(one: str, other: str) -> None:
    with pytest.raises(ConfigError, match=f"^{one} and {other}: give group.id different values"):
        worker_properties({**CONFLUENT, one: "secret-1", other: "secret-2"})
    same = worker_properties({**CONFLUENT, one: "same", other: "same"})
    assert same["group.id"] == "same"


def test_a_contradiction_shows_no_value() -> None:
    given = {"CONNECT_SASL_JAAS_CONFIG": "secret-1", "KAFKA_CFG_SASL_JAAS_CONFIG": "secret-2"}
    with pytest.raises(ConfigError) as raised:
        worker_properties({**CONFLUENT, **given})
    assert "secret" not in str(raised.value)


def test_what_is_missing_is_named_by_its_variables() -> None:
    given = {"CONNECT_BOOTSTRAP_SERVERS": "kafka:9092", "CONNECT_GROUP_ID": ""}
    with pytest.raises(ConfigError, match=r"^CONNECT_GROUP_ID, CONNECT_CONFIG_STORAGE_TOPIC, CONNECT_OFFSET"):
        worker_properties(given)


def test_what_kubernetes_adds_for_services_is_left_out() -> None:
    added = {
        "CONNECT_SERVICE_HOST": "10.0.0.1",
        "CONNECT_SERVICE_PORT": "8083",
        "CONNECT_SERVICE_PORT_REST": "8083",
        "CONNECT_PORT": "tcp://10.0.0.1:8083",
        "CONNECT_PORT_8083_TCP": "tcp://10.0.0.1:8083",
        "CONNECT_PORT_8083_TCP_ADDR": "10.0.0.1",
        "CONNECT_REST_SERVICE_HOST": "10.0.0.2",
    }
    assert worker_properties({**CONFLUENT, **added}) == REQUIRED
    assert worker_variables(added) == []


def test_a_port_of_the_user_is_none_of_those() -> None:
    given = {"CONNECT_REST_ADVERTISED_PORT": "8083", "CONNECT_REST_PORT": "28083"}
    properties = worker_properties({**CONFLUENT, **given})
    assert properties["rest.advertised.port"] == "8083"
    assert properties["rest.port"] == "28083"


def test_variables_of_the_images_own_scripts_are_no_properties() -> None:
    own = {"CONNECT_LOG4J_ROOT_LOGLEVEL": "DEBUG", "CONNECT_CUB_KAFKA_TIMEOUT": "60"}
    assert worker_properties({**CONFLUENT, **own}) == REQUIRED


@pytest.mark.parametrize(
    ("environ", "level"),
    [
        ({"CONNECT_LOG4J_ROOT_LOGLEVEL": "DEBUG"}, "debug"),
        ({"LOG_LEVEL": "warn"}, "warning"),
        ({"CONNECT_LOG4J_ROOT_LOGLEVEL": "FATAL"}, "error"),
        ({"LOG_LEVEL": "loud"}, None),
        ({}, None),
    ],
)
def test_levels_of_the_log(environ: dict[str, str], level: str | None) -> None:
    assert log_level(environ) == level


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a=b:c", "a=b:c"),
        ("-----BEGIN-----\nabc\r\n-----END-----", "-----BEGIN-----\nabc\n-----END-----"),
        (r"C:\\x", r"C:\x"),  # as in the images: a backslash is that of a properties file
        ("schlüssel", "schlüssel"),
    ],
)
def test_the_file_holds_the_values(value: str, read: str) -> None:
    assert parse_properties(properties_text({"key": value}), "file")["key"] == read
