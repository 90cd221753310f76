"""Load measurement and the decision to reassign partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.assignment import Assignment, assign
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.mirror.reassignment import DEFAULT_REASSIGNMENT, Imbalance, Reassignment, Running
from sparkmirror.storage.progress import JobEpoch
from tests.support.progress_records import IDLE

MB = 1_000_000
CONNECTOR = ConnectorName("MirrorSourceConnector")
PARTITIONS = [TopicPartition("orders", number) for number in range(6)]
ASSIGNMENT = assign(PARTITIONS, 2)


class Scene(Reassignment):
    """Partitions of the given pace; looked at every 10 s."""

    def __init__(self, assignment: Assignment = ASSIGNMENT) -> None:
        super().__init__(ConnectionSettings((("b", 9092),)), "progress", CONNECTOR, DEFAULT_REASSIGNMENT)
        self.running = Running(1, 0, assignment)
        self.now = 1000.0
        self.copied = dict.fromkeys(PARTITIONS, 0)
        self.lags: dict[TopicPartition, int] = {}
        self.cut_off = False
        self.pace: Mapping[int, float] = {}

    def pass_s(self, seconds: float) -> list[tuple[float, Imbalance]]:
        """Return what was said, and when, counted from now."""
        began, said = self.now, []
        while self.now < began + seconds:
            self.now += 10
            for number, pace in self.pace.items():
                self.copied[PARTITIONS[number]] += int(10 * pace * MB)
            imbalance = self.check(self.running, self.now)
            if imbalance is not None:
                said.append((self.now - began, imbalance))
        return said

    def _records(self, _: Running) -> Iterable[LogRecord]:
        if self.cut_off:
            raise DisconnectedError("gone")
        yield JobEpoch(CONNECTOR, 1, len(PARTITIONS)).to_record()
        yield LogRecord(b"somebody", b"else's")
        for partition, copied in self.copied.items():
            report = replace(
                IDLE,
                source=partition,
                job_epoch=self.running.number,
                records=copied // 1000,
                bytes=copied,
                lag=self.lags.get(partition, 0),
            )
            yield report.to_record()
            yield replace(report, connector=ConnectorName("other"), bytes=0).to_record()

    def deal_again(self) -> None:
        """Reassign as the connector does when it was told to."""
        self.done(self.now)
        assignment = self._reassigned(self.running.assignment)
        self.running = Running(self.running.number + 1, 0, assignment)
        self.copied = dict.fromkeys(PARTITIONS, 0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_imbalance_is_reported_after_a_minute(scene: Scene) -> None:
    """And with every look until something is done."""
    scene.pace = {0: 30, 2: 20, 1: 10}
    (at, imbalance), *_ = scene.pass_s(100)
    assert at == 80
    assert (imbalance.task, imbalance.is_behind) == (0, False)
    assert str(imbalance) == "task 0 had 83 % of 60.0 MB/s"


@pytest.mark.parametrize(
    "pace",
    [
        {0: 30, 1: 20},
        {0: 30, 2: 20, 1: 18},  # 1.47 times the mean
        {0: 4, 2: 3},  # there is room in every task
        {0: 300, 2: 20},  # the hot one can't be split
        {},
    ],
)
def test_small_imbalances_are_not_worth_a_pause(scene: Scene, pace: Mapping[int, float]) -> None:
    scene.pace = pace
    assert scene.pass_s(600) == []


def test_a_small_load_is_worth_it_when_only_one_task_is_behind(scene: Scene) -> None:
    scene.pace = {0: 0.4, 2: 0.3}
    scene.lags = {PARTITIONS[0]: 100_000, PARTITIONS[2]: 100_000}
    said = scene.pass_s(100)
    assert str(said[0][1]) == "task 0 had 100 % of 0.7 MB/s and was behind"
    scene.lags[PARTITIONS[1]] = 100_000
    assert scene.pass_s(100) == []


def test_an_intermittent_imbalance_is_ignored(scene: Scene) -> None:
    for _ in range(5):
        scene.pace = {0: 30, 2: 20, 1: 10}
        assert scene.pass_s(50) == []
        scene.pace = {0: 10, 1: 50}
        assert scene.pass_s(50) == []


def test_no_imbalance_is_reported_after_reassignment(scene: Scene) -> None:
    scene.pace = {0: 30, 2: 20, 1: 10}
    assert scene.pass_s(100)
    scene.deal_again()
    assert scene.pass_s(1000) == []


def test_not_more_often_than_every_five_minutes(scene: Scene) -> None:
    scene.pace = {0: 30, 2: 20, 1: 10}
    assert scene.pass_s(100)
    scene.deal_again()
    hot = [partition.partition for partition in scene.running.assignment[1][:2]]
    scene.pace = dict.fromkeys(hot, 30)
    (at, _), *_ = scene.pass_s(400)
    assert at == DEFAULT_REASSIGNMENT.interval_s


def test_every_copy_job_is_observed_for_a_minute(scene: Scene) -> None:
    scene.pace = {0: 30, 2: 20, 1: 10}
    assert scene.pass_s(60) == []
    scene.running = scene.running._replace(number=2)
    assert [at for at, _ in scene.pass_s(70)] == [70]


def test_an_unreachable_target_reports_no_imbalance_and_drops_no_load(scene: Scene) -> None:
    """A rate counts from the last look that worked."""
    scene.pace = {0: 30, 2: 20, 1: 10}
    scene.pass_s(100)
    before = dict(scene.load)
    scene.cut_off = True
    assert scene.pass_s(100) == []
    scene.cut_off = False
    scene.pass_s(10)
    assert dict(scene.load) == pytest.approx(before)
