import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.config_filter import (
    DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
    AlterConfigOp,
    AlterConfigOpType,
    ConfigChanges,
    ConfigEntry,
    ConfigSource,
    DefaultConfigPropertyFilter,
    DefaultsFrom,
    config_changes,
    creation_configs,
)

TARGET_DEFAULTS = DefaultConfigPropertyFilter()
SOURCE_DEFAULTS = DefaultConfigPropertyFilter(defaults_from=DefaultsFrom.SOURCE)


def default(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name, value, ConfigSource.DEFAULT_CONFIG)


def set_to(name: str, value: str) -> AlterConfigOp:
    return AlterConfigOp(name, AlterConfigOpType.SET, value)


def delete(name: str) -> AlterConfigOp:
    return AlterConfigOp(name, AlterConfigOpType.DELETE)


SOURCE = [
    ConfigEntry("retention.ms", "1000"),
    default("segment.bytes", "1073741824"),
    ConfigEntry("max.message.bytes", "5", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    ConfigEntry("compression.type", "lz4", ConfigSource.STATIC_BROKER_CONFIG),
    ConfigEntry("min.insync.replicas", "2"),
    ConfigEntry("read.only", "x", is_read_only=True),
    ConfigEntry("secret", None, is_sensitive=True),
]


def test_a_new_topic_gets_what_was_set_at_the_source() -> None:
    assert creation_configs(TARGET_DEFAULTS, SOURCE) == (("max.message.bytes", "5"), ("retention.ms", "1000"))


def test_a_new_topic_gets_defaults_only_from_the_source() -> None:
    expected = (("max.message.bytes", "5"), ("retention.ms", "1000"), ("segment.bytes", "1073741824"))
    assert creation_configs(SOURCE_DEFAULTS, SOURCE) == expected


def test_kafkas_own_defaults_are_reset_on_the_target() -> None:
    target = [
        default("retention.ms", "604800000"),
        ConfigEntry("segment.bytes", "77"),
        default("max.message.bytes", "9"),
        default("compression.type", "producer"),
    ]
    changes = config_changes(TARGET_DEFAULTS, SOURCE, target)
    assert changes.operations == (
        set_to("max.message.bytes", "5"),
        set_to("retention.ms", "1000"),
        delete("segment.bytes"),
    )


def test_defaults_of_the_source_are_set_when_asked_for() -> None:
    source, target = [default("segment.bytes", "1")], [default("segment.bytes", "2")]
    assert config_changes(SOURCE_DEFAULTS, source, target).operations == (set_to("segment.bytes", "1"),)


def test_a_quiet_sync_alters_nothing() -> None:
    source = [ConfigEntry("retention.ms", "1"), default("segment.bytes", "2")]
    target = [ConfigEntry("retention.ms", "1"), default("segment.bytes", "3")]
    assert config_changes(TARGET_DEFAULTS, source, target) == ConfigChanges()


def test_an_equal_but_inherited_value_is_still_set() -> None:
    source = [ConfigEntry("retention.ms", "1")]
    target = [ConfigEntry("retention.ms", "1", ConfigSource.STATIC_BROKER_CONFIG)]
    assert config_changes(TARGET_DEFAULTS, source, target).operations == (set_to("retention.ms", "1"),)


def test_a_manual_change_on_the_target_is_reverted() -> None:
    source, target = [ConfigEntry("retention.ms", "1")], [ConfigEntry("retention.ms", "2")]
    assert config_changes(TARGET_DEFAULTS, source, target).operations == (set_to("retention.ms", "1"),)


def test_a_config_unknown_to_an_older_target_is_reported_and_skipped() -> None:
    source = [ConfigEntry("new.config", "1"), default("newer.config", "2"), ConfigEntry("retention.ms", "1")]
    changes = config_changes(TARGET_DEFAULTS, source, [ConfigEntry("retention.ms", "2")])
    assert changes == ConfigChanges((set_to("retention.ms", "1"),), unknown=("new.config",))


@pytest.mark.parametrize("name", DEFAULT_CONFIG_PROPERTIES_EXCLUDE)
def test_default_excludes(name: str) -> None:
    assert not TARGET_DEFAULTS.should_replicate_config_property(name)
    assert TARGET_DEFAULTS.should_replicate_config_property(f"x.{name}")


def test_excludes_are_whole_regexes() -> None:
    chosen = DefaultConfigPropertyFilter(["exclude_param.*", r"min\.insync\.replicas"])
    assert not chosen.should_replicate_config_property("exclude_param.param1")
    assert chosen.should_replicate_config_property("my.exclude_param")
    assert DefaultConfigPropertyFilter([]).should_replicate_config_property("min.insync.replicas")


def test_a_bad_pattern_names_its_list() -> None:
    with pytest.raises(ConfigError, match=r"config\.properties\.exclude"):
        DefaultConfigPropertyFilter(["["])
