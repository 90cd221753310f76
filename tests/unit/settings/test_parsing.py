import re
from collections.abc import Mapping
from enum import Enum

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.domain.assignment import PartitionAssignment
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.incidents import OnBadBatch, OnDataLoss, OnLoop, OnTopicRecreated, Reactions
from sparkmirror.domain.preserving import OnGap, OnMismatch, Preserving
from sparkmirror.offsets.resolution import ResolveOffsets
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.policies.replication import DefaultReplicationPolicy, IdentityReplicationPolicy
from sparkmirror.settings.checkpoint import MirrorCheckpointSettings, counterpart, is_followed
from sparkmirror.settings.parsing import (
    mirror_checkpoint_off,
    mirror_checkpoint_settings,
    mirror_heartbeat_settings,
    mirror_source_enabled,
    mirror_source_settings,
)
from sparkmirror.transforms.chain import Chain, Filter, Link
from tests.unit.settings.source_settings import CONNECTOR, MIRROR, source


@pytest.mark.parametrize(
    ("key", "reaction"),
    [
        (key, reaction)
        for key, kind in (
            ("on.data.loss", OnDataLoss),
            ("on.topic.recreated", OnTopicRecreated),
            ("on.bad.batch", OnBadBatch),
            ("on.loop", OnLoop),
        )
        for reaction in kind
    ],
)
def test_reactions(key: str, reaction: Enum) -> None:
    assert reaction in source(**{key: reaction.value}).copying.reactions
    with pytest.raises(ConfigError, match=re.escape(key)):
        source(**{key: "ignore"})


def test_offsets_preserve() -> None:
    assert source().preserved_topics is None
    assert source(**{"offsets.preserve.topics": "orders"}).preserved_topics is None
    assert source(**{"offsets.preserve": "true"}).preserved_topics == (".*",)
    asked = {
        "offsets.preserve": "true",
        "offsets.preserve.topics": "orders, pay.*",
        "offsets.preserve.fill.timeout.ms": "5000",
        "offsets.gap": "stop",
        "offsets.on.mismatch": "continue-translated",
    }
    settings = source(**asked)
    assert settings.preserved_topics == ("orders", "pay.*")
    assert settings.copying.preserving == Preserving(5.0, OnGap.STOP, OnMismatch.CONTINUE_TRANSLATED)
    with pytest.raises(ConfigError, match=r"offsets\.preserve\.topics"):
        source(**{**asked, "offsets.preserve.topics": "("})
    with pytest.raises(ConfigError, match=r"recreate .* offsets\.gap: String must be one of: wait, stop"):
        source(**{**asked, "offsets.gap": "recreate"})


def test_provenance_header() -> None:
    identity = {"replication.policy.class": MIRROR + "IdentityReplicationPolicy"}
    asked = {"provenance.header": "true"}
    assert source(**identity, **asked).copying.provenance_header
    assert not source(**identity).copying.provenance_header
    assert not source(**asked).copying.provenance_header, "names say it"
    with pytest.raises(ConfigError, match=r"provenance\.header: is of no use with on\.loop=copy"):
        source(**identity, **asked, **{"on.loop": "copy"})


def test_batch_decompressed_bytes_max() -> None:
    key = "batch.decompressed.bytes.max"
    assert source().copying.decompressed_bytes_max == DECOMPRESSED_BYTES_MAX
    assert source(**{key: "2097152"}).copying.decompressed_bytes_max == 2097152
    with pytest.raises(ConfigError, match=re.escape(key)):
        source(**{key: "1000"})


def test_partition_assignment() -> None:
    assert source().partition_assignment is PartitionAssignment.LOAD
    told = source(**{"partition.assignment": "roundrobin"})
    assert told.partition_assignment is PartitionAssignment.ROUNDROBIN
    with pytest.raises(ConfigError, match=r"partition\.assignment"):
        source(**{"partition.assignment": "range"})


