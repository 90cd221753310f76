"""Goes through the steps of migrations: looks, does what is due, waits for what others have to do."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.migrate.steps import Step, StepState, next_step

_LOOK_EVERY_S = 1.0
_FIRST_LOOK_S = 10.0


class Migration(Protocol):
    """What a look has found: `GroupMove`, `GroupBack`, `TopicsDrain`."""

    def steps(self) -> list[Step]: ...


M = TypeVar("M", bound=Migration)


@dataclass(frozen=True, slots=True)
class Ending(Generic[M]):
    """How it was found last, and why it is not done; None if it is."""

    found: M
    failure: str | None


@dataclass(frozen=True, slots=True)
class Course(Generic[M]):
    """How to go through migrations that are looked at together, always in the same order.

    `act` does what is to do and returns what was refused. `tell` gets every look, `tell_trouble` what kept
    one from being had.
    """

    look: Callable[[], Sequence[M]]
    act: Callable[[M], Mapping[TopicPartition, KafkaError]]
    tell: Callable[[Sequence[M]], None]
    tell_trouble: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def run(self, timeout_s: float) -> list[Ending[M]]:
        """Until each is done or can't go on, or the time is over. One that can't keeps none from going on.

        Raises KafkaError, a retriable one only when the time is over.
        """
        deadline = self.clock() + timeout_s
        failures: dict[int, str] = {}
        acted: set[int] = set()
        while True:
            found = self._look(deadline)
            self.tell(found)
            waiting = self._go_on(found, failures)
            # The first time somebody acted, what came of it shows at once.
            fresh = {number for number, step in waiting.items() if step.state is StepState.TO_DO} - acted
            acted |= fresh
            if not waiting or (not fresh and self.clock() >= deadline):
                late = {
                    number: f"not within {timeout_s:g} s: {step.text}" for number, step in waiting.items()
                }
                return [Ending(each, (failures | late).get(number)) for number, each in enumerate(found)]
            if not fresh:
                self.pause(_LOOK_EVERY_S)

    def _go_on(self, found: Sequence[M], failures: dict[int, str]) -> dict[int, Step]:
        """Do what is to do, note what can't go on, return the steps that are not done yet."""
        left = {}
        for number, migration in enumerate(found):
            step = next_step(migration.steps())
            if step is None or number in failures:
                continue
            if step.state is StepState.IMPOSSIBLE:
                failures[number] = step.text
            elif step.state is StepState.TO_DO and (refused := self.act(migration)):
                failures[number] = "; ".join(dict.fromkeys(map(str, refused.values())))
            else:
                left[number] = step
        return left

    def first(self) -> Sequence[M]:
        """What there is to plan with. Raises KafkaError, a retriable one only after some seconds."""
        return self._look(self.clock() + _FIRST_LOOK_S)

    def _look(self, deadline: float) -> Sequence[M]:
        while True:
            try:
                return self.look()
            except RetriableError as error:
                if self.clock() >= deadline:
                    raise
                self.tell_trouble(f"{error}; looking again")
                self.pause(_LOOK_EVERY_S)
