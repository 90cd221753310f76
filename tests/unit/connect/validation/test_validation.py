"""Validation of connector configs. `test_validation_against_java.py` compares it with a Java worker."""

from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.connector_options import CONNECTORS, OWN, OWN_OPTIONS, SOURCE_FRAMEWORK
from sparkmirror.config.properties import Properties
from sparkmirror.connect.validation import (
    connector_class,
    invalid_config_message,
    plugin_config_keys,
    plugins,
    validate,
    with_errors,
)
from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.errors import ConfigError, InvalidConfigError

MIRROR = "org.apache.kafka.connect.mirror."
SOURCE = MIRROR + "MirrorSourceConnector"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
GOOD = {"name": "msc", "connector.class": SOURCE, "source.cluster.alias": "A"}
WORKER = Properties(
    {
        "connector.client.config.override.policy": "All",
        "plugin.modules": "tests.support.example_plugins, no_such",
    }
)
Config = dict[str, str | None]


def said(config: Config, worker: Properties = WORKER, environment: dict[str, str] | None = None) -> Any:
    return validate(None, config, worker, environment or {})


def errors(config: Config, worker: Properties = WORKER) -> dict[str, list[str]]:
    values = [one["value"] for one in said({**GOOD, **config}, worker)["configs"]]
    return {value["name"]: value["errors"] for value in values if value["errors"]}


def value(infos: Any, key: str) -> Any:
    (found,) = (one["value"] for one in infos["configs"] if one["value"]["name"] == key)
    return found


def test_plugins_are_the_three_connectors() -> None:
    assert [plugin["class"] for plugin in plugins()] == sorted(CONNECTORS)
    assert {plugin["type"] for plugin in plugins()} == {"source"}
    more = plugins(connectors_only=False)[3:]
    assert [(plugin["class"], plugin["type"]) for plugin in more] == [
        (BYTES, "converter"),
        (BYTES, "header_converter"),
    ]


@pytest.mark.parametrize("alias", [SOURCE, "MirrorSourceConnector", "MirrorSource"])
def test_a_connector_has_three_names(alias: str) -> None:
    assert connector_class(alias) == SOURCE
    assert said({**GOOD, "connector.class": alias})["name"] == alias


@pytest.mark.parametrize("plugin", [*CONNECTORS, "MirrorHeartbeat"])
def test_every_option_is_described(plugin: str) -> None:
    described = {key["name"]: key for key in plugin_config_keys(plugin)}
    options = CONNECTORS[connector_class(plugin) or ""] | SOURCE_FRAMEWORK
    assert described.keys() - OWN.names == options.names
    assert {option.name for option in options if option.required} == {
        name for name, key in described.items() if key["required"]
    }
    assert all(described[option.name]["type"] == option.type.value for option in options)


@pytest.mark.parametrize("plugin", CONNECTORS)
def test_declared_docs_are_those_that_validate_shows(plugin: str) -> None:
    documented = {key["name"]: key["documentation"] for key in plugin_config_keys(plugin)}
    for option in CONNECTORS[plugin] | SOURCE_FRAMEWORK | OWN_OPTIONS[plugin]:
        assert option.doc in (None, documented[option.name])


def test_converters_are_described_and_other_plugins_are_not_there() -> None:
    assert [key["name"] for key in plugin_config_keys("ByteArray")] == ["converter.type"]
    with pytest.raises(ConnectError, match="Unknown plugin FileStreamSink") as caught:
        plugin_config_keys("FileStreamSink")
    assert caught.value.status == 404


def test_options_of_our_own_are_described_too() -> None:
    described = {key["name"]: key for key in plugin_config_keys("MirrorSource")}
    assert described["on.data.loss"]["default_value"] == "record"
    assert errors({"on.data.loss": "ignore"}) == {
        "on.data.loss": [
            "Invalid value ignore for configuration on.data.loss: String must be one of: record, fail"
        ]
    }


def test_defaults_are_shown() -> None:
    infos = said(dict(GOOD))
    assert infos["error_count"] == 0
    assert value(infos, "tasks.max")["value"] == "1"
    assert value(infos, "topics")["value"] == ".*"


