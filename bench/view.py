"""Measures what it costs to look at groups, and at partitions that all report each second, without a broker.

`python -m bench.view [PARTITIONS]`: CPU seconds of each part of one second, as a share of one core, while
every partition reports new records, then while none does but records are left to copy. `reports` is paid
whether somebody looks or not, `look` and `view` once a second however many look, `page` for each thing that
is looked at.
"""

import gzip
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.domain.latency import LatencyHistogram
from sparkmirror.metrics.looks import GroupPartitionLook, GroupsLook, SourceLook
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.storage.progress import PartitionProgress
from sparkmirror.ui.html import page, part
from sparkmirror.ui.page_looks import PageLook
from sparkmirror.view.flows import MirrorView
from sparkmirror.view.making import Node, view_of
from tests.support.progress_records import IDLE

T = TypeVar("T")

FLOW: Final = Flow(Alias("east"), Alias("west"))
_PARTITIONS_A_TOPIC: Final = 5
_GROUPS: Final = 2000
ASSIGNED_TASKS: Final = 2
_SECONDS: Final = 40
_PAGES: Final = (
    PageLook("overview"),
    PageLook("flow", str(FLOW)),
    PageLook("topic", str(FLOW), "topic-7"),
    PageLook("groups", str(FLOW)),
)


class Parts:
    """CPU seconds by the names of parts, added up."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}

    def timed(self, name: str, action: Callable[[], T]) -> T:
        began = time.thread_time()
        result = action()
        self.cpu[name] = self.cpu.get(name, 0.0) + time.thread_time() - began
        return result


def report(source: TopicPartition, at: int) -> PartitionProgress:
    counts = {12: 20 * at, 13: 70 * at, 20: 8 * at, 30 + source.partition: 2 * at}
    return replace(
        IDLE,
        source=source,
        target_topic=f"east.{source.topic}",
        records=100 * at,
        bytes=100_000 * at,
        position=100 * at - 1,
        lag=at % 3,
        latency=LatencyHistogram(counts),
    )


def sources_of(partitions: int) -> list[TopicPartition]:
    return [
        TopicPartition(f"topic-{number // _PARTITIONS_A_TOPIC}", number % _PARTITIONS_A_TOPIC)
        for number in range(partitions)
    ]


def groups_look() -> GroupsLook:
    """Each group reads one topic: ten thousand offsets of partitions, as many as are kept."""
    partitions = [
        GroupPartitionLook(
            GroupId(f"group-{number:04}"),
            TopicPartition(f"topic-{number // 2}", partition),
            TopicPartition(f"east.topic-{number // 2}", partition),
            committed=90,
            translated=90,
            behind_max=number % 3,
            why="exact",
            checkpoint=90,
            written=90,
        )
        for number in range(_GROUPS)
        for partition in range(_PARTITIONS_A_TOPIC)
    ]
    name = ConnectorName("MirrorCheckpointConnector")
    return GroupsLook(
        FLOW, name, "checkpoint", partitions=partitions, age_s=20.0, interval_s=60.0, target_age_s=15.0
    )


class Bench:
    def __init__(self, partitions: int) -> None:
        self._sources = sources_of(partitions)
        self._assigned = tuple(tuple(self._sources[task::ASSIGNED_TASKS]) for task in range(ASSIGNED_TASKS))
        self._meter = SourceMeter()
        self._view: MirrorView | None = None
        self._of = SourceLook(FLOW, ConnectorName("MirrorSourceConnector"), "source")
        self._now = 0.0
        self._reports: list[PartitionProgress] = []
        self._groups = groups_look()

    def run(self, *, is_busy: bool) -> Parts:
        """The first half of the seconds fills the windows and is not counted."""
        for _ in range(_SECONDS // 2):
            self._second(Parts(), is_busy=is_busy)
        parts = Parts()
        for _ in range(_SECONDS // 2):
            self._second(parts, is_busy=is_busy)
        return parts

    def _second(self, parts: Parts, *, is_busy: bool) -> None:
        self._now += 1.0
        if is_busy:
            self._reports = [report(source, int(self._now)) for source in self._sources]
        parts.timed("reports", lambda: self._meter.take(self._reports, None, self._now))
        look = parts.timed("look", lambda: self._meter.look(self._of, self._assigned, self._now))
        view = parts.timed(
            "view", lambda: view_of(Node("n", "1"), [look, self._groups], self._now, self._view)
        )
        for shown in _PAGES:
            parts.timed(f"page {shown.page}", partial(part, view, shown))
        self._view = view

    def sizes(self) -> str:
        assert self._view is not None
        pages = {shown.page: page(self._view, shown).encode() for shown in _PAGES}
        return ", ".join(f"{name} {len(gzip.compress(text, 5)):,}" for name, text in pages.items())


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    bench = Bench(partitions)
    for name, is_busy in (("all partitions report", True), ("none reports", False)):
        cpu = bench.run(is_busy=is_busy).cpu
        shares = {part: 100 * seconds / (_SECONDS / 2) for part, seconds in cpu.items()}
        looked = shares["look"] + shares["view"] + shares["page flow"]
        text = ", ".join(f"{part} {share:.2f} %" for part, share in shares.items())
        print(f"{partitions} partitions, {name}: {text}; one page of a flow {looked:.2f} % of a core")
    print(f"bytes of whole pages with gzip: {bench.sizes()}")


if __name__ == "__main__":
    main()
