"""Validates a connector's overrides of the worker's clients by the worker's override policy (KIP-458)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from sparkmirror.config import kafka_options
from sparkmirror.config.client_options import ADMIN, PRODUCER
from sparkmirror.config.definitions import JAVA_WHITESPACE, Definition
from sparkmirror.config.properties import Properties
from sparkmirror.connect.validation.infos import ConfigValue
from sparkmirror.connect.validation.values import Given, judged

POLICY: Final = "connector.client.config.override.policy"
ALLOWLIST: Final = "connector.client.config.override.allowlist"
"""Read by the policy of that name; in no table of Kafka's (KIP-1188)."""

_PACKAGE: Final = "org.apache.kafka.connect.connector.policy."
_SUFFIX: Final = "ConnectorClientConfigOverridePolicy"
_POLICIES: Final = ("All", "None", "Principal", "Allowlist")
_OF_PRINCIPAL: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


def policy_name(worker: Properties) -> str:
    """The name of a worker's override policy. Raises ConfigError for a class that is not one of Connect's."""
    given = worker.get(POLICY, "All").strip(JAVA_WHITESPACE)
    name = given.removeprefix(_PACKAGE).removesuffix(_SUFFIX)
    if name not in _POLICIES:
        raise worker.error(POLICY, f"is not supported; use one of {', '.join(_POLICIES)}")
    return name


def infos_of(given: Given, worker: Properties) -> Iterator[dict[str, Any]]:
    """ConfigInfo of each `producer.override.…`, and of `admin.override.…` where Connect would use them."""
    yield from _client("producer", PRODUCER, given, worker)
    if any(key.startswith("topic.creation.") for key in given):
        yield from _client("admin", ADMIN, given, worker)


def _client(client: str, options: Definition, given: Given, worker: Properties) -> Iterator[dict[str, Any]]:
    prefix = f"{client}.override."
    definitions = {info["name"]: info for info in kafka_options.descriptions(client)}
    for key in given:
        name = key.removeprefix(prefix)
        if name in (key, "") or key in given.failures:
            continue
        definition = definitions.get(name)
        if definition is None:
            value = ConfigValue(key, given.shown(key))
        else:
            value = judged(replace(options[name], name=key), None, given)
        if not _is_allowed(name, worker):
            value = value.with_error(
                f"The '{policy_name(worker)}' policy does not allow '{name}' to be overridden in the"
                " connector configuration."
            )
        yield value.info(None if definition is None else definition | {"name": key})


def _is_allowed(name: str, worker: Properties) -> bool:
    match policy_name(worker):
        case "All":
            return True
        case "Principal":
            return name in _OF_PRINCIPAL
        case "Allowlist":
            return name in [item.strip() for item in worker.get(ALLOWLIST, "").split(",")]
        case _:
            return False