def test_a_missing_option_is_an_error() -> None:
    infos = said({"connector.class": "MirrorSource"})
    message = invalid_config_message(infos)
    assert message is not None
    assert message.splitlines() == [
        "Connector configuration is invalid and contains the following 2 error(s):",
        'Missing required configuration "name" which has no default value.',
        'Missing required configuration "source.cluster.alias" which has no default value.',
        (
            "You can also find the above list of errors at the endpoint"
            " `/connector-plugins/{connectorType}/config/validate`"
        ),
    ]


def test_a_text_that_is_no_number_is_validated_as_null_too() -> None:
    assert errors({"tasks.max": "many"}) == {
        "tasks.max": [
            "Invalid value many for configuration tasks.max: Not a number of type INT",
            "Invalid value null for configuration tasks.max: Value must be non-null",
        ]
    }


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("topics", "a,a", "Configuration 'topics' values must not be duplicated."),
        ("topics", "a,,b", "Configuration 'topics' values must not be empty."),
        ("topics", "[", "not a usable Java regular expression"),
        ("config.properties.exclude", "*", "not a usable Java regular expression"),
        ("metric.names.formats", "", "must not be empty. Valid values include: [legacy, new]"),
        ("metric.names.formats", "old", "Invalid value old for configuration metric.names.formats"),
        ("offsets.storage.topic", "mine", "is not supported"),
        ("replication.policy.class", "MyPolicy", "Class MyPolicy could not be found."),
        ("key.converter", "org.apache.kafka.connect.json.JsonConverter", "Base64 inside of JSON"),
        ("value.converter", "org.apache.kafka.connect.storage.StringConverter", "name of an array"),
        ("header.converter", "Simple", "Base64"),
        ("header.converter", "com.example.Mine", "Class com.example.Mine could not be found."),
        ("key.converter.plugin.version", "3.9.0", "only 4.3.1 is here"),
        ("errors.tolerance", "some", "String must be one of: none, all"),
        ("exactly.once.support", "perhaps", "String must be one of (case insensitive): REQUIRED, REQUESTED"),
        ("transaction.boundary", "connector", "does not support connector-defined transaction boundaries"),
        ("transaction.boundary.interval.ms", "-1", "Value must be at least 0"),
        ("producer.override.batch.size", "big", "Not a number of type INT"),
        ("producer.override.acks", "7", "String must be one of: all, -1, 0, 1"),
    ],
)
def test_refusals(key: str, text: str, reason: str) -> None:
    found = errors({key: text})
    assert found.keys() == {key}
    assert reason in found[key][0]


def test_null_is_no_value() -> None:
    found = errors({"topics": None, "exactly.once.support": None, "nobody.knows.it": None})
    assert all(texts[-1].startswith("Null value can not be supplied") for texts in found.values())
    assert found.keys() == {"topics", "exactly.once.support", "nobody.knows.it"}


@pytest.mark.parametrize("name", ["MirrorSource", "MirrorCheckpoint"])
def test_exactly_once_needs_a_worker_that_has_it(name: str) -> None:
    asked: Config = {
        "connector.class": name,
        "exactly.once.support": "required",
        "consumer.isolation.level": "read_committed",
    }
    found = errors(asked)["exactly.once.support"]
    assert found[0] == "This worker does not have exactly-once source support enabled."
    able = errors(asked, Properties({"exactly.once.source.support": "enabled"}))
    assert len(found) - len(able.get("exactly.once.support", [])) == 1


