"""Names that are kept by an empty alias and an empty separator: as in Java, and clusters have names."""

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import parse_properties
from sparkmirror.settings.configured import ConfiguredFlow, ConfiguredSource, configured_flow
from sparkmirror.settings.internal_topics import own_topics
from sparkmirror.settings.topic_selection import why_not

FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = .*
sync.group.offsets.enabled = true
replication.policy.separator =
"""
SOURCE = "source.cluster.alias =\n"
BOTH = SOURCE + "target.cluster.alias =\n"


def flow(more: str) -> tuple[ConfiguredFlow, ConfiguredSource]:
    found = configured_flow(MirrorMakerConfig(parse_properties(FILE + more, "mm2.properties"), {}).flows()[0])
    assert found.source is not None
    return found, found.source


@pytest.mark.parametrize("more", [SOURCE, BOTH, "A->B.source.cluster.alias =\n"])
def test_topics_keep_their_names_and_clusters_have_theirs(more: str) -> None:
    whole, source = flow(more)
    settings = source.settings
    assert settings.policy.format_remote_topic(settings.flow.source, "orders") == "orders"
    assert whole.checkpoint is not None
    for named in (settings.flow, whole.checkpoint.settings.flow, whole.heartbeat.settings.flow, whole.flow):
        assert str(named) == "A->B"
    assert [source.source_admin.alias, source.target_admin.alias] == ["A", "B"]
    assert [source.consumer_of(0).connection.alias, source.producer_of(0).connection.alias] == ["A", "B"]
    assert {topic.cluster for topic in own_topics(whole, source)} == {"A", "B"}
    assert not any("shown" in key for config in whole.shown.values() for key in config)


@pytest.mark.parametrize(
    ("more", "topic", "why"),
    [
        (SOURCE, "Bills", "by its name it came from B, the target"),
        (SOURCE, "Apples", None),
        (SOURCE, "orders", None),
        (BOTH, "Bills", None),
        (BOTH, "Apples", None),
    ],
)
def test_the_first_letter_counts_as_the_source_as_in_java(more: str, topic: str, why: str | None) -> None:
    _, source = flow(more)
    assert why_not(source.settings, topic) == why


@pytest.mark.parametrize("more", [SOURCE, BOTH])
def test_state_is_kept_apart_by_the_names_of_clusters(more: str) -> None:
    whole, source = flow(more)
    assert whole.worker.offset_topic.name == "mm2-offsets.A.internal"
    names = [topic.name for topic in own_topics(whole, source)]
    assert "mm2-progress.A.internal" in names
    assert not [name for name in names if ".." in name]


def test_an_alias_that_is_not_empty_is_as_it_was() -> None:
    whole, source = flow("A->B.source.cluster.alias = east\nreplication.policy.separator = -\n")
    assert str(source.settings.flow) == "east->B"
    assert source.settings.policy.format_remote_topic("east", "orders") == "east-orders"
    assert str(whole.flow) == "A->B"