def test_defaults() -> None:
    settings = source()
    assert settings.flow == Flow(Alias("A"), Alias("B"))
    assert isinstance(settings.policy, DefaultReplicationPolicy)
    assert settings.policy.separator == "."
    assert (settings.replication_factor, settings.tasks_max) == (2, 1)
    assert settings.heartbeats_replication
    assert settings.refresh_topics_interval_s == 600
    assert settings.sync_topic_configs_interval_s == 600
    assert settings.sync_topic_acls_interval_s == 600
    assert settings.offset_lag_max == 100
    assert settings.offset_syncs_topic == "mm2-offset-syncs.B.internal"
    assert settings.offset_syncs_on_source
    assert settings.offset_syncs_replication_factor == 3
    assert settings.copying.reactions == Reactions(
        OnDataLoss.RECORD, OnTopicRecreated.RECORD, OnBadBatch.FAIL
    )
    assert settings.rate_limits == NO_LIMITS
    assert settings.topic_filter.should_replicate("orders.internal")
    assert not settings.topic_filter.should_replicate("mm2-offsets.A.internal")
    assert not settings.config_filter.should_replicate_config_property("min.insync.replicas")
    assert not settings.config_filter.should_replicate_source_default("retention.ms")


def test_rate_limits() -> None:
    settings = source(
        **{
            "max.bytes.per.second": "5000000",
            "topic.max.bytes.per.second": "orders = 1, (?=a).*=20 ,.*=9000000000",
        }
    )
    topics = (("orders", 1), ("(?=a).*", 20), (".*", 9_000_000_000))
    assert settings.rate_limits == RateLimits(5_000_000, topics)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("max.bytes.per.second", "0", "Value must be at least 1"),
        ("max.bytes.per.second", "5MB", "Not a number of type LONG"),
        *(
            ("topic.max.bytes.per.second", f"a=1, {item}", f"'{item}' is not REGEX=BYTES")
            for item in (
                "orders",
                "orders=",
                "=5",
                "orders=0",
                "orders=-5",
                "orders=5MB",
                f"a={10**18}",
                "a=\uff15",
            )
        ),
        ("topic.max.bytes.per.second", "a=1, (=5", "'(' is not a usable Java regular expression"),
        ("topic.max.bytes.per.second", "a{1,2}=5", "'a{1' is not REGEX=BYTES"),
    ],
)
def test_wrong_rate_limits(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        source(**{key: value})
    assert str(caught.value).startswith(f"Invalid value {value} for configuration {key}: {reason}")


def test_policies() -> None:
    identity = source(**{"replication.policy.class": MIRROR + "IdentityReplicationPolicy"})
    assert isinstance(identity.policy, IdentityReplicationPolicy)
    assert identity.policy.source_alias == "A"
    named = source(**{"replication.policy.separator": "__"})
    assert named.policy.format_remote_topic("A", "t") == "A__t"
    assert named.offset_syncs_topic == "mm2-offset-syncs__B__internal"
    dots = source(
        **{
            "replication.policy.separator": "__",
            "replication.policy.internal.topic.separator.enabled": "false",
        }
    )
    assert dots.offset_syncs_topic == "mm2-offset-syncs.B.internal"


def test_a_separator_is_taken_as_written() -> None:
    assert source(**{"replication.policy.separator": "_ "}).policy.format_remote_topic("A", "t") == "A_ t"


def test_offset_syncs_at_the_target() -> None:
    settings = source(**{"offset-syncs.topic.location": "target"})
    assert settings.offset_syncs_topic == "mm2-offset-syncs.A.internal"
    assert not settings.offset_syncs_on_source


def test_no_offset_syncs() -> None:
    assert source(**{"emit.offset-syncs.enabled": "false"}).offset_syncs_topic is None


@pytest.mark.parametrize("job", ["refresh.topics", "sync.topic.configs", "sync.topic.acls"])
def test_jobs(job: str) -> None:
    attribute = job.replace(".", "_") + "_interval_s"
    assert getattr(source(**{f"{job}.interval.seconds": "5"}), attribute) == 5.0
    assert getattr(source(**{f"{job}.interval.seconds": "-1"}), attribute) is None
    assert getattr(source(**{f"{job}.enabled": "false"}), attribute) is None
    with pytest.raises(ConfigError, match="must be at least 1"):
        source(**{f"{job}.interval.seconds": "0"})


def test_filters() -> None:
    settings = source(
        **{
            "topics": "a.*, b",
            "topics.exclude": "ab",
            "config.properties.exclude": "retention.*",
            "use.defaults.from": " source ",
        }
    )
    chosen = [topic for topic in ("a", "ab", "b", "bb") if settings.topic_filter.should_replicate(topic)]
    assert chosen == ["a", "b"]
    assert not settings.config_filter.should_replicate_config_property("retention.ms")
    assert settings.config_filter.should_replicate_config_property("min.insync.replicas")
    assert settings.config_filter.should_replicate_source_default("segment.ms")


def test_empty_topics_match_nothing() -> None:
    assert not source(topics="").topic_filter.should_replicate("a")


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("topics", "a,(b", "not a usable Java regular expression"),
        ("topics.exclude", "*", "not a usable Java regular expression"),
        ("config.properties.exclude", "[a", "not a usable Java regular expression"),
        ("replication.policy.class", "com.example.Policy", "there is no Java here"),
        ("topic.filter.class", "com.example.Filter", "there is no Java here"),
        ("config.property.filter.class", "com.example.Filter", "there is no Java here"),
        ("offsets.storage.topic", "own-offsets", "is not supported yet"),
        ("exactly.once.support", "perhaps", "String must be one of (case insensitive): REQUIRED, REQUESTED"),
        ("offset.lag.max", "many", "Not a number of type LONG"),
        ("tasks.max", "0", "Value must be at least 1"),
    ],
)
def test_an_unusable_value_is_refused_with_key_and_value(key: str, text: str, reason: str) -> None:
    written = Properties({f"A->B.{key}": text}).under("A->B.")
    with pytest.raises(ConfigError) as caught:
        mirror_source_settings(Properties(CONNECTOR) | written)
    assert str(caught.value).startswith(f"Invalid value {text} for configuration A->B.{key}: {reason}")


