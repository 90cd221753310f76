from collections.abc import Collection

import pytest

from sparkmirror.domain.errors import (
    AuthorizationError,
    DisconnectedError,
    KafkaError,
    TopicExistsError,
    UnfitTopicError,
)
from sparkmirror.domain.topics import ConfigEntry, TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.policies.admin_writes import Results
from sparkmirror.storage.topic_creation import (
    COMPACTED,
    ensure_topics,
    require_compacted,
)

WANTED = [TopicCreation(name, 1, 3, COMPACTED) for name in ("there", "missing", "also-missing")]


class Cluster(Admin):
    """Has the topic `there`; returns the configured results."""

    def __init__(self, **answers: KafkaError | None) -> None:
        self.answers = answers
        self.asked: list[str] = []

    @property
    def cluster(self) -> str:
        return "east"

    def partition_counts(self) -> dict[str, int]:
        return {"there": 5}

    def create_topics(self, topics: list[TopicCreation]) -> Results:  # type: ignore[override]  # a list here
        self.asked = [topic.name for topic in topics]
        return {name: self.answers.get(name) for name in self.asked}


def test_only_missing_topics_are_created(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    cluster = Cluster()
    ensure_topics(cluster, WANTED)
    assert caplog.messages == ["created missing on east", "created also-missing on east"]
    assert cluster.asked == ["missing", "also-missing"]


def test_a_topic_that_another_worker_creates_meanwhile_is_there(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ensure_topics(Cluster(missing=TopicExistsError("missing is there")), WANTED)
    assert caplog.messages == ["created also-missing on east"]


def test_a_missing_right_is_logged_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """The same as in MM2's MirrorUtils.createSinglePartitionCompactedTopic."""
    ensure_topics(Cluster(missing=AuthorizationError("create topic missing: not authorized")), WANTED)
    (record,) = (record for record in caplog.records if record.levelname == "WARNING")
    said = "not created, give the right or create it by hand: create topic missing: not authorized"
    assert record.getMessage() == said


@pytest.mark.parametrize("error", [KafkaError("INVALID_REPLICATION_FACTOR", 38), DisconnectedError("gone")])
def test_anything_else_is_an_error(error: KafkaError) -> None:
    with pytest.raises(type(error), match=str(error)):
        ensure_topics(Cluster(missing=error), WANTED)


class Configured(Cluster):
    """A cluster whose topics have this `cleanup.policy`."""

    cluster = "target"
    bootstrap_servers = "b1:9092,b2:9092"

    def __init__(self, policy: str | None) -> None:
        super().__init__()
        self.policy = policy

    def topic_configs(
        self, topics: Collection[str], _names: Collection[str] = ()
    ) -> dict[str, tuple[ConfigEntry, ...]]:
        if self.policy is None:
            raise AuthorizationError("describe configs: not authorized")
        return {topic: (ConfigEntry("cleanup.policy", self.policy),) for topic in topics}


@pytest.mark.parametrize("policy", ["compact", " Compact ", "", None])
def test_a_topic_that_keeps_its_records_is_accepted(policy: str | None) -> None:
    require_compacted(Configured(policy), "offset.storage.topic", "positions", "source connector offsets")


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_whose_records_expire_is_refused_with_the_command_that_corrects_it(policy: str) -> None:
    with pytest.raises(UnfitTopicError) as refused:
        require_compacted(Configured(policy), "offset.storage.topic", "positions", "source connector offsets")
    assert f"'cleanup.policy={policy}' on target" in str(refused.value)
    command = "kafka-configs.sh --bootstrap-server b1:9092,b2:9092 --alter --entity-type topics"
    assert str(refused.value).endswith(
        f"{command} --entity-name positions --add-config cleanup.policy=compact"
    )
