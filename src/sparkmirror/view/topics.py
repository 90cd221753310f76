"""Makes the views of topics and their partitions; one that has not changed is that of the view before."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from operator import is_
from typing import Protocol

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import PartitionLook, SourceLook
from sparkmirror.view.values import Lag, PartitionView, Speed, State, TopicView
from sparkmirror.view.words import Situation, Word, condition_of, severity


class Measured(Protocol):
    """A partition or a topic."""

    @property
    def lag(self) -> Lag: ...

    @property
    def speed(self) -> Speed: ...


def topic_views(look: SourceLook, before: Mapping[str, TopicView]) -> Iterator[TopicView]:
    """In the order of their names; `before` are those of the last view."""
    by_topic: dict[str, list[PartitionLook]] = defaultdict(list)
    for partition in look.partitions or ():
        by_topic[partition.source.topic].append(partition)
    is_cut_off = Situation(PartitionLook(TopicPartition("", 0), 0), None, look.report_age_s).is_cut_off
    for name in sorted(by_topic):
        of, known = tuple(by_topic[name]), before.get(name)
        is_same = known is not None and len(of) == len(known.of) and all(map(is_, of, known.of))
        if known is not None and is_same and not is_cut_off:
            yield known
        else:
            topic = _topic(name, of, look)
            yield replace(topic, of=()) if is_cut_off else topic  # which holds only while that lasts


def _topic(name: str, of: tuple[PartitionLook, ...], look: SourceLook) -> TopicView:
    partitions = sorted((_partition(each, look) for each in of), key=lambda it: it.source)
    targets = [it.target.topic for it in partitions if it.target is not None]
    quiet = [it.quiet_since for it in partitions]
    return TopicView(
        name,
        next(iter(targets), None),
        worst_state([it.state for it in partitions]),
        partitions,
        lag_of(partitions),
        left_of([it.left_s for it in partitions if it.state.word is Word.CATCHING_UP]),
        speed_of(partitions),
        None if None in quiet else max(it for it in quiet if it is not None),
        Counter(it.state.word for it in partitions),
        of,
    )


def worst_state(states: Sequence[State]) -> State:
    return min(states, key=lambda it: severity(it.word), default=State(Word.UNKNOWN))


def _partition(look: PartitionLook, of: SourceLook) -> PartitionView:
    situation = Situation(look, None, of.report_age_s)
    condition, report, lag = condition_of(situation), look.report, situation.lag
    position = None if report is None or report.position is None else report.position + 1
    end = (position or 0) + report.lag if report is not None and report.lag is not None else None
    return PartitionView(
        look.source,
        TopicPartition(report.target_topic, look.source.partition) if report is not None else None,
        look.task,
        State(
            condition.word,
            _since(condition.word, situation),
            report.error if report is not None else None,
            condition.advice,
        ),
        position,
        end,
        Lag(lag, _lag_s(situation)),
        _time_left(situation, lag) if condition.word is Word.CATCHING_UP else None,
        look.quiet_since,
        Speed(None, None) if condition.word is Word.UNKNOWN else Speed(look.record_rate, look.byte_rate),
        look.latencies,
        look.incidents,
        look.lost,
        report.notice if report is not None else None,
    )


def _since(word: Word, situation: Situation) -> float | None:
    if word is Word.UNKNOWN and situation.is_cut_off:
        return situation.report_age_s
    return situation.partition.error_for_s


def _lag_s(situation: Situation) -> float | None:
    """In an outage it grows by the clock: records that came since then may not be on the target."""
    lag_s, age_s = situation.partition.lag_s, situation.report_age_s
    if not situation.is_cut_off or age_s is None:
        return lag_s
    return max(lag_s or 0.0, age_s)


def _time_left(situation: Situation, lag: int | None) -> float | None:
    motion = situation.partition.motion
    if motion is None or motion.closed <= 0 or motion.seconds <= 0 or lag is None:
        return None
    return lag / (motion.closed / motion.seconds)


def lag_of(parts: Sequence[Measured]) -> Lag:
    """The sum in records and the most in seconds; unknown as soon as that of one part is, or of none."""
    if not parts:
        return Lag(None, None)
    records = [it.lag.records for it in parts]
    seconds = [it.lag.seconds for it in parts]
    return Lag(
        None if None in records else sum(it for it in records if it is not None),
        None if None in seconds else max((it for it in seconds if it is not None), default=0.0),
    )


def left_of(parts: Sequence[float | None]) -> float | None:
    """The longest of those that catch up, None as soon as one of them can't tell it."""
    longest = max((inf if it is None else it for it in parts), default=inf)
    return None if longest == inf else longest


def speed_of(parts: Sequence[Measured]) -> Speed:
    records = [it.speed.records for it in parts if it.speed.records is not None]
    copied = [it.speed.bytes for it in parts if it.speed.bytes is not None]
    return Speed(sum(records) if records else None, sum(copied) if copied else None)