def test_a_connectors_errors_replace_those_of_the_framework() -> None:
    (found,) = errors({"exactly.once.support": "required"})["exactly.once.support"]
    assert found.startswith("MirrorSourceConnector can only provide exactly-once guarantees when")
    asked: Config = {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"}
    without_syncs = errors(asked)
    assert without_syncs.keys() == {"emit.offset-syncs.enabled"}
    assert "can't setup offset-syncs feature" in without_syncs["emit.offset-syncs.enabled"][0]


def test_a_checkpoint_connector_needs_offset_syncs() -> None:
    asked: Config = {
        "connector.class": "MirrorCheckpoint",
        "emit.checkpoints.enabled": "false",
        "emit.offset-syncs.enabled": "false",
        "groups": "(",
    }
    assert errors(asked).keys() == {"emit.checkpoints.enabled", "emit.offset-syncs.enabled", "groups"}
    assert errors(asked | {"enabled": "false"}).keys() == {"groups"}


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ("All", set()),
        ("None", {"acks", "sasl.mechanism"}),
        ("org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy", {"acks"}),
        ("Allowlist", {"sasl.mechanism"}),
    ],
)
def test_overrides_follow_the_worker_s_policy(policy: str, refused: set[str]) -> None:
    worker = Properties(
        {
            "connector.client.config.override.policy": policy,
            "connector.client.config.override.allowlist": "acks, batch.size",
        }
    )
    asked: Config = {"producer.override.acks": "all", "producer.override.sasl.mechanism": "PLAIN"}
    found = errors(asked, worker)
    assert found.keys() == {f"producer.override.{name}" for name in refused}
    assert errors({"admin.override.retries": "3", "consumer.override.check.crcs": "true"}, worker) == {}


def test_converters_bring_their_own_options() -> None:
    infos = said({**GOOD, "key.converter": BYTES, "value.converter": " ByteArrayConverter"})
    assert infos["error_count"] == 0
    assert value(infos, "key.converter")["value"] == value(infos, "value.converter")["value"] == BYTES
    assert value(infos, "key.converter.converter.type")["value"] == "key"
    assert "value.converter.converter.type" not in str(infos)
    assert errors({"key.converter": BYTES, "key.converter.converter.type": "all"}).keys() == {
        "key.converter.converter.type"
    }


def test_another_version_ends_the_validation() -> None:
    infos = said({**GOOD, "connector.plugin.version": "[5.0,)", "tasks.max": "0"})
    assert infos["error_count"] == 3
    assert value(infos, "connector.plugin.version")["recommended_values"] == ["4.3.1"]
    assert said({**GOOD, "connector.plugin.version": "4.3.1"})["error_count"] == 0


def test_passwords_are_never_shown() -> None:
    infos = said(
        {
            **GOOD,
            "sasl.jaas.config": "geheim",
            "producer.override.sasl.jaas.config": "geheim",
            "producer.override.my.password": "geheim",
        }
    )
    assert "geheim" not in str(infos)
    assert value(infos, "sasl.jaas.config")["value"] == "[hidden]"
    with pytest.raises(ConnectError) as caught:
        said({"name": "x", "my.password": "geheim"})
    assert str(caught.value) == "Connector config {name=x, my.password=[hidden]} contains no connector type"