def test_contradictions_are_refused() -> None:
    with pytest.raises(ConfigError, match="can't setup offset-syncs feature"):
        source(**{"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "source"})


def test_connector_is_enabled_unless_configured_otherwise() -> None:
    assert mirror_source_enabled(Properties(CONNECTOR))
    assert not mirror_source_enabled(Properties(CONNECTOR | {"enabled": "false"}))


def test_heartbeats() -> None:
    settings = mirror_heartbeat_settings(Properties(CONNECTOR))
    assert settings.flow == Flow(Alias("A"), Alias("B"))
    assert (settings.emit, settings.interval_s) == (True, 1.0)
    assert (settings.topic, settings.replication_factor) == ("heartbeats", 3)
    given = {"emit.heartbeats.interval.seconds": "5", "heartbeats.topic.replication.factor": "1"}
    settings = mirror_heartbeat_settings(Properties(CONNECTOR | given))
    assert (settings.interval_s, settings.replication_factor) == (5.0, 1)


@pytest.mark.parametrize(
    "given", [{"emit.heartbeats.enabled": "false"}, {"emit.heartbeats.interval.seconds": "-1"}]
)
def test_no_heartbeats(given: dict[str, str]) -> None:
    assert not mirror_heartbeat_settings(Properties(CONNECTOR | given)).emit


def test_for_which_groups_offsets_are_looked_up() -> None:
    def resolve(**more: str) -> ResolveOffsets:
        return checkpoint_settings(**more).resolve

    assert resolve() is ResolveOffsets.ALL
    for choice in ResolveOffsets:
        assert resolve(**{"translation.resolve": choice.value}) is choice
    with pytest.raises(ConfigError, match=r"translation\.resolve"):
        resolve(**{"translation.resolve": "cold"})


def checkpoint_settings(**more: str) -> MirrorCheckpointSettings:
    settings = mirror_checkpoint_settings(Properties(CONNECTOR | more))
    assert settings is not None
    return settings


@pytest.mark.parametrize(
    ("location", "own", "opposite"),
    [
        ("source", "mm2-offset-syncs.B.internal", "mm2-offset-syncs.A.internal"),
        ("target", "mm2-offset-syncs.A.internal", "mm2-offset-syncs.B.internal"),
    ],
)
def test_the_opposite_flows_syncs_lie_on_the_other_cluster(location: str, own: str, opposite: str) -> None:
    told = {"offset-syncs.topic.location": location}
    settings = checkpoint_settings(**told, **{"reverse.checkpointing.enabled": "true"})
    assert settings.offset_syncs_on_source == (location == "source")
    assert (settings.offset_syncs_topic, settings.reverse_syncs_topic) == (own, opposite)
    assert checkpoint_settings(**told).reverse_syncs_topic is None


def test_a_topic_from_the_target_gets_its_name_there() -> None:
    def named(topic: str, **more: str) -> tuple[str, bool]:
        settings = checkpoint_settings(topics="orders", **more)
        assert counterpart(settings, TopicPartition(topic, 3)).partition == 3
        return counterpart(settings, TopicPartition(topic, 3)).topic, is_followed(settings, topic)

    on = {"reverse.checkpointing.enabled": "true"}
    assert named("orders", **on) == ("A.orders", True)
    assert named("B.orders", **on) == ("orders", True)
    assert named("B.C.orders", **on) == ("C.orders", True)
    assert named("C.B.orders", **on) == ("A.C.B.orders", False)
    assert named("B.orders") == ("orders", False)
    assert named("B.C.orders") == ("orders", False), "Java's name, if its filter took such topics"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("enabled", "false", "enabled is false"),
        ("emit.checkpoints.enabled", "false", "emit.checkpoints.enabled is false"),
        ("emit.offset-syncs.enabled", "false", "emit.offset-syncs.enabled is false"),
        ("emit.checkpoints.interval.seconds", "-1", "emit.checkpoints.interval.seconds is negative"),
    ],
)
def test_why_there_is_no_checkpoint_connector(key: str, value: str, why: str) -> None:
    told = Properties(CONNECTOR | {key: value})
    assert mirror_checkpoint_off(told) == why
    assert mirror_checkpoint_settings(told) is None
    assert mirror_checkpoint_off(Properties(CONNECTOR)) is None


