"""Runs of migrations over given surveys, with a clock that only moves while it sleeps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from sparkmirror.domain.errors import AuthorizationError, KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.migrate.run import MigrationResult, MigrationRun
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
    """Returns one survey after the other, the last one again and again."""

    surveys: Iterable[Sequence[Fake] | KafkaError]
    refused: Mapping[TopicPartition, KafkaError] = field(default_factory=dict)
    now: float = 0.0
    applied: list[Fake] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run(self, timeout_s: float = 5.0) -> list[MigrationResult[Fake]]:
        return self.migration_run().run(timeout_s)

    def migration_run(self) -> MigrationRun[Fake]:
        shown = self._shown()
        return MigrationRun(
            survey=lambda: _result(next(shown)),
            apply=self._apply,
            report=lambda _: None,
            report_error=self.errors.append,
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def _shown(self) -> Iterator[Sequence[Fake] | KafkaError]:
        surveys = list(self.surveys)
        yield from surveys
        while True:
            yield surveys[-1]

    def _apply(self, fake: Fake) -> Mapping[TopicPartition, KafkaError]:
        self.applied.append(fake)
        return self.refused

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def _result(survey: Sequence[Fake] | KafkaError) -> Sequence[Fake]:
    if isinstance(survey, KafkaError):
        raise survey
    return survey


def test_it_waits_acts_and_surveys_again() -> None:
    stage = Stage([[WAITING], [WAITING], [TO_DO], [DONE]])
    assert stage.run() == [MigrationResult(DONE, None)]
    assert stage.applied == [TO_DO]
    assert stage.now == 2.0


def test_done_migrations_need_one_survey() -> None:
    stage = Stage([[DONE, DONE]])
    assert [ending.failure for ending in stage.run()] == [None, None]
    assert (stage.now, stage.applied) == (0, [])


def test_waiting_ends_with_the_timeout() -> None:
    assert Stage([[WAITING]]).run(timeout_s=3) == [MigrationResult(WAITING, "not within 3 s: x waiting")]


def test_a_change_without_effect_ends_with_the_timeout() -> None:
    stage = Stage([[TO_DO]])
    assert stage.run(timeout_s=3) == [MigrationResult(TO_DO, "not within 3 s: x to do")]
    assert len(stage.applied) == 5, "at once, then each second"


def test_an_impossible_migration_does_not_stop_the_others() -> None:
    stage = Stage([[IMPOSSIBLE, WAITING], [IMPOSSIBLE, TO_DO], [IMPOSSIBLE, DONE]])
    assert [ending.failure for ending in stage.run()] == ["x impossible", None]


def test_a_refused_change_is_not_retried() -> None:
    stage = Stage([[TO_DO]], REFUSED)
    assert stage.run() == [MigrationResult(TO_DO, "GROUP_AUTHORIZATION_FAILED")]
    assert len(stage.applied) == 1


def test_a_retriable_error_of_a_survey_is_retried() -> None:
    stage = Stage([RetriableError("no leader"), [DONE]])
    assert stage.run() == [MigrationResult(DONE, None)]
    assert stage.errors == ["no leader; retrying"]


def test_a_survey_that_fails_until_the_timeout_raises_its_error() -> None:
    with pytest.raises(RetriableError, match="no leader"):
        Stage([RetriableError("no leader")]).run(timeout_s=3)
    with pytest.raises(RetriableError):
        Stage([RetriableError("no leader")]).migration_run().first()
    with pytest.raises(AuthorizationError):
        Stage([AuthorizationError("not allowed")]).run()
