"""The course of migrations over looks that are given, with a clock that only moves while it pauses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from sparkmirror.domain.errors import AuthorizationError, KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.migrate.run import Course, Ending
from sparkmirror.migrate.steps import Step, StepState


@dataclass(frozen=True)
class Fake:
    state: StepState
    name: str = "x"

    def steps(self) -> list[Step]:
        return [Step("first", StepState.DONE, ""), Step("second", self.state, f"{self.name} {self.state}")]


DONE, WAITING, TO_DO, IMPOSSIBLE = (
    Fake(state) for state in (StepState.DONE, StepState.WAITING, StepState.TO_DO, StepState.IMPOSSIBLE)
)
REFUSED = {TopicPartition("a", 0): AuthorizationError("GROUP_AUTHORIZATION_FAILED")}


@dataclass
class Stage:
    """Shows one look after the other, the last one again and again."""

    looks: Iterable[Sequence[Fake] | KafkaError]
    refused: Mapping[TopicPartition, KafkaError] = field(default_factory=dict)
    now: float = 0.0
    acted: list[Fake] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def run(self, timeout_s: float = 5.0) -> list[Ending[Fake]]:
        return self.course().run(timeout_s)

    def course(self) -> Course[Fake]:
        shown = self._shown()
        return Course(
            look=lambda: _answer(next(shown)),
            act=self._act,
            tell=lambda _: None,
            tell_trouble=self.troubles.append,
            clock=lambda: self.now,
            pause=self._pause,
        )

    def _shown(self) -> Iterator[Sequence[Fake] | KafkaError]:
        looks = list(self.looks)
        yield from looks
        while True:
            yield looks[-1]

    def _act(self, fake: Fake) -> Mapping[TopicPartition, KafkaError]:
        self.acted.append(fake)
        return self.refused

    def _pause(self, seconds: float) -> None:
        self.now += seconds


def _answer(look: Sequence[Fake] | KafkaError) -> Sequence[Fake]:
    if isinstance(look, KafkaError):
        raise look
    return look


def test_it_waits_acts_and_looks_again() -> None:
    stage = Stage([[WAITING], [WAITING], [TO_DO], [DONE]])
    assert stage.run() == [Ending(DONE, None)]
    assert stage.acted == [TO_DO]
    assert stage.now == 2.0


def test_what_is_done_already_costs_one_look() -> None:
    stage = Stage([[DONE, DONE]])
    assert [ending.failure for ending in stage.run()] == [None, None]
    assert (stage.now, stage.acted) == (0, [])


def test_the_time_ends_the_waiting() -> None:
    assert Stage([[WAITING]]).run(timeout_s=3) == [Ending(WAITING, "not within 3 s: x waiting")]


def test_an_action_without_effect_ends_with_the_time() -> None:
    stage = Stage([[TO_DO]])
    assert stage.run(timeout_s=3) == [Ending(TO_DO, "not within 3 s: x to do")]
    assert len(stage.acted) == 5, "at once, then each second"


def test_one_that_is_impossible_keeps_none_from_going_on() -> None:
    stage = Stage([[IMPOSSIBLE, WAITING], [IMPOSSIBLE, TO_DO], [IMPOSSIBLE, DONE]])
    assert [ending.failure for ending in stage.run()] == ["x impossible", None]


def test_what_was_refused_is_not_tried_again() -> None:
    stage = Stage([[TO_DO]], REFUSED)
    assert stage.run() == [Ending(TO_DO, "GROUP_AUTHORIZATION_FAILED")]
    assert len(stage.acted) == 1


def test_a_look_that_fails_for_a_moment_is_taken_again() -> None:
    stage = Stage([RetriableError("no leader"), [DONE]])
    assert stage.run() == [Ending(DONE, None)]
    assert stage.troubles == ["no leader; looking again"]


def test_a_look_that_fails_until_the_time_is_over_says_why() -> None:
    with pytest.raises(RetriableError, match="no leader"):
        Stage([RetriableError("no leader")]).run(timeout_s=3)
    with pytest.raises(RetriableError):
        Stage([RetriableError("no leader")]).course().first()
    with pytest.raises(AuthorizationError):
        Stage([AuthorizationError("not allowed")]).run()