class Marked(DefaultReplicationPolicy):
    """Puts the alias behind a topic's name, and does not read it there."""

    def __init__(self, _properties: Mapping[str, str]) -> None:
        super().__init__()

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}--{source_alias}"


@pytest.mark.parametrize(
    ("given", "taken_for"),
    [
        ({"source.cluster.alias": "dc.east"}, "topic is called dc.east.topic, which the replication policy"),
        ({"source.cluster.alias": "dc.east"}, "takes for a topic of the cluster 'dc'"),
        ({"source.cluster.alias": "a__b", "replication.policy.separator": "__"}, "of the cluster 'a'"),
        ({"source.cluster.alias": "east", "replication.policy.separator": ""}, "of the cluster 'e'"),
        ({"replication.policy.class": f"{__name__}:Marked"}, "topic--A, which the replication policy takes"),
    ],
)
def test_an_alias_that_copies_do_not_show_is_refused(given: dict[str, str], taken_for: str) -> None:
    """Each refresh would mirror the copies of the one before."""
    with pytest.raises(ConfigError, match=re.escape(taken_for)) as caught:
        source(**given)
    assert caught.value.key == "source.cluster.alias"


@pytest.mark.parametrize(
    "given",
    [
        {"source.cluster.alias": "dc.east", "replication.policy.separator": "_"},
        {"source.cluster.alias": "dc.east", "replication.policy.class": MIRROR + "IdentityReplicationPolicy"},
        {"source.cluster.alias": "", "replication.policy.separator": ""},
        {"source.cluster.alias": "e", "replication.policy.separator": ""},
    ],
)
def test_an_alias_that_copies_show_or_do_not_have_is_taken(given: dict[str, str]) -> None:
    assert source(**given).flow.source == given["source.cluster.alias"]


def test_transforms_go_to_copy_tasks() -> None:
    given = {"transforms": "a", "transforms.a.type": "Filter", "errors.tolerance": "all"}
    assert source(**given).copying.transforms == Chain((Link(Filter()),), tolerates=True)
    assert source().copying.transforms is None
    with pytest.raises(ConfigError, match="can't be used together with transforms"):
        source(**given, **{"provenance.header": "true"})
    with pytest.raises(ConfigError, match="is for MirrorSourceConnector"):
        checkpoint_settings(**given)
