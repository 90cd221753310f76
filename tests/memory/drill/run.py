"""One run of the drill: everything in it follows from its seed.

It ends well when the target has the source's records in order, none lost and none twice, soon after the last
fault, when nothing that was stored was ever ahead of what was acknowledged, and no word was wrong.
"""

import logging
import math
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from sparkmirror.domain.incidents import OnBadBatch
from tests.memory.checked_flow import POSITIONS
from tests.memory.drill.faults import DrawnFates, Fault, Faults
from tests.memory.drill.outside import OutsideLooks
from tests.memory.drill.shapes import preserving, shape_of, transforming
from tests.memory.drill.tasks import Tasks
from tests.memory.drill.traffic import Traffic
from tests.memory.drill.words import SETTLED_S, FlowWords
from tests.memory.stage import Stage
from tests.memory.virtual_time import StuckError

FAULTS_LAST_S: Final = 20.0
CALM_S: Final = 8.0
"""The time for which records are written after the last fault."""

RECOVERY_S: Final = 180.0
"""Longer than any sequence of time-outs and back-offs that the last fault can leave behind."""

_FAILED_FOR_S: Final = 5.0
"""So long a partition with a bad batch must stay failed before the fault is removed."""

_STORED_WITHIN_S: Final = 30.0
_LOOKS: Final = 2
_STOP_S: Final = 60.0
_EVENTS_MAX: Final = 1_000_000


class Result(NamedTuple):
    seed: int
    failure: str
    """Empty when the run ended well."""
    faults: list[str]
    ended_at: float
    """The end of the run, in virtual time."""


class FailedRunError(Exception):
    """A check that did not hold."""


