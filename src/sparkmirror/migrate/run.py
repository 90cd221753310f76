"""Runs migrations: surveys both clusters, applies the step that is due, waits for mirror and users."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.migrate.steps import Step, StepState, next_step

_SURVEY_EVERY_S = 1.0
_FIRST_SURVEY_S = 10.0


class Migration(Protocol):
    """The result of a survey: `GroupMove`, `GroupRollback`, `TopicsDrain`."""

    def steps(self) -> list[Step]: ...


M = TypeVar("M", bound=Migration)


@dataclass(frozen=True, slots=True)
class MigrationResult(Generic[M]):
    """The migration as of the last survey, and the reason why it is not done; None if it is."""

    found: M
    failure: str | None


@dataclass(frozen=True, slots=True)
class MigrationRun(Generic[M]):
    """Migrations that are surveyed together, always in the same order.

    `apply` does what is to do and returns what was refused. `report` gets the result of every survey,
    `report_error` the error of one that failed and is repeated.
    """

    survey: Callable[[], Sequence[M]]
    apply: Callable[[M], Mapping[TopicPartition, KafkaError]]
    report: Callable[[Sequence[M]], None]
    report_error: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self, timeout_s: float) -> list[MigrationResult[M]]:
        """Act until each is done or impossible, or the time is over. One may fail without the others.

        Raises KafkaError, a retriable one only when the time is over.
        """
        deadline = self.clock() + timeout_s
        failures: dict[int, str] = {}
        applied: set[int] = set()
        while True:
            found = self._survey(deadline)
            self.report(found)
            waiting = self._advance(found, failures)
            # After a migration's first change the next survey follows at once.
            fresh = {number for number, step in waiting.items() if step.state is StepState.TO_DO} - applied
            applied |= fresh
            if not waiting or (not fresh and self.clock() >= deadline):
                late = {
                    number: f"not within {timeout_s:g} s: {step.text}" for number, step in waiting.items()
                }
                return [
                    MigrationResult(each, (failures | late).get(number)) for number, each in enumerate(found)
                ]
            if not fresh:
                self.sleep(_SURVEY_EVERY_S)

    def _advance(self, found: Sequence[M], failures: dict[int, str]) -> dict[int, Step]:
        """Apply what is to do, note what is impossible, return the steps that are not done yet."""
        left = {}
        for number, migration in enumerate(found):
            step = next_step(migration.steps())
            if step is None or number in failures:
                continue
            if step.state is StepState.IMPOSSIBLE:
                failures[number] = step.text
            elif step.state is StepState.TO_DO and (refused := self.apply(migration)):
                failures[number] = "; ".join(dict.fromkeys(map(str, refused.values())))
            else:
                left[number] = step
        return left

    def first(self) -> Sequence[M]:
        """A survey to plan with. Raises KafkaError, a retriable one only after some seconds."""
        return self._survey(self.clock() + _FIRST_SURVEY_S)

    def _survey(self, deadline: float) -> Sequence[M]:
        while True:
            try:
                return self.survey()
            except RetriableError as error:
                if self.clock() >= deadline:
                    raise
                self.report_error(f"{error}; retrying")
                self.sleep(_SURVEY_EVERY_S)
