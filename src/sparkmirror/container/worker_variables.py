"""Makes a Connect worker's properties of the variables that other images of Kafka take.

Confluent: `CONNECT_GROUP_ID`; a single underscore is a dot, two are an underscore, three a dash.
Debezium: also names without a prefix, and its image has values for what is missing.
Bitnami: `KAFKA_CFG_GROUP_ID`, where every underscore is a dot.

Pure.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from sparkmirror.domain.errors import ConfigError

_CONFLUENT: Final = "CONNECT_"
_BITNAMI: Final = "KAFKA_CFG_"
_DEBEZIUM: Final = {
    "BOOTSTRAP_SERVERS": "bootstrap.servers",
    "GROUP_ID": "group.id",
    "CONFIG_STORAGE_TOPIC": "config.storage.topic",
    "OFFSET_STORAGE_TOPIC": "offset.storage.topic",
    "STATUS_STORAGE_TOPIC": "status.storage.topic",
    "KEY_CONVERTER": "key.converter",
    "VALUE_CONVERTER": "value.converter",
    "OFFSET_FLUSH_INTERVAL_MS": "offset.flush.interval.ms",
    "OFFSET_FLUSH_TIMEOUT_MS": "offset.flush.timeout.ms",
    "SHUTDOWN_TIMEOUT": "task.shutdown.graceful.timeout.ms",
    "REST_PORT": "rest.port",
    "REST_HOST_NAME": "rest.host.name",
    "ADVERTISED_HOST_NAME": "rest.advertised.host.name",
    "ADVERTISED_PORT": "rest.advertised.port",
}
_DEBEZIUM_SIGNS: Final = tuple(_DEBEZIUM)[:5]
"""Names of which one means that the variables are those of Debezium's image."""

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_DEBEZIUM_DEFAULTS: Final = {
    "group.id": "1",
    "key.converter": _JSON,
    "value.converter": _JSON,
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "60000",
    "offset.flush.timeout.ms": "5000",
    "task.shutdown.graceful.timeout.ms": "10000",
}
"""The values of its script, and of Kafka's connect-distributed.properties, which it changes."""

_REQUIRED: Final = (
    "bootstrap.servers",
    "group.id",
    "config.storage.topic",
    "offset.storage.topic",
    "status.storage.topic",
)
_OF_THE_IMAGE: Final = ("CONNECT_LOG4J_", "CONNECT_CUB_", "CONNECT_PROPERTIES_DIR")
"""Variables of Confluent's scripts themselves."""

_ONE_UNDERSCORE: Final = re.compile(r"(?<!_)_(?!_)")
_SERVICE: Final = re.compile(r"_(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_.*)?)$")
_SERVICE_URL: Final = re.compile(r"(?:tcp|udp|sctp)://")
_LEVELS: Final = {
    "TRACE": "debug",
    "DEBUG": "debug",
    "INFO": "info",
    "WARN": "warning",
    "WARNING": "warning",
    "ERROR": "error",
    "FATAL": "error",
}


class _Given(NamedTuple):
    variable: str
    key: str
    value: str


def worker_variables(environ: Mapping[str, str]) -> list[str]:
    """Name the variables that give a worker's properties."""
    return sorted(each.variable for each in _given(environ))


def worker_properties(environ: Mapping[str, str]) -> dict[str, str]:
    """Raises ConfigError for properties that are missing, or that two variables give different values."""
    given = sorted(_given(environ))
    _check_agreement(given)
    defaults = _DEBEZIUM_DEFAULTS if any(environ.get(name) for name in _DEBEZIUM_SIGNS) else {}
    properties = {**defaults, **{key: value for _, key, value in given}}
    missing = [key for key in _REQUIRED if not properties.get(key)]
    if missing:
        names = ", ".join(_CONFLUENT + key.upper().replace(".", "_") for key in missing)
        raise ConfigError(
            names, None, "must be set for a worker without a file; or name a file after `worker`"
        )
    return properties


def properties_text(properties: Mapping[str, str]) -> str:
    """Write a properties file as the images do; a value of several lines stays one."""
    return "".join(
        f"{key}={value.replace(chr(13), '').replace(chr(10), chr(92) + 'n')}\n"
        for key, value in sorted(properties.items())
    )


def log_level(environ: Mapping[str, str]) -> str | None:
    """The level of `--log-level` that `CONNECT_LOG4J_ROOT_LOGLEVEL` or Debezium's `LOG_LEVEL` asks for."""
    named = environ.get("CONNECT_LOG4J_ROOT_LOGLEVEL") or environ.get("LOG_LEVEL") or ""
    return _LEVELS.get(named.strip().upper())


def _given(environ: Mapping[str, str]) -> Iterator[_Given]:
    for name, value in environ.items():
        if _SERVICE.search(name) or _SERVICE_URL.match(value) or name.startswith(_OF_THE_IMAGE):
            continue
        if name.startswith(_CONFLUENT):
            yield _Given(name, _confluent_key(name.removeprefix(_CONFLUENT)), value)
        elif name.startswith(_BITNAMI):
            yield _Given(name, _bitnami_key(name.removeprefix(_BITNAMI)), value)
        elif name in _DEBEZIUM and value:
            yield _Given(name, _DEBEZIUM[name], value)


def _confluent_key(name: str) -> str:
    return _ONE_UNDERSCORE.sub(".", name).replace("___", "-").replace("__", "_").lower()


def _bitnami_key(name: str) -> str:
    """Names of listeners keep their underscore."""
    key = name.replace("_", ".").lower()
    return key.replace("sasl.ssl", "sasl_ssl").replace("sasl.plaintext", "sasl_plaintext")


def _check_agreement(given: list[_Given]) -> None:
    first: dict[str, _Given] = {}
    for each in given:
        other = first.setdefault(each.key, each)
        if other.value != each.value:
            reason = f"give {each.key} different values; set one of them"
            raise ConfigError(f"{other.variable} and {each.variable}", None, reason)
