"""The tasks of a stage's flows: each is killed, started again, and started twice."""

from sparkmirror.copy.copy_loop import CopyLoop
from tests.memory.checked_flow import CheckedFlow
from tests.memory.stage import RunningTask, Stage


class Tasks:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._running: dict[int, list[RunningTask]] = {at: [] for at in range(len(stage.flows))}
        """By flow, the newest last."""
        self._has_ended = False
        """Whether a loop has ended by itself: noted, because it is asked after each event."""

    def start_all(self) -> None:
        for flow in self._stage.flows:
            self.start(flow)

    def start(self, flow: CheckedFlow) -> None:
        task = self._stage.run_task(flow)
        task.when_over(self._note_end)
        self._of(flow).append(task)

    def newest(self, flow: CheckedFlow) -> RunningTask:
        return self._of(flow)[-1]

    def kill(self, flow: CheckedFlow, task: RunningTask) -> None:
        """Unless that was done already."""
        if task in self._of(flow):
            self._of(flow).remove(task)
            task.kill()

    def kill_all(self) -> None:
        for flow in self._stage.flows:
            for task in list(self._of(flow)):
                self.kill(flow, task)

    def kill_older(self) -> None:
        """Kill the tasks that have a successor."""
        for flow in self._stage.flows:
            for task in self._of(flow)[:-1]:
                self.kill(flow, task)

    def forget_stored(self, flow: CheckedFlow) -> None:
        """Let tasks forget as the driver does, when it has created state topics again."""
        for task in self._of(flow):
            task.loop.forget_stored()

    def stop_all(self) -> None:
        for loop in self._loops():
            loop.stop()

    @property
    def any_is_over(self) -> bool:
        """Raises what a loop raised."""
        return self._has_ended and any(task.is_over for tasks in self._running.values() for task in tasks)

    @property
    def all_are_over(self) -> bool:
        return all(task.is_over for tasks in self._running.values() for task in tasks)

    def _note_end(self) -> None:
        self._has_ended = True

    def _of(self, flow: CheckedFlow) -> list[RunningTask]:
        return self._running[self._stage.flows.index(flow)]

    def _loops(self) -> list[CopyLoop]:
        return [task.loop for tasks in self._running.values() for task in tasks]
