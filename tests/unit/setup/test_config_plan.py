from sparkmirror.domain.topics import ConfigEntry, ConfigSource
from sparkmirror.policies.config_filter import DefaultConfigPropertyFilter
from sparkmirror.setup.config_plan import config_differences
from sparkmirror.setup.topic_explanation import ConfigDifference

DEFAULT = ConfigSource.DEFAULT_CONFIG


def test_nothing_is_set_without_a_sync() -> None:
    source, target = [ConfigEntry("retention.ms", "5")], [ConfigEntry("retention.ms", "6")]
    (found,) = config_differences(DefaultConfigPropertyFilter(), source, target, is_synced=False)
    assert found.why == "left as it is: no sync is enabled"


def differences(source: list[ConfigEntry], target: list[ConfigEntry]) -> list[ConfigDifference]:
    return list(config_differences(DefaultConfigPropertyFilter(), source, target))


def test_equal_configs_are_no_difference() -> None:
    same = [ConfigEntry("retention.ms", "5"), ConfigEntry("segment.ms", "7", DEFAULT)]
    assert differences(same, same) == []


def test_each_difference_has_the_reason_why_it_stays() -> None:
    source = [
        ConfigEntry("retention.ms", "5"),
        ConfigEntry("segment.ms", "7", DEFAULT),
        ConfigEntry("min.insync.replicas", "2"),
        ConfigEntry("max.message.bytes", "9", DEFAULT),
        ConfigEntry("new.thing", "1"),
        ConfigEntry("preallocate", "true", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigEntry("secret", None, is_sensitive=True),
    ]
    target = [
        ConfigEntry("retention.ms", "6"),
        ConfigEntry("segment.ms", "8"),
        ConfigEntry("min.insync.replicas", "1"),
        ConfigEntry("max.message.bytes", "10", DEFAULT),
        ConfigEntry("preallocate", "false", DEFAULT),
        ConfigEntry("old.thing", "1"),
        ConfigEntry("secret", "x"),
    ]
    assert {each.name: each.why for each in differences(source, target)} == {
        "retention.ms": "the next sync sets it",
        "segment.ms": "the next sync resets it",
        "min.insync.replicas": "excluded: config.properties.exclude",
        "max.message.bytes": "a default of each cluster's own: use.defaults.from",
        "new.thing": "the target does not know it",
        "old.thing": "the source does not know it",
        "preallocate": "a setting of the source's brokers",
        "secret": "sensitive: its value can't be read",
    }
    assert differences(source, target)[-2] == ConfigDifference(
        "secret", None, "x", "sensitive: its value can't be read"
    )


def test_a_value_that_is_merely_inherited_is_set() -> None:
    (found,) = differences(
        [ConfigEntry("retention.ms", "5")],
        [ConfigEntry("retention.ms", "5", ConfigSource.STATIC_BROKER_CONFIG)],
    )
    assert (found.source, found.target, found.why) == ("5", "5", "the next sync sets it")
