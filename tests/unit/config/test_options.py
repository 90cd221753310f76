"""Tables of options equal those of Kafka 4.3.1, captured in tests/golden/config."""

import json
from pathlib import Path

import pytest

from sparkmirror.config.client_options import ADMIN, CONSUMER, PRODUCER
from sparkmirror.config.connector_options import (
    MIRROR_CHECKPOINT,
    MIRROR_HEARTBEAT,
    MIRROR_SOURCE,
    OWN,
    SOURCE_FRAMEWORK,
    check_mirror_source,
    mirror_checkpoint_contradictions,
)
from sparkmirror.config.definitions import Definition, Option, Required
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import MIRROR_MAKER, OWN_WORKER, WORKER
from sparkmirror.domain.errors import ConfigError
from tests.support.configuration_page import PAGE, rendered

GOLDEN = Path(__file__).parents[2] / "golden" / "config" / "config_defs.json"
JAVA: dict[str, dict[str, dict[str, str | None]]] = json.loads(GOLDEN.read_text())

TABLES = {
    "admin": ADMIN,
    "consumer": CONSUMER,
    "producer": PRODUCER,
    "source": MIRROR_SOURCE,
    "checkpoint": MIRROR_CHECKPOINT,
    "heartbeat": MIRROR_HEARTBEAT,
    "mirror_maker": MIRROR_MAKER,
    "worker": WORKER,
}

OWN_DEFAULTS = {
    "consumer": {"auto.offset.reset"},
    "producer": {"compression.type", "delivery.timeout.ms", "max.block.ms", "enable.idempotence"},
    "worker": {"plugin.path"},
}
"""MM2 and Connect set these themselves."""

GIVEN_BY_CONNECT = {
    "bootstrap.servers",
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
}
INTERNAL = {"internal.throw.on.fetch.stable.offset.unsupported"}


def default_text(option: Option) -> str | None:
    match option.default:
        case Required():
            return "REQUIRED"
        case bool(flag):
            return str(flag).lower()
        case tuple(items):
            return ",".join(items)
        case None:
            return None
        case other:
            return str(other)


@pytest.mark.parametrize("name", TABLES)
def test_every_option_of_java_is_there(name: str) -> None:
    assert JAVA[name].keys() - INTERNAL <= TABLES[name].names


@pytest.mark.parametrize("name", ["admin", "consumer", "producer", "source", "checkpoint", "heartbeat"])
def test_nothing_is_invented(name: str) -> None:
    assert TABLES[name].names <= JAVA[name].keys()


@pytest.mark.parametrize("name", TABLES)
def test_types_are_java_s(name: str) -> None:
    ours = {option.name: option.type.value for option in TABLES[name] if option.name in JAVA[name]}
    assert ours == {key: JAVA[name][key]["type"] for key in ours}


@pytest.mark.parametrize("name", TABLES)
def test_defaults_are_java_s(name: str) -> None:
    skipped = OWN_DEFAULTS.get(name, set()) | GIVEN_BY_CONNECT
    ours = {o.name: default_text(o) for o in TABLES[name] if o.name in JAVA[name].keys() - skipped}
    java = {key: (JAVA[name][key]["default"] or "").replace("class ", "") or None for key in ours}
    assert {key: value or None for key, value in ours.items()} == java


@pytest.mark.parametrize("table", [*TABLES.values(), SOURCE_FRAMEWORK])
def test_defaults_satisfy_their_own_option(table: Definition) -> None:
    for option in table:
        text = default_text(option)
        if text is not None and not option.required and option.name not in GIVEN_BY_CONNECT:
            assert option.parse(text) == option.default, option.name


@pytest.mark.parametrize("table", [OWN, OWN_WORKER])
def test_every_option_of_ours_has_a_sentence(table: Definition) -> None:
    assert [option.name for option in table if not (option.doc or "").endswith(".")] == []


def test_the_page_lists_every_option_of_ours_with_its_default_and_sentence() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered(), "run python -m tests.support.configuration_page"
    for option in (*OWN, *OWN_WORKER):
        assert f"| `{option.name}` |" in rendered()
        assert f"| {option.doc} |" in rendered()


def source(**more: str) -> Properties:
    named = {key.replace("__", "-").replace("_", "."): value for key, value in more.items()}
    return Properties({"name": "n", "connector.class": "c", "source.cluster.alias": "A"} | named)


def test_a_connector_needs_a_source_alias() -> None:
    with pytest.raises(ConfigError, match=r'Missing required configuration "source\.cluster\.alias"'):
        MIRROR_SOURCE.parse(Properties({"name": "n", "connector.class": "c"}))


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (
            "offset.lag.max",
            "abc",
            "Invalid value abc for configuration offset.lag.max: Not a number of type LONG",
        ),
        ("tasks.max", "0", "Invalid value 0 for configuration tasks.max: Value must be at least 1"),
        (
            "offset-syncs.topic.location",
            "Source",
            (
                "Invalid value Source for configuration offset-syncs.topic.location: "
                "String must be one of: source, target"
            ),
        ),
    ],
)
def test_errors_are_worded_like_kafka_s(key: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MIRROR_SOURCE.parse(source() | Properties({key: text}))
    assert str(caught.value) == message


def test_empty_topics_are_legal() -> None:
    assert MIRROR_SOURCE.parse(source(topics="")).strings("topics") == ()


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"emit.offset-syncs.enabled": "false"}, False),
        ({"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "source"}, True),
        ({"emit.offset-syncs.enabled": "false", "offset-syncs.topic.replication.factor": "1"}, True),
        ({"emit.offset-syncs.enabled": "false", "offset-syncs-x": "1"}, True),
        ({"emit.offset-syncs.enabled": "FALSE", "offset-syncs.topic.location": "source"}, False),
        ({"emit.offset-syncs.enabled": "true", "offset-syncs.topic.location": "source"}, False),
        ({"offset-syncs.topic.location": "source"}, False),
        ({"exactly.once.support": "required"}, True),
        ({"exactly.once.support": "Required", "consumer.isolation.level": "read_committed"}, False),
        ({"exactly.once.support": "required", "source.consumer.isolation.level": "read_committed"}, False),
        ({"exactly.once.support": "requested"}, False),
    ],
)
def test_mirror_source_refuses_contradictions(given: dict[str, str], refused: bool) -> None:
    if refused:
        with pytest.raises(ConfigError):
            check_mirror_source(Properties(given))
    else:
        check_mirror_source(Properties(given))


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"emit.checkpoints.enabled": "false"}, "emit.checkpoints.enabled"),
        ({"emit.offset-syncs.enabled": "false"}, "emit.offset-syncs.enabled"),
        ({"emit.checkpoints.enabled": "false", "enabled": "false"}, None),
        ({}, None),
    ],
)
def test_mirror_checkpoint_names_the_first_key_that_contradicts(
    given: dict[str, str], key: str | None
) -> None:
    assert next(iter(mirror_checkpoint_contradictions(Properties(given))), None) == key
