from collections.abc import Iterator

import confluent_kafka as confluent
import pytest

from tests.support.topic_reader import TopicReader


class Answers:
    """What a broker says to one question after the other."""

    def __init__(self, *answers: int | tuple[int, int]) -> None:
        self.left = list(answers)

    def get_watermark_offsets(self, _partition: object, timeout: float) -> tuple[int, int]:
        assert timeout > 0
        answer = self.left.pop(0)
        if isinstance(answer, int):
            raise confluent.KafkaException(confluent.KafkaError(answer))
        return answer

    def close(self) -> None: ...


@pytest.fixture
def reader() -> Iterator[TopicReader]:
    with TopicReader("127.0.0.1:1", "orders") as opened:
        yield opened


@pytest.mark.parametrize(
    "code", [confluent.KafkaError.NOT_LEADER_FOR_PARTITION, confluent.KafkaError.LEADER_NOT_AVAILABLE]
)
def test_a_new_partition_is_waited_for_until_its_leader_leads(
    reader: TopicReader, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(reader, "_consumer", Answers(code, code, (3, 7)))
    assert reader.offsets(0) == (3, 7)


def test_what_waiting_does_not_mend_is_raised(reader: TopicReader, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = confluent.KafkaError.TOPIC_AUTHORIZATION_FAILED
    monkeypatch.setattr(reader, "_consumer", Answers(refused, (3, 7)))
    with pytest.raises(confluent.KafkaException):
        reader.offsets(0)
