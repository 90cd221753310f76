"""Compares the words for a run's partitions with the truth: what is due, what has arrived, and what failed.

The words are those of pages, `GET /mirror`, `status`, `/metrics`: made by the view, from the reports that a
driver reads once a second; and Connect's states of tasks, from the same reports. A word may be late, by as
long as the design says, and never longer.
"""

from collections.abc import Mapping
from typing import Final

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.metrics.looks import CUT_OFF_AFTER_S, SourceLook
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.metrics.stalls import StalledPartitions
from sparkmirror.mirror.task_progress import failed_tasks
from sparkmirror.storage.progress import PartitionProgress, TaskProgress, parse
from sparkmirror.view.conditions import CURRENT_S
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.values import PartitionView
from sparkmirror.view.words import Word
from tests.memory.checked_flow import CheckedFlow
from tests.memory.committed import committed_records
from tests.memory.stage import Stage

READ_S: Final = 1.0
"""The interval at which a driver reads reports; a task reports as often."""

REQUEST_S: Final = 30.0
"""A request whose answer never comes is given up after that."""

LATE_S: Final = REQUEST_S + max(CURRENT_S, CUT_OFF_AFTER_S) + 2 * READ_S + 3.0
"""The longest time that a lack may not be shown: a request hangs, another backs off, reports are late."""

ONCE_KNOWN_S: Final = 2 * READ_S + 1.0
"""A task that continues reports what it knew; with its next Fetch it knows better, and says so."""

SETTLED_S: Final = REQUEST_S + CUT_OFF_AFTER_S + 2 * READ_S
"""When nothing is wrong any more, no word says so after that: a report is written again, and read."""

_NODE: Final = Node("drill", "0")
_CONNECTOR: Final = ConnectorName("drill")


class FlowWords:
    """One flow, as a driver sees it that runs while tasks come and go."""

    def __init__(self, stage: Stage, flow: CheckedFlow) -> None:
        self._stage = stage
        self._flow = flow
        self._meter = SourceMeter()
        self._stalled = StalledPartitions()
        self._reports: dict[TopicPartition, PartitionProgress] = {}
        self._tasks: dict[int, TaskProgress] = {}
        self._log = flow.ends.target.log(TopicPartition(flow.progress_topic, 0))
        self._read_to = 0
        self._missing: dict[int, dict[int, float]] = {at: {} for at in flow.partitions}
        """By partition: records that are due and not there, and since when."""
        self._wrong_since: dict[int, float] = {}
        sources = (TopicPartition(flow.ends.topic, at) for at in flow.partitions)
        self._assigned = (tuple(sources),)
        stage.time.call_later(READ_S, self._look)

    def wrong(self) -> list[str]:
        """The words that say that something is wrong, or is left to copy, though nothing is."""
        return [
            self._said(view)
            for view in self._views()
            if view.state.word is not Word.CAUGHT_UP or view.lag.records != 0 or view.state.error
        ] + [f"task {task} is FAILED for Connect: {why}" for task, why in self._failed().items()]

    def action_required(self, partition: int) -> bool:
        """Whether an operator is asked to act, with the reason, by the view and by Connect's status."""
        view = next(view for view in self._views() if view.source.partition == partition)
        report = self._reports.get(view.source)
        is_failed = report is not None and report.task in self._failed()
        return view.state.word is Word.ACTION_REQUIRED and bool(view.state.error) and is_failed

    def _failed(self) -> Mapping[int, str]:
        return failed_tasks(self._reports.values())

    def _look(self) -> None:
        self._read()
        self._note_missing()
        for view in self._views():
            self._judge(view)
        self._stage.time.call_later(READ_S, self._look)

    def _read(self) -> None:
        """Read the reports, if the broker that leads them is there."""
        cluster, now = self._flow.ends.target, self._stage.time.time()
        topic = cluster.topics.get(self._flow.progress_topic)
        log = self._log if topic is None else topic.partitions[0]
        if topic is None or not any(broker.node_id == log.leader for broker in cluster.live):
            return
        if log is not self._log:
            self._log, self._read_to = log, 0
        records = list(committed_records(log))
        for report in map(parse, records[self._read_to :]):
            if isinstance(report, PartitionProgress):
                known = self._reports.get(report.source)
                if known is None or not report.is_late(known, None):
                    self._reports[report.source] = report
            elif isinstance(report, TaskProgress):
                self._tasks[report.task] = report
        self._read_to = len(records)
        self._meter.take(list(self._reports.values()), None, now)
        self._meter.take_tasks(self._tasks.values(), now)
        self._meter.take_stalls(self._stalled.check(list(self._reports.values()), now))

    def _note_missing(self) -> None:
        now = self._stage.time.time()
        for at, known in self._missing.items():
            self._missing[at] = {number: known.get(number, now) for number in self._flow.missing(at)}

    def _judge(self, view: PartitionView) -> None:
        now, at = self._stage.time.time(), view.source.partition
        since = min(self._missing[at].values(), default=now)
        is_wrong = view.state.word is Word.CAUGHT_UP or view.lag.records == 0
        # With an error the lag that was read last may be another one by now: it is never 0.
        if now - since <= (ONCE_KNOWN_S if view.state.error else LATE_S) or not is_wrong:
            self._wrong_since.pop(at, None)
        elif now - self._wrong_since.setdefault(at, now) >= ONCE_KNOWN_S:
            self._flow.violated(f"{self._said(view)}, {self._truth(at)}")

    def _views(self) -> list[PartitionView]:
        of = SourceLook(self._flow.ends.flow, _CONNECTOR, "source")
        look = self._meter.look(of, self._assigned, self._stage.time.time())
        (flow,) = view_of(_NODE, [look], self._stage.time.time()).flows
        return list(flow.topics.partitions_worst_first())

    def _said(self, view: PartitionView) -> str:
        state, lag = view.state, view.lag.records
        return f"{view.source} is said to be {state.word} ({state.error or 'no error'}), lag {lag}"

    def _truth(self, partition: int) -> str:
        missing, now = self._missing[partition], self._stage.time.time()
        if not missing:
            return "everything due is there"
        first, since = min(missing.items())
        return f"{len(missing)} records are missing, record {first} for {now - since:.0f} s"