def test_placeholders_are_judged_resolved_and_shown_as_written(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("tasks=geheim\ntopics=geheim[\nlocation=target\nclass=geheim\n", encoding="utf-8")
    worker = Properties(
        {
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        }
    )

    def behind(name: str) -> str:
        return f"${{file:{secrets}:{name}}}"

    infos = said(
        {
            **GOOD,
            "tasks.max": behind("tasks"),
            "topics": behind("topics"),
            "replication.policy.class": behind("class"),
            "offset-syncs.topic.location": behind("location"),
            "replication.factor": behind("nothing"),
            "producer.override.linger.ms": behind("nothing"),
            "admin.timeout.ms": "${nobody:x}",
        },
        worker,
    )
    assert "geheim" not in str(infos)
    assert value(infos, "offset-syncs.topic.location")["value"] == behind("location")
    wrong = {one["value"]["name"] for one in infos["configs"] if one["value"]["errors"]}
    assert wrong == {
        "tasks.max",
        "topics",
        "replication.policy.class",
        "replication.factor",
        "producer.override.linger.ms",
        "admin.timeout.ms",
    }
    assert "provider 'file' has no value for 'nothing'" in value(infos, "replication.factor")["errors"][0]


def test_a_resolved_placeholder_is_in_no_error(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("secret=geheim\nclass=MirrorSource\n", encoding="utf-8")
    worker = Properties(
        {
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        }
    )
    secret, kind, nothing = (f"${{file:{secrets}:{name}}}" for name in ("secret", "class", "nothing"))
    for text, message in ((secret, f"which name matches {secret},"), (nothing, "has no value for 'nothing'")):
        with pytest.raises(ConnectError) as caught:
            said({**GOOD, "connector.class": text}, worker)
        assert message in str(caught.value)
        assert "geheim" not in str(caught.value)
    infos = said({**GOOD, "connector.class": kind, "connector.plugin.version": secret}, worker)
    assert infos["error_count"] == 2
    assert "geheim" not in str(infos)


@pytest.mark.parametrize(
    ("path", "included"),
    [
        ("MirrorSource", SOURCE),
        ("MirrorSourceConnector", "MirrorSource"),
        (SOURCE, SOURCE),
        ("Source", SOURCE),
    ],
)
def test_the_path_and_the_body_name_one_class(path: str, included: str) -> None:
    assert validate(path, {**GOOD, "connector.class": included}, WORKER)["error_count"] == 0


@pytest.mark.parametrize(
    ("path", "config", "message"),
    [
        (
            "MirrorHeartbeat",
            {"connector.class": "MirrorSource"},
            "Included connector type MirrorSource does not match request type MirrorHeartbeat",
        ),
        ("MirrorSource", {"name": "a"}, "Connector config {name=a} contains no connector type"),
        (None, {"connector.class": None}, "Connector config {connector.class=null} contains no connector"),
        (None, {"connector.class": "FileStreamSink"}, ", ".join(sorted(CONNECTORS))),
    ],
)
def test_a_config_without_a_usable_class_is_refused(path: str | None, config: Config, message: str) -> None:
    with pytest.raises(ConnectError) as caught:
        validate(path, config, WORKER)
    assert caught.value.status == 400
    assert message in str(caught.value)


def test_later_errors_are_added_once() -> None:
    infos = said({**GOOD, "tasks.max": "0"})
    known = ConfigError("tasks.max", "0", "Value must be at least 1")
    later = ConfigError("source.cluster.bootstrap.servers", None, "is missing")
    more = with_errors(infos, InvalidConfigError([known, later]))
    assert (infos["error_count"], more["error_count"]) == (1, 2)
    assert value(more, "source.cluster.bootstrap.servers")["errors"] == [str(later)]


PLUGIN = "tests.support.example_plugins:"


def test_classes_of_peoples_own() -> None:
    assert errors({"replication.policy.class": PLUGIN + "Suffixed"}) == {}
    assert errors({"forwarding.admin.class": PLUGIN + "Choosy"}) == {}
    infos = said({**GOOD, "replication.policy.class": f" {PLUGIN}Suffixed"})
    assert value(infos, "replication.policy.class")["value"] == f"{PLUGIN}Suffixed"


@pytest.mark.parametrize(
    ("key", "name", "reason"),
    [
        ("replication.policy.class", "com.acme.Policy", "there is no Java here"),
        ("replication.policy.class", f"{PLUGIN}Initials", "is no ReplicationPolicy: it has no format_remote"),
        ("topic.filter.class", f"{PLUGIN}Suffixed", "is no TopicFilter: it has no should_replicate"),
        ("config.property.filter.class", "no_such:Filter", "there is no module no_such"),
        ("forwarding.admin.class", f"{PLUGIN}NoSubclass", "is no subclass of sparkmirror.plugins.Forwarding"),
    ],
)
def test_classes_that_can_not_be_used(key: str, name: str, reason: str) -> None:
    found = errors({key: name})
    assert found.keys() == {key}
    start = f"Invalid value {name} for configuration {key}: Class {name} could not be found. "
    assert found[key][0].startswith(start)
    assert reason in found[key][0]


def test_a_class_behind_a_placeholder_is_not_shown() -> None:
    worker = Properties(
        {
            "config.providers": "env",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        }
    )
    config: Config = {**GOOD, "replication.policy.class": "${env:POLICY}"}
    infos = said(config, worker, {"POLICY": "secret_module:Policy"})
    (error,) = value(infos, "replication.policy.class")["errors"]
    assert "the value of the placeholder can't be used" in error
    assert "secret_module" not in str(infos)


def test_options_of_a_plugin_filter_are_not_validated() -> None:
    own: Config = {"topic.filter.class": PLUGIN + "Initials", "topics": "["}
    assert errors(own) == {}
    assert errors({**own, "config.properties.exclude": "["}).keys() == {"config.properties.exclude"}


TRANSFORM: Config = {"transforms": "a", "transforms.a.type": "sparkmirror.transforms.Function"}


@pytest.mark.parametrize(
    ("config", "key", "reason"),
    [
        ({"transforms": "a"}, "transforms.a.type", "Missing required"),
        (
            {"transforms": "a,a", "transforms.a.type": "Filter"},
            "transforms",
            "Invalid value [a, a] for configuration transforms: Duplicate alias",
        ),
        (
            {"transforms": "a", "transforms.a.type": "InsertHeader", "transforms.a.header": "h"},
            "transforms.a.value.literal",
            "Missing required",
        ),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "maybe"},
            "transforms.a.negate",
            "either true or false",
        ),
        ({"transforms": "a", "transforms.a.type": "Cast$Value"}, "transforms.a.type", "A function does it"),
        (
            {**TRANSFORM, "transforms.a.function": "os:getcwd"},
            "transforms.a.function",
            "its module is not in",
        ),
        (
            {**TRANSFORM, "transforms.a.function": f"{PLUGIN}lost"},
            "transforms.a.function",
            "there is no lost",
        ),
        (
            {"connector.class": "MirrorCheckpoint", "transforms": "a", "transforms.a.type": "Filter"},
            "transforms",
            "is for MirrorSourceConnector",
        ),
    ],
)
def test_wrong_transforms_are_refused_by_their_keys(config: Config, key: str, reason: str) -> None:
    found = errors(config)
    assert found.keys() == {key}
    assert reason in found[key][0]


