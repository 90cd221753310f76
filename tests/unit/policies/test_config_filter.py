import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, ConfigEntry, ConfigSource
from sparkmirror.policies.config_filter import (
    DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
    ConfigChanges,
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


def test_new_topic_gets_configs_set_at_the_source() -> None:
    assert creation_configs(TARGET_DEFAULTS, SOURCE) == (("max.message.bytes", "5"), ("retention.ms", "1000"))


def test_new_topic_gets_defaults_of_the_source_if_configured() -> None:
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


def test_defaults_of_the_source_are_set_if_configured() -> None:
    source, target = [default("segment.bytes", "1")], [default("segment.bytes", "2")]
    assert config_changes(SOURCE_DEFAULTS, source, target).operations == (set_to("segment.bytes", "1"),)


def test_sync_without_changes_alters_no_config() -> None:
    source = [ConfigEntry("retention.ms", "1"), default("segment.bytes", "2")]
    target = [ConfigEntry("retention.ms", "1"), default("segment.bytes", "3")]
    assert config_changes(TARGET_DEFAULTS, source, target) == ConfigChanges()


def test_value_equal_to_an_inherited_one_is_set() -> None:
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
def test_configs_of_the_default_list_are_excluded(name: str) -> None:
    assert not TARGET_DEFAULTS.should_replicate_config_property(name)
    assert TARGET_DEFAULTS.should_replicate_config_property(f"x.{name}")


def test_exclude_patterns_match_the_whole_name() -> None:
    chosen = DefaultConfigPropertyFilter(["exclude_param.*", r"min\.insync\.replicas"])
    assert not chosen.should_replicate_config_property("exclude_param.param1")
    assert chosen.should_replicate_config_property("my.exclude_param")
    assert DefaultConfigPropertyFilter([]).should_replicate_config_property("min.insync.replicas")


def test_error_of_a_bad_pattern_names_its_setting() -> None:
    with pytest.raises(ConfigError, match=r"config\.properties\.exclude"):
        DefaultConfigPropertyFilter(["["])
