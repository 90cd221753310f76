"""Finds of topics whose offsets are preserved what it costs to begin, and what is in the way. Pure."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from sparkmirror.domain.acls import AclOperation
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.preserving import (
    DIRECT_MARKERS_PER_S,
    FILLER_BYTES,
    LONG_GAP_S,
    MARKER_BYTES,
    MARKERS_PER_S,
    OnGap,
    waits_for_failback,
    waits_for_report,
)
from sparkmirror.domain.quantities import counted
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.settings.source import preserves_offsets
from sparkmirror.settings.topic_selection import is_copied_back

PRESERVED: Final = "preserved offsets"

_OFFSETS_PER_S: Final = 5_000_000
"""The lowest rate that brokers accepted on two shared cores, for all partitions together."""
_CPU_S_PER_OFFSET: Final = 1.5e-7


def preserved_topics(survey: FlowSurvey) -> Iterator[Finding]:
    """Describe what happens to the offsets of each topic."""
    preserves = preserves_offsets(survey.settings)
    continues = survey.settings.copying.preserving.continues_translated
    translated = Counter(partition.topic for partition in survey.translated)
    shifted = Counter(partition.topic for partition in survey.shifted)
    for topic, remote in survey.mirrored:
        if not preserves(topic):
            continue
        if translated[topic]:
            yield Finding(
                PRESERVED,
                Severity.WARNS,
                topic,
                f"its offsets are translated in {counted(translated[topic], 'partition')}, since they could "
                "not be preserved there any more",
                f"sparkmirror offsets preserve recreates {remote} with the source's offsets",
            )
        elif shifted[topic]:
            yield Finding(
                PRESERVED,
                Severity.WARNS if continues else Severity.BLOCKS,
                topic,
                f"it is copied with other offsets already, in {counted(shifted[topic], 'partition')}",
                f"sparkmirror offsets preserve recreates {remote} with the source's offsets",
            )
        elif topic in survey.begun:
            yield _running(survey, topic)
            yield from _gap(survey, topic)
            yield from _holes(survey, topic)
        elif remote in survey.filled and (waits := _waits(survey, topic, remote)) is not None:
            yield waits
        elif remote in survey.filled and continues:
            text = f"its offsets will be translated, not preserved: {remote} holds records already"
            yield Finding(
                PRESERVED, Severity.WARNS, topic, text, f"leave {topic} out of offsets.preserve.topics"
            )
        elif remote in survey.filled:
            yield Finding(
                PRESERVED,
                Severity.BLOCKS,
                topic,
                f"its offsets can't be preserved: {remote} holds records already",
                f"if {remote} is the original of a promoted copy, or of one that goes the other way, "
                f"sparkmirror failback lets it follow; else leave {topic} out of offsets.preserve.topics",
            )
        else:
            yield _cost(survey, topic)
            yield from _holes(survey, topic)


def _waits(survey: FlowSurvey, topic: str, remote: str) -> Finding | None:
    """Find a topic that the opposite flow has copied, or may have copied."""
    partitions = [TopicPartition(topic, number) for number in range(survey.source_topics.get(topic, 0))]
    copies = survey.opposite.copies(*partitions) if topic == remote else False
    opposite = Flow(survey.target.alias, survey.source.alias)
    if copies:
        remedy = "sparkmirror promote and failback turn the direction round"
        return Finding(PRESERVED, Severity.NOTE, topic, f"standby: {waits_for_failback(opposite)}", remedy)
    if copies is None and is_copied_back(survey.settings, topic):
        return Finding(PRESERVED, Severity.NOTE, topic, waits_for_report(opposite))
    return None


def _running(survey: FlowSurvey, topic: str) -> Finding:
    """Find partitions that stopped: another writer, or a truncated log."""
    stopped = [error for at, error in survey.stopped.items() if at.topic == topic]
    if not stopped:
        return Finding(PRESERVED, Severity.NOTE, topic, "its offsets are preserved")
    text = f"its offsets are preserved, but {counted(len(stopped), 'partition')} stopped: {stopped[0]}"
    return Finding(PRESERVED, Severity.WARNS, topic, text)


def _gap(survey: FlowSurvey, topic: str) -> Iterator[Finding]:
    """Find gaps of records that retention removed before they were copied: markers fill them."""
    partitions = range(survey.source_topics.get(topic, 0))
    longest = max((survey.lost.get(TopicPartition(topic, number), 0) for number in partitions), default=0)
    seconds = longest / MARKERS_PER_S
    preserving = survey.settings.copying.preserving
    if seconds <= LONG_GAP_S:
        return
    text = (
        f"up to {longest:,} offsets of a partition are gone from the source before they were copied: control "
        f"markers take their places, in about {seconds:,.0f} s, or much less with ALTER on the cluster"
    )
    if preserving.stops_at(seconds):
        remedy = (
            "set offsets.gap to wait, or let sparkmirror offsets preserve --recreate begin the copy there"
        )
        yield Finding(PRESERVED, Severity.BLOCKS, topic, f"{text}; offsets.gap is stop", remedy)
    else:
        yield Finding(PRESERVED, Severity.WARNS, topic, text)


def _cost(survey: FlowSurvey, topic: str) -> Finding:
    partitions = range(survey.source_topics.get(topic, 0))
    offsets = sum(survey.begins.get(TopicPartition(topic, number), 0) for number in partitions)
    seconds = offsets / _OFFSETS_PER_S
    timeout_s = survey.settings.copying.preserving.fill_timeout_s
    if not offsets:
        return Finding(PRESERVED, Severity.NOTE, topic, "its offsets are preserved, from 0 on")
    text = (
        f"its offsets are preserved: {offsets:,} before its first records are filled first, "
        f"{offsets * FILLER_BYTES / 1e6:,.1f} MB on each replica until they are deleted, in about "
        f"{seconds:,.0f} s, for {offsets * _CPU_S_PER_OFFSET:,.0f} s of the brokers' CPU"
    )
    if seconds <= timeout_s:
        return Finding(PRESERVED, Severity.NOTE, topic, text)
    remedy = f"set offsets.preserve.fill.timeout.ms to {int(2 * seconds) * 1000}, or leave {topic} out"
    return Finding(PRESERVED, Severity.WARNS, topic, f"{text}: longer than it may take", remedy)


def _holes(survey: FlowSurvey, topic: str) -> Iterator[Finding]:
    """Find holes of compaction and of transaction markers between the records: markers fill them."""
    holes = {at: count for at, count in survey.holes.items() if at.topic == topic and count}
    if not holes:
        return
    preserving = survey.settings.copying.preserving
    operations = survey.target.operations or ()
    is_direct = AclOperation.ALTER in operations or AclOperation.CLUSTER_ACTION in operations
    rate = DIRECT_MARKERS_PER_S if is_direct else MARKERS_PER_S
    total, seconds = sum(holes.values()), max(holes.values()) / rate
    text = (
        f"about {total:,} of the offsets to copy have no record, by a part of its log (compaction, ends of "
        "transactions). "
        f"Control markers take their places, {total * MARKER_BYTES / 1e6:,.1f} MB on each replica: in about "
        f"{seconds:,.0f} s, at {rate:,.0f} a second in each partition"
    )
    if preserving.on_gap is OnGap.STOP:
        most = int(preserving.fill_timeout_s * MARKERS_PER_S)
        text += f". offsets.gap is stop: a partition stops where more than {most:,} are missing in a row"
    if seconds <= preserving.fill_timeout_s:
        yield Finding(PRESERVED, Severity.NOTE, topic, text)
    else:
        grant = "" if is_direct else f"give ALTER on the cluster {survey.target.alias}, or "
        remedy = f"{grant}leave {topic} out of offsets.preserve.topics"
        yield Finding(PRESERVED, Severity.WARNS, topic, f"{text}; it lags behind so long", remedy)
