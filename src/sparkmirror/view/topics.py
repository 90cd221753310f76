"""The topics of a flow: their sums, and the view of one when it is asked for."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple, overload

import numpy as np

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.latency import LatencyHistogram
from sparkmirror.metrics.looks import SourceLook
from sparkmirror.metrics.partition_table import Indices, Rows
from sparkmirror.storage.promotions import Promotions
from sparkmirror.view.partitions import Partitions
from sparkmirror.view.sums import Sums
from sparkmirror.view.values import Lag, PartitionView, Speed, State, TopicView
from sparkmirror.view.words import Word, severity


class _Layout(NamedTuple):
    """Says where topics are in the rows of `sources`, by their names, and their partitions in order."""

    sources: Sequence[Sequence[TopicPartition]]
    rows: Indices
    starts: Indices
    names: Sequence[str]
    numbers: Mapping[str, int]


class Topics(Sequence[TopicView]):
    """Lists topics by their names. Where partitions are those of `before`, so are their places."""

    def __init__(self, looks: Sequence[SourceLook], before: "Topics | None" = None, at: float = 0.0) -> None:
        """`at` is in epoch seconds."""
        self.partitions = Partitions(looks, at)
        sources = [table.sources for table in self.partitions.tables]
        known: _Layout | None = None if before is None else before.layout
        # Most lists and most of their elements are the same objects, which Python compares first.
        is_same = known is not None and known.sources == sources
        self.layout: _Layout = known if known is not None and is_same else _layout(sources)
        self.sums = Sums(self.partitions, self.layout.rows, self.layout.starts)
        self._views: Rows[TopicView] = Rows(range(len(self.layout.names)), self._view)

    def __len__(self) -> int:
        return len(self.layout.names)

    @overload
    def __getitem__(self, at: int) -> TopicView: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[TopicView]: ...

    def __getitem__(self, at: int | slice) -> TopicView | Sequence[TopicView]:
        return self._views[at]

    def named(self, name: str) -> TopicView | None:
        at = self.layout.numbers.get(name)
        return None if at is None else self._view(at)

    def source_end(self, of: TopicPartition) -> int | None:
        """Return the source's end offset, None where it is not known."""
        topic = self.layout.numbers.get(of.topic)
        if topic is None:
            return None
        rows, source = self.sums.rows(topic), self.partitions.source
        at = of.partition  # its place, where all partitions before it are copied too
        if at >= len(rows) or source(rows.item(at)) != of:
            at = bisect_left(rows.tolist(), of, key=source)
        is_there = at < len(rows) and source(rows.item(at)) == of
        return self.partitions.source_end(rows.item(at)) if is_there else None

    @cached_property
    def _worst_first(self) -> Indices:
        names = np.arange(len(self))
        if not len(self):
            return names
        return np.lexsort((names, -np.nan_to_num(self.sums.records), self.sums.severity))

    def worst_first(self, matching: str = "") -> Sequence[TopicView]:
        """Return the topics whose names contain `matching`."""
        order, names = self._worst_first, self.layout.names
        return Rows([at for at in order.tolist() if matching in names[at]] if matching else order, self._view)

    def having(self, words: Collection[Word], without: Collection[str] = ()) -> Sequence[TopicView]:
        """List the topics with one of these words, the worst first, but for those with these names."""
        rows, names = self._worst_first, self.layout.names
        if len(self):
            rows = rows[np.isin(self.sums.severity[rows], [*map(severity, words)])]
        return Rows([at for at in rows.tolist() if names[at] not in without] if without else rows, self._view)

    @property
    def promoted(self) -> Promotions:
        """The promotions, by the names of their topics."""
        first = ((name, int(self.sums.rows(at)[0])) for at, name in enumerate(self.layout.names))
        found = ((name, self.partitions.promotion(row)) for name, row in first)
        return {name: promotion for name, promotion in found if promotion is not None}

    @property
    def whole(self) -> "Whole":
        return Whole(self.partitions, self.layout.rows)

    def partitions_worst_first(self, matching: str = "") -> Sequence[PartitionView]:
        """Return the partitions of the topics whose names contain `matching`."""
        if not matching:
            return self._by_worst(self.layout.rows)
        found = [at for at, name in enumerate(self.layout.names) if matching in name]
        return self._by_worst(np.array([row for at in found for row in self.sums.rows(at)], np.intp))

    def _by_worst(self, rows: Indices) -> Sequence[PartitionView]:
        """`rows` are in the order of topics and partitions."""
        order = np.lexsort((self.partitions.largest_lag_first[rows], self.partitions.shown.severity[rows]))
        return Rows(rows[order], self.partitions.view)

    def latency(self) -> tuple[float | None, float | None]:
        """The median and the 99th percentile in ms of all records of the last 30 to 60 s."""
        counts: dict[int, int] = Counter()
        for table in self.partitions.tables:
            for now, before in table.latencies():
                for bucket, count in now.counts.items():
                    counts[bucket] += count
                for bucket, count in before.counts.items():
                    counts[bucket] -= count
        merged = LatencyHistogram({it: count for it, count in counts.items() if count > 0})
        median, high = merged.quantiles(0.5, 0.99)
        return median, high

    def _view(self, at: int) -> TopicView:
        rows, sums = self.sums.rows(at), self.sums
        promotion = self.partitions.promotion(int(rows[0]))
        return TopicView(
            self.layout.names[at],
            next((it.target_topic for row in rows.tolist() if (it := self.partitions.report(row))), "")
            or None,
            sums.state(at) if promotion is None else State(Word.PROMOTED, advice=str(promotion)),
            Rows(rows, self.partitions.view),
            partial(self._by_worst, rows),
            sums.lag(at),
            sums.left_s(at),
            sums.speed(at),
            sums.quiet_since(at),
        )


class Whole:
    """Sums up all partitions of a flow."""

    def __init__(self, partitions: Partitions, rows: Indices) -> None:
        self._sums = Sums(partitions, rows, np.zeros(min(1, len(rows)), np.intp))

    @property
    def state(self) -> State:
        return self._sums.state(0) if len(self._sums) else State(Word.UNKNOWN)

    @property
    def lag(self) -> Lag:
        return self._sums.lag(0) if len(self._sums) else Lag(None, None)

    @property
    def left_s(self) -> float | None:
        return self._sums.left_s(0) if len(self._sums) else None

    @property
    def speed(self) -> Speed:
        return self._sums.speed(0) if len(self._sums) else Speed(None, None)

    @property
    def words(self) -> Mapping[Word, int]:
        return self._sums.words(0) if len(self._sums) else {}


def worst_state(states: Iterable[State]) -> State:
    return min(states, key=lambda it: severity(it.word), default=State(Word.UNKNOWN))


def _layout(sources: Sequence[Sequence[TopicPartition]]) -> _Layout:
    every = [source for each in sources for source in each]
    rows = sorted(range(len(every)), key=every.__getitem__)
    starts = [at for at, row in enumerate(rows) if at == 0 or every[row].topic != every[rows[at - 1]].topic]
    names = [every[rows[at]].topic for at in starts]
    numbers = {name: at for at, name in enumerate(names)}
    return _Layout(sources, np.array(rows, np.intp), np.array(starts, np.intp), names, numbers)
