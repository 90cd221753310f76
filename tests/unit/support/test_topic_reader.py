import confluent_kafka as confluent
import pytest

from tests.support.topic_reader import once_led


class Answers:
    """The broker's answers to one question after the other."""

    def __init__(self, *answers: int | tuple[int, int]) -> None:
        self.left = list(answers)

    def __call__(self) -> tuple[int, int]:
        answer = self.left.pop(0)
        if isinstance(answer, int):
            raise confluent.KafkaException(confluent.KafkaError(answer))
        return answer


@pytest.mark.parametrize(
    "code", [confluent.KafkaError.NOT_LEADER_FOR_PARTITION, confluent.KafkaError.LEADER_NOT_AVAILABLE]
)
def test_a_new_partition_is_waited_for_until_its_leader_leads(code: int) -> None:
    answers = Answers(code, code, (3, 7))
    assert once_led(answers) == (3, 7)
    assert not answers.left


def test_an_error_that_waiting_does_not_end_is_raised() -> None:
    with pytest.raises(confluent.KafkaException):
        once_led(Answers(confluent.KafkaError.TOPIC_AUTHORIZATION_FAILED, (3, 7)))
