import pytest

from sparkmirror.connectors.internal_topics import COMPACTED, ensure_topics
from sparkmirror.domain.errors import AuthorizationError, DisconnectedError, KafkaError, TopicExistsError
from sparkmirror.kafka.admin import Admin
from sparkmirror.policies.admin_writes import Results, TopicCreation

WANTED = [TopicCreation(name, 1, 3, COMPACTED) for name in ("there", "missing", "also-missing")]


class Cluster(Admin):
    """Has the topic `there`; answers as told."""

    def __init__(self, **answers: KafkaError | None) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def partition_counts(self) -> dict[str, int]:
        return {"there": 5}

    def create_topics(self, topics: list[TopicCreation]) -> Results:  # type: ignore[override]  # a list here
        self.asked = [topic.name for topic in topics]
        return {name: self.answers.get(name) for name in self.asked}


def test_only_missing_topics_are_created() -> None:
    cluster = Cluster()
    ensure_topics(cluster, WANTED)
    assert cluster.asked == ["missing", "also-missing"]


def test_another_worker_may_be_faster() -> None:
    ensure_topics(Cluster(missing=TopicExistsError("missing is there")), WANTED)


def test_a_missing_right_is_said_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """As in MM2's MirrorUtils.createSinglePartitionCompactedTopic."""
    ensure_topics(Cluster(missing=AuthorizationError("create topic missing: not authorized")), WANTED)
    (record,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert record.getMessage() == "somebody else must create it: create topic missing: not authorized"


@pytest.mark.parametrize("error", [KafkaError("INVALID_REPLICATION_FACTOR", 38), DisconnectedError("gone")])
def test_anything_else_is_an_error(error: KafkaError) -> None:
    with pytest.raises(type(error), match=str(error)):
        ensure_topics(Cluster(missing=error), WANTED)