def test_transforms_of_a_listed_module_are_accepted() -> None:
    assert errors({**TRANSFORM, "transforms.a.function": f"{PLUGIN}untouched"}) == {}
    assert errors({"transforms": "a", "transforms.a.type": "Filter"}) == {}
    checkpoints: Config = {"connector.class": "MirrorCheckpoint", "transforms": "a"}
    router: Config = {
        "transforms.a.type": "RegexRouter",
        "transforms.a.regex": ".*",
        "transforms.a.replacement": "x",
    }
    assert errors({**checkpoints, **router}) == {}


def test_transforms_and_predicates_have_infos_in_groups_of_their_own() -> None:
    infos = said(
        {
            **GOOD,
            "transforms": "only, mine",
            "transforms.only.type": "Filter",
            "transforms.only.predicate": "eu",
            "transforms.mine.type": "sparkmirror.transforms.Function",
            "transforms.mine.function": f"{PLUGIN}lost",
            "predicates": "eu",
            "predicates.eu.type": "HasHeaderKey",
            "predicates.eu.name": "region",
        },
        WORKER,
    )
    known = {one["value"]["name"]: one for one in infos["configs"] if one["definition"] is not None}
    assert [key for key in known if key.startswith(("transforms.", "predicates."))] == [
        "transforms.only.type",
        "transforms.only.plugin.version",
        "transforms.only.negate",
        "transforms.only.predicate",
        "transforms.mine.type",
        "transforms.mine.plugin.version",
        "transforms.mine.negate",
        "transforms.mine.predicate",
        "transforms.mine.function",
        "predicates.eu.type",
        "predicates.eu.plugin.version",
        "predicates.eu.name",
    ]
    kind = known["transforms.only.type"]
    assert kind["value"]["value"] == "org.apache.kafka.connect.transforms.Filter"
    assert "sparkmirror.transforms.Function" in kind["value"]["recommended_values"]
    assert kind["definition"]["display_name"] == "Transformation type for only"
    assert known["predicates.eu.name"]["definition"]["group"] == "Predicates: eu"
    assert known["transforms.mine.function"]["definition"]["group"] == "Transforms: mine"
    assert "there is no lost" in known["transforms.mine.function"]["value"]["errors"][0]
    assert infos["groups"] == [
        *("Common", "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support"),
        *("offsets.topic", "Transforms: only", "Transforms: mine", "Predicates: eu"),
    ]