class Drill:
    def __init__(self, seed: int, *, preserves_offsets: bool = False, transforms: bool = False) -> None:
        self.seed = seed
        self.rng = rng = random.Random(seed)
        random.seed(seed)  # the product's own jitter
        shape = shape_of(seed, rng)
        if preserves_offsets:
            shape = preserving(shape, rng)
        if transforms:
            shape = transforming(shape, seed)
        self.stage = stage = Stage(rng, shape)
        self.fates = DrawnFates(rng, rng.choice([0.0, 0.01, 0.05]))
        stage.network.faults = self.fates
        self.tasks = Tasks(stage)
        self.traffic = [Traffic(stage, flow, rng) for flow in stage.flows]
        self.words = [FlowWords(stage, flow) for flow in stage.flows]
        self.outside = [OutsideLooks(stage, flow) for flow in stage.flows]
        self.faults: list[str] = []
        self._calm_until = stage.time.time() + FAULTS_LAST_S + CALM_S

    def run(self) -> Result:
        failure = ""
        try:
            self._run()
        except FailedRunError as error:
            failure = str(error)
        except StuckError as error:
            failure = f"stuck: {error}"
        except Exception as error:
            logging.getLogger(__name__).exception("seed %d", self.seed)
            failure = f"raised {error!r}"
        self.tasks.kill_all()
        while self.stage.time.turns and self.stage.time.step():
            pass
        return Result(self.seed, failure, self.faults, self.stage.time.time())

    def _run(self) -> None:
        stage, rng = self.stage, self.rng
        self.tasks.start_all()
        for _ in range(rng.randint(5, 25)):
            stage.time.call_later(rng.uniform(0, FAULTS_LAST_S), rng.choice(self.traffic).write)
        for fault in Faults(stage, self.tasks, self.traffic, rng).drawn():
            stage.time.call_later(rng.uniform(0, FAULTS_LAST_S), self._do, fault)
        for _ in range(_LOOKS):
            stage.time.call_later(rng.uniform(0, FAULTS_LAST_S + CALM_S), rng.choice(self.outside).begin)
        stage.time.call_later(FAULTS_LAST_S, self._calm)
        self._wait(lambda: stage.time.time() >= self._calm_until and self._has_written, RECOVERY_S)
        if stage.shape.bad is not None and stage.shape.on_bad_batch is OnBadBatch.FAIL:
            self._fail_and_repair()
        self._expect("complete", lambda: stage.is_complete, RECOVERY_S)
        self.tasks.kill_older()
        self._expect("as long", lambda: all(flow.has_bounds for flow in stage.flows), RECOVERY_S)
        if not self._wait(lambda: self._stored, _STORED_WITHIN_S) and not self._overlapped:
            raise FailedRunError(f"not stored after {_STORED_WITHIN_S:g} s: {self._progress()}")
        self._expect_right_words()
        if not stage.shape.is_transactional and not self._overlapped and rng.random() < 0.3:
            self._lose_own_topics()
        if stage.shape.bad is None and rng.random() < 0.3:
            self._die_behind_the_last_records()
        self._stop()

    def _lose_own_topics(self) -> None:
        """Positions and reports are written again from memory."""
        stage = self.stage
        for flow in stage.flows:
            flow.lose(POSITIONS, flow.progress_topic)
        self._wait(lambda: False, self.rng.uniform(0.0, 5.0))
        for flow in stage.flows:
            flow.create_own_topics()
            self.tasks.forget_stored(flow)
            flow.records.write(0, 2)
        self._expect("written from memory", lambda: self._stored, _STORED_WITHIN_S)
        self._expect_right_words()

    def _die_behind_the_last_records(self) -> None:
        """Nothing follows them: the next attempts must find their places on the target, and write syncs."""
        stage = self.stage
        for flow in stage.flows:
            for partition in flow.partitions:
                flow.records.write(partition, 2)
        self._expect("complete", lambda: stage.is_complete, RECOVERY_S)
        self.tasks.kill_all()
        self.tasks.start_all()
        self._expect("synced", lambda: all(flow.is_synced for flow in stage.flows), RECOVERY_S)

    def _expect_right_words(self) -> None:
        """Everything is copied, and nothing fails any more."""
        if not self._wait(lambda: not any(words.wrong() for words in self.words), SETTLED_S):
            raise FailedRunError(f"after {SETTLED_S:g} s: {[words.wrong() for words in self.words]}")
        until = self.stage.time.time() + SETTLED_S
        while wrong := [word for outside in self.outside for word in outside.wrong()]:
            if self.stage.time.time() > until:
                raise FailedRunError(f"from outside, after {SETTLED_S:g} s: {wrong}")
            self._wait(lambda: False, 1.0)

    @property
    def _overlapped(self) -> bool:
        """Then an attempt with a successor may have stored its old position over a newer one."""
        return any("frozen" in fault or "while it runs" in fault for fault in self.faults)

    @property
    def _stored(self) -> bool:
        return all(flow.is_stored for flow in self.stage.flows)

    def _do(self, fault: Fault) -> None:
        self.faults.append(f"{self.stage.time.time():.3f} {fault()}")

    @property
    def _has_written(self) -> bool:
        return all(traffic.has_ended for traffic in self.traffic)

    def _calm(self) -> None:
        """Stop all faults, and write some more records."""
        stage, rng = self.stage, self.rng
        self.fates.rate = 0.0
        stage.calm()
        self.tasks.kill_older()
        for traffic, flow in zip(self.traffic, stage.flows, strict=True):
            for partition in flow.partitions:
                stage.time.call_later(rng.uniform(0, CALM_S), traffic.write_to, partition)
        for cluster in stage.clusters:
            for broker in cluster.brokers:
                if not broker.is_up:
                    cluster.restart(broker)
            for _, log in cluster.logs():
                log.release()
            cluster.changed()

    def _fail_and_repair(self) -> None:
        """Partitions with a bad batch have failed, and wait for an operator who removes the fault."""
        flow = self.stage.forward
        time, since = self.stage.time, math.inf

        def stay_failed() -> bool:
            nonlocal since
            since = min(since, time.time()) if flow.waits_for_repair else math.inf
            return time.time() - since >= _FAILED_FOR_S

        self._expect("failed", stay_failed, RECOVERY_S)
        unsaid = [at for at in flow.stopped_partitions if not self.words[0].action_required(at)]
        if unsaid:
            raise FailedRunError(f"partitions {unsaid} have failed, and nobody is asked to act")
        self.stage.repair()

    def _stop(self) -> None:
        """Stop in order: everything is stored then."""
        stage = self.stage
        self.tasks.stop_all()
        if not stage.run_until(lambda: self.tasks.all_are_over, _STOP_S):
            raise FailedRunError("a task did not stop")
        stage.check_committed()
        if stage.shape.on_bad_batch is OnBadBatch.SKIP:
            stage.forward.check_letters()
        self._raise_violation()
        if not stage.is_complete:
            raise FailedRunError(f"changed at its end: {self._progress()}")

    def _expect(self, state: str, holds: Callable[[], bool], within_s: float) -> None:
        if not self._wait(holds, within_s):
            raise FailedRunError(f"not {state} after {within_s:g} s: {self._progress()}")

    def _wait(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Whether it held in time. Raises at what must never happen."""
        stage = self.stage

        def must_stop() -> bool:
            return bool(stage.violations) or self.tasks.any_is_over or stage.time.steps > _EVENTS_MAX

        held = stage.run_until(lambda: must_stop() or holds(), within_s)
        if stage.time.steps > _EVENTS_MAX:
            raise FailedRunError(f"more than {_EVENTS_MAX} events")
        self._raise_violation()
        if self.tasks.any_is_over:
            raise FailedRunError("a task has ended by itself")
        return held

    def _raise_violation(self) -> None:
        if self.stage.violations:
            raise FailedRunError(self.stage.violations[0])

    def _progress(self) -> str:
        return "; ".join(
            f"{flow.ends.flow} "
            + ", ".join(
                f"{len(flow.copied(at))} of {len(set(flow.records.ledgers[at].due()))}"
                for at in flow.partitions
            )
            for flow in self.stage.flows
        )
